//! A topology as tables for a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use roundelay_core::topology::shape::time_text;
use roundelay_core::topology::{NodeId, Topology};

use super::describe::{Description, Link};

/// Ranks up to which a matrix of paths fits a terminal.
const MATRIX: u32 = 16;
/// Nodes whose links are listed one by one.
const LISTED: usize = 32;

pub(super) fn print(described: &Description, topology: &Topology) -> String {
    let mut text = String::new();
    let others = described.nodes.len() - described.nranks as usize;
    let _ = writeln!(
        text,
        "{}: {}, {}, {} (each in one direction)",
        described.name,
        count(described.nranks as usize, "rank"),
        count(others, "other node"),
        count(described.links.len(), "link"),
    );
    for assumption in &described.assumptions {
        let _ = writeln!(text, "assumed: {assumption}");
    }
    links(described, topology, &mut text);
    paths(described, &mut text);
    text
}

/// `1 rank`, `3 switches`
fn count(n: usize, what: &str) -> String {
    let plural = if n == 1 { "" } else { "s" };
    format!("{n} {what}{plural}")
}

/// What a link is like: its kind, bandwidth and latency.
fn quality(link: &Link, relative: bool) -> String {
    let latency = match link.latency_ns {
        0 => String::new(),
        ns => format!(" {}", time_text(ns)),
    };
    format!("{} {}{latency}", link.kind, bandwidth(link.bandwidth, relative))
}

pub(super) fn bandwidth(value: f64, relative: bool) -> String {
    if relative { format!("{} b", short(value)) } else { format!("{} GB/s", short(value / 1e9)) }
}

/// Three decimals at most, and no zeros at their end.
pub(super) fn short(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn links(described: &Description, topology: &Topology, text: &mut String) {
    text.push_str("\nlinks\n");
    let mut lines = Vec::new();
    for (i, node) in described.nodes.iter().enumerate() {
        let mut by_quality: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for link in described.links.iter().filter(|l| l.from as usize == i) {
            let to = described.nodes[link.to as usize].name.clone();
            by_quality.entry(quality(link, described.relative)).or_default().push(to);
        }
        let rank = topology.is_rank(NodeId(i as u32));
        let name = if rank { format!("rank {}", node.name) } else { node.name.clone() };
        for (quality, to) in by_quality {
            lines.push((name.clone(), format!("{} ({quality})", to.join(" "))));
        }
    }
    let width = lines.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    for (name, to) in lines.iter().take(LISTED) {
        let _ = writeln!(text, "  {name:width$} -> {to}");
    }
    if lines.len() > LISTED {
        let _ = writeln!(
            text,
            "  … and {} more lines (all of them: --format json)",
            lines.len() - LISTED
        );
    }
}

fn paths(described: &Description, text: &mut String) {
    let n = described.nranks;
    if n < 2 {
        return;
    }
    let unit = if described.relative { "b" } else { "GB/s" };
    let scale = if described.relative { 1.0 } else { 1e9 };
    if n > MATRIX {
        let mut kinds: BTreeMap<(String, usize), usize> = BTreeMap::new();
        for path in &described.paths {
            let what = format!("{} {} {unit}", path.kind, short(path.bandwidth / scale));
            *kinds.entry((what, path.hops)).or_default() += 1;
        }
        text.push_str("\npaths between ranks, by NCCL's rules\n");
        for ((what, hops), pairs) in kinds {
            let _ = writeln!(text, "  {what}, {}: {pairs} pairs", count(hops, "hop"));
        }
        return;
    }
    let _ = writeln!(text, "\npaths from row to column, by NCCL's rules: type and {unit}");
    let mut rows = vec![vec![String::new()]];
    rows[0].extend((0..n).map(|r| r.to_string()));
    for from in 0..n {
        let mut row = vec![from.to_string()];
        for to in 0..n {
            let path = described.paths.iter().find(|p| (p.from, p.to) == (from, to));
            row.push(path.map_or_else(
                || "-".to_owned(),
                |p| format!("{} {}", p.kind, short(p.bandwidth / scale)),
            ));
        }
        rows.push(row);
    }
    aligned(&rows, text);
}

/// Columns as wide as their widest cell.
pub(super) fn aligned(rows: &[Vec<String>], text: &mut String) {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| {
        rows.iter().filter_map(|r| r.get(c)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..columns).map(width).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "  {}", line.trim_end());
    }
}
