//! A topology as tables for a terminal.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use roundelay_core::topology::Topology;
use roundelay_core::units::{count, rate_text, short, time_text};
use roundelay_simulate::cost::Costs;
use roundelay_topology::NodeId;

use crate::report::within_a_page;

use super::describe::{DescribedLink, Description, Disjoint, Fraction, Rounds, SearchOutcome};

/// Ranks up to which a matrix of paths fits a terminal.
const MATRIX: u32 = 10;
/// The most nodes whose links are listed one by one.
const LISTED: usize = 32;

pub(super) fn print(described: &Description<'_>, topology: &Topology, costs: &Costs) -> String {
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
    if described.relative {
        text.push_str("B is the bandwidth of one link\n");
    }
    for [from, what] in &described.sources {
        let _ = writeln!(text, "{}", within_a_page(&format!("read: {what} ({from})"), 4));
    }
    for assumption in &described.assumptions {
        let _ = writeln!(text, "assumed: {assumption}");
    }
    for note in &described.notes {
        let _ = writeln!(text, "note: {note}");
    }
    let constants = format!("constants of predictions: {}", costs.source());
    let _ = writeln!(text, "{}", within_a_page(&constants, 4));
    let jobs = described.job_ranks.iter().flatten();
    if jobs.clone().enumerate().any(|(rank, job)| rank != *job as usize) {
        let jobs: Vec<_> = jobs.map(u32::to_string).collect();
        let last = jobs.len() - 1;
        let _ = writeln!(text, "ranks 0..={last} are ranks {} of the job", jobs.join(" "));
    }
    links(described, topology, &mut text);
    paths(described, &mut text);
    rings(described, &mut text);
    bounds(described, &mut text);
    text
}

/// Returns the properties of a link: its kind, bandwidth and latency.
fn quality(link: &DescribedLink, relative: bool) -> String {
    let latency = match link.latency_ns {
        0 => String::new(),
        ns => format!(" {}", time_text(ns)),
    };
    format!("{} {}{latency}", link.kind, bandwidth(link.bandwidth, relative))
}

pub(super) fn bandwidth(value: f64, relative: bool) -> String {
    match relative {
        true => format!("{} B", short(value)),
        // Three decimals would show 0.
        false if value < 1e6 => rate_text(value as u64),
        false => format!("{} GB/s", short(value / 1e9)),
    }
}

/// Formats four decimals: times in S/B.
fn micro(value: f64) -> String {
    format!("{value:.4}")
}

