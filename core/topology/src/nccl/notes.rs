//! Oddities of a machine: GPUs that have fewer or more links than most of the others.

use roundelay_base::units::plural;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The number of ranks named before the rest is only counted.
const NAMED: usize = 8;

/// Returns a sentence without a full stop about the GPUs that differ from most: `counts` are the numbers of links of
/// each, called `link`, and `ranks` are the ranks of the job.
pub(super) fn unlike(counts: &[u64], link: &str, ranks: &[u32]) -> Option<String> {
    let mut by_count: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for (rank, count) in counts.iter().enumerate() {
        by_count.entry(*count).or_default().push(rank);
    }
    let (&usual, most) = by_count.iter().max_by_key(|(_, ranks)| ranks.len())?;
    if by_count.len() == 1 || most.len() * 2 <= counts.len() {
        return None;
    }
    let mut text = String::new();
    for (count, odd) in by_count.iter().filter(|(count, _)| **count != usual) {
        let has = match count {
            0 => format!("no {link}"),
            1 => format!("1 {link}"),
            n => format!("{n} {link}s"),
        };
        let have = if odd.len() == 1 { "has" } else { "have" };
        let _ = write!(text, "{} {have} {has}, ", named(odd, ranks));
    }
    let usual = if usual == 0 { "none".to_owned() } else { usual.to_string() };
    Some(format!("{text}the {} others {usual}", most.len()))
}

/// Names ranks by their numbers, and by those in the job where they differ.
fn named(odd: &[usize], ranks: &[u32]) -> String {
    let name = |rank: &usize| match ranks.get(*rank) {
        Some(job) if *job as usize != *rank => format!("{rank} ({job} of the job)"),
        _ => rank.to_string(),
    };
    let names: Vec<_> = odd.iter().take(NAMED).map(name).collect();
    let more = match odd.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let plural = plural(odd.len());
    format!("rank{plural} {}{more}", names.join(", "))
}
