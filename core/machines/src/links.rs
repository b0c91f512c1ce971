//! A topology as a list of links, for machines that no constructor of the language has.
//!
//! ```text
//! ranks 4              # ranks have the numbers 0..4
//! switch net           # a node that only forwards
//! 0 -- 1  50GB/s 2us   # a link in each direction, its bandwidth and its latency
//! 1 -> 2  12.5GB/s     # a link in one direction
//! ```
//!
//! A bandwidth without a unit is a multiple of B, the bandwidth of one link; then all bandwidths are. The latency may be
//! left out, and is 0 then. Links that are named twice add up.

use rustc_hash::FxHashMap;

use roundelay_base::diagnostics::Code;
use roundelay_base::rational::Rat;
use roundelay_topology::draft::{Draft, SWITCHES};
use roundelay_topology::file::show;
use roundelay_topology::{Fabric, Link, LinkKind, NodeId, NodeKind, Problem};

/// The most words of a line that are kept: more than a line has.
const WORDS: usize = 16;
/// The units of bandwidths, in bytes a second.
const RATES: [(&str, u64); 4] =
    [("TB/s", 1_000_000_000_000), ("GB/s", 1_000_000_000), ("MB/s", 1_000_000), ("KB/s", 1000)];
/// The units of latencies, in nanoseconds.
const TIMES: [(&str, u64); 3] = [("ms", 1_000_000), ("us", 1000), ("ns", 1)];

/// Reads the text of a list of links; `name` is the name of the topology.
///
/// # Errors
/// E0601 and E0602 with the number of the line, and the errors of a topology as a whole.
pub fn read(name: &str, text: &str) -> Result<Fabric, Problem> {
    let lines = || {
        let words = (1..).zip(text.lines()).map(|(number, line)| {
            let line = line.split_once('#').map_or(line, |(before, _)| before);
            (number, line.split_whitespace().take(WORDS).collect::<Vec<&str>>())
        });
        words.filter(|(_, words)| !words.is_empty())
    };
    let wrong = |number: usize, why: &str| {
        Problem::new(Code::BadTopology, format!("line {number}: {why}"))
            .help("lines are `ranks 8`, `switch net`, `0 -- 1 50GB/s 2us` or `0 -> 1 50GB/s`")
    };
    let at = |number: usize, mut problem: Problem| {
        problem.title = format!("line {number}: {}", problem.title);
        problem
    };
    let Some((first, ranks)) = lines().next() else {
        return Err(wrong(1, "a list of links begins with the number of ranks"));
    };
    let ["ranks", count] = ranks[..] else {
        return Err(wrong(first, "a list of links begins with the number of ranks"));
    };
    let count: u64 = count.parse().map_err(|_| wrong(first, "`ranks` takes a whole number"))?;
    let link = lines().skip(1).find(|(_, words)| words.len() >= 4);
    let relative = link.is_some_and(|(_, words)| number(words[3]).is_some());
    let mut draft = Draft::new(name, count, relative).map_err(|problem| at(first, problem))?;
    let mut nodes: FxHashMap<String, NodeId> =
        (0..count as u32).map(|rank| (rank.to_string(), NodeId(rank))).collect();
    let mut all: FxHashMap<(NodeId, NodeId), (usize, Rat, u64)> = FxHashMap::default();
    let mut switches = 0;
    for (line, words) in lines().skip(1) {
        if let ["switch", name] = words[..] {
            switches += 1;
            if switches > SWITCHES {
                return Err(wrong(line, &format!("more than {SWITCHES} switches")));
            }
            let id = draft.switch(name, NodeKind::NvSwitch, None);
            if nodes.insert(name.to_owned(), id).is_some() {
                return Err(wrong(line, &format!("there are two nodes `{}`", show(name))));
            }
            continue;
        }
        let [from, way @ ("--" | "->"), to, rate, ref latency @ ..] = words[..] else {
            return Err(wrong(line, "this is no link"));
        };
        let node = |name: &str| {
            let unknown = format!("there is no rank or switch `{}`", show(name));
            nodes.get(name).copied().ok_or_else(|| {
                Problem::new(Code::BadLink, format!("line {line}: {unknown}")).help(
                    "ranks are numbers below that of `ranks`; a switch is named before its links",
                )
            })
        };
        let (from, to) = (node(from)?, node(to)?);
        let capacity = if relative { number(rate) } else { in_units(rate, &RATES) };
        let capacity = capacity.ok_or_else(|| {
            let other = if relative { "a multiple of B, as above" } else { "such as 12.5GB/s" };
            wrong(line, &format!("`{}` is no bandwidth: {other}", show(rate)))
        })?;
        let latency = match latency {
            [] => Some(Rat::ZERO),
            [time] => in_units(time, &TIMES),
            _ => None,
        };
        let latency = latency
            .filter(|time| time.den() == 1)
            .ok_or_else(|| wrong(line, "a latency is a whole number of ns, such as 0.7us"))?;
        let both = [(from, to), (to, from)];
        for ends in &both[..if way == "--" { 2 } else { 1 }] {
            let known = all.entry(*ends).or_insert((line, Rat::ZERO, 0));
            let sum = known.1.plus(capacity).ok_or_else(|| wrong(line, "too fine a bandwidth"))?;
            *known = (line, sum, known.2.max(latency.num()));
        }
    }
    let mut links: Vec<_> = all.into_iter().collect();
    links.sort_unstable_by_key(|(ends, _)| *ends);
    for ((from, to), (line, capacity, latency)) in links {
        let link = Link { from, to, kind: LinkKind::NvLink, capacity, latency };
        draft.link(link).map_err(|problem| at(line, problem))?;
    }
    draft.build()
}

/// Reads a number with decimals.
pub(super) fn number(text: &str) -> Option<Rat> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(decimals) || decimals.len() > 9 {
        return None;
    }
    let den = 10_u64.pow(decimals.len() as u32);
    let whole = whole.parse::<u64>().ok()?.checked_mul(den)?;
    Rat::new(whole.checked_add(format!("0{decimals}").parse().ok()?)?, den)
}

/// Reads a number with a unit.
fn in_units(text: &str, units: &[(&str, u64)]) -> Option<Rat> {
    let (number_text, times) = units
        .iter()
        .find_map(|(unit, times)| text.strip_suffix(unit).map(|number| (number, *times)))?;
    number(number_text)?.times(times)
}