fn links(described: &Description<'_>, topology: &Topology, text: &mut String) {
    text.push_str("\nlinks\n");
    let mut lines = Vec::new();
    for links in described.links.chunk_by(|a, b| a.from == b.from) {
        let from = links[0].from;
        let node = &described.nodes[from as usize];
        let mut by_quality: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for link in links {
            let to = described.nodes[link.to as usize].name.clone();
            by_quality.entry(quality(link, described.relative)).or_default().push(to);
        }
        let rank = topology.is_rank(NodeId(from));
        let name = if rank { format!("rank {}", node.name) } else { node.name.clone() };
        for (quality, to) in by_quality {
            let more = if to.len() > LISTED { " …" } else { "" };
            let to = to.into_iter().take(LISTED).collect::<Vec<_>>().join(" ");
            lines.push((name.clone(), format!("{to}{more} ({quality})")));
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

/// Prints the result of a search, or why there is none, under a heading.
fn section<T>(
    heading: &str,
    found: &SearchOutcome<T>,
    text: &mut String,
    show: impl FnOnce(&T, &mut String),
) {
    let _ = writeln!(text, "\n{heading}");
    match found {
        SearchOutcome::Some(found) => show(found, text),
        SearchOutcome::None { none, notes } => {
            let _ = writeln!(text, "  none: {none}");
            for note in notes {
                let _ = writeln!(text, "    {note}");
            }
        }
    }
}

/// Formats a ring in its order, shortened where it is long.
fn order(ranks: &[u32]) -> String {
    let shown: Vec<_> = ranks.iter().take(LISTED).map(ToString::to_string).collect();
    let more = if ranks.len() > LISTED { " …" } else { "" };
    format!("{}{more}", shown.join(" "))
}

fn rings(described: &Description<'_>, text: &mut String) {
    section("ring", &described.ring, text, |ring, text| {
        let _ = writeln!(text, "  {}", order(ring));
    });
    if let Some(Disjoint { rings, proved }) = &described.disjoint_rings {
        let proved = if *proved { "and no more exist" } else { "more may exist" };
        let _ = writeln!(text, "\nrings without a common cable: {}, {proved}", rings.len());
        for ring in rings {
            let _ = writeln!(text, "  {}", order(ring));
        }
    }
    section("channels, by NCCL's search", &described.channels, text, |found, text| {
        let each = bandwidth(found.bandwidth, described.relative);
        let all = bandwidth(found.bandwidth * found.rings.len() as f64, described.relative);
        let fallback = if found.fallback { ", as a last resort" } else { "" };
        let rings = count(found.rings.len(), "channel");
        let _ = writeln!(text, "  {rings} of {each} over {}{fallback}: {all} in all", found.kind);
        for same in found.rings.chunk_by(|a, b| a == b).take(LISTED) {
            let times = if same.len() > 1 { format!(" (x{})", same.len()) } else { String::new() };
            let _ = writeln!(text, "  {}{times}", order(&same[0]));
        }
    });
    section("tree, two children at most", &described.tree, text, |tree, text| {
        let least = if tree.least { "no tree is shallower" } else { "a shallower one may exist" };
        let _ = writeln!(text, "  root {}, depth {}; {least}", tree.root, tree.depth);
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (child, parent) in tree.parents.iter().enumerate() {
            if let Some(parent) = parent {
                children.entry(*parent).or_default().push(child as u32);
            }
        }
        let edge =
            |(parent, children): (&u32, &Vec<u32>)| format!("{parent} -> {}", order(children));
        let edges: Vec<_> = children.iter().map(edge).collect();
        let shown = edges.iter().take(LISTED).cloned().collect::<Vec<_>>().join("; ");
        let more = if edges.len() > LISTED { "; …" } else { "" };
        let _ = writeln!(text, "  {shown}{more}");
    });
}

/// Formats a time for a byte of S: `7/27 S/B = 0.2593 S/B`, or the bandwidth that it comes to.
fn time(value: &Fraction, relative: bool) -> String {
    if value.seconds_per_byte == 0.0 {
        return "0".to_owned();
    }
    if relative {
        return format!("{} S/B = {} S/B", value.exactly, micro(value.seconds_per_byte));
    }
    format!("S / {} GB/s", short(1e-9 / value.seconds_per_byte))
}

fn bounds(described: &Description<'_>, text: &mut String) {
    let heading = "least time of any algorithm, S is nccl-tests' size in bytes, and what sets it";
    section(heading, &described.bounds, text, |found, text| {
        // The links that a runtime uses; the bounds of all links stand beside them.
        let used = found.nvlink.as_deref().unwrap_or(found);
        let time = |value| time(value, described.relative);
        let mut rows: Vec<Vec<String>> = Vec::new();
        for (bound, all) in used.collectives.iter().zip(&found.collectives) {
            let exact = if bound.exact { "" } else { " (of the cuts tried)" };
            let binding = format!("{}{exact}", bound.binding);
            rows.push(vec![
                bound.collective.to_owned(),
                time(&bound.time),
                time(&all.time),
                binding,
            ]);
        }
        let (equal, all) = (time(&used.equal_shards), time(&found.equal_shards));
        let what = "ReduceScatter, then AllGather".to_owned();
        rows.insert(1, vec!["  by equal shards".to_owned(), equal, all, what]);
        if let (Some(switch), Some(all)) = (&used.on_switch, &found.on_switch) {
            let (of_used, of_all) = (time(&switch.time), time(&all.time));
            let title = "  where the switch reduces".to_owned();
            rows.insert(2, vec![title, of_used, of_all, switch.binding.clone()]);
        }
        if found.nvlink.is_some() {
            let titles = ["", "over NVLink", "over all links", ""];
            rows.insert(0, titles.map(str::to_owned).to_vec());
        } else {
            for row in &mut rows {
                row.remove(2);
            }
        }
        aligned(&rows, text);
        if found.nvlink.is_some() {
            text.push_str("  no runtime uses NVLink and other links at once\n");
        }
        let switches = described.nodes.iter().any(|node| node.kind == "switch");
        if switches && found.on_switch.is_none() {
            text.push_str(
                "  a switch that reduces, as NVLink SHARP does, is outside of these bounds\n",
            );
        }
        let Rounds { one_port, all_ports, ports, diameter, farthest_ns } = &found.rounds;
        let _ = writeln!(
            text,
            "\nrounds: at least {one_port} where a rank sends one message at a time, {all_ports} where it uses all of {}",
            count(*ports as usize, "port")
        );
        let _ = writeln!(
            text,
            "  the farthest ranks are {} apart{}",
            count(*diameter as usize, "message"),
            match farthest_ns {
                None | Some(0) => String::new(),
                Some(ns) => format!(", {} for a message", time_text(*ns)),
            }
        );
    });
}

fn paths(described: &Description<'_>, text: &mut String) {
    let n = described.nranks;
    if n < 2 {
        return;
    }
    let unit = if described.relative { "B" } else { "GB/s" };
    let scale = if described.relative { 1.0 } else { 1e9 };
    if n > MATRIX {
        let mut kinds: BTreeMap<(String, usize), usize> = BTreeMap::new();
        for path in &described.paths {
            let what = format!("{} {} {unit}", path.kind, short(path.bandwidth / scale));
            *kinds.entry((what, path.hops)).or_default() += 1;
        }
        let _ = writeln!(text, "\npaths between ranks, by the rules of {}", described.rules);
        for ((what, hops), pairs) in kinds {
            let _ = writeln!(text, "  {what}, {}: {pairs} pairs", count(hops, "hop"));
        }
        return;
    }
    let rules = described.rules;
    let _ = writeln!(text, "\npaths from row to column, by the rules of {rules}: type and {unit}");
    let mut rows = vec![vec![String::new()]];
    rows[0].extend((0..n).map(|r| r.to_string()));
    for from in 0..n {
        let mut row = vec![from.to_string()];
        for to in 0..n {
            let path = described.paths.iter().find(|p| (p.from, p.to) == (from, to));
            row.push(path.filter(|p| p.hops > 0).map_or_else(
                || "-".to_owned(),
                |p| format!("{} {}", p.kind, short(p.bandwidth / scale)),
            ));
        }
        rows.push(row);
    }
    aligned(&rows, text);
}

/// Columns as wide as their widest cell.
pub(crate) fn aligned(rows: &[Vec<String>], text: &mut String) {
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
