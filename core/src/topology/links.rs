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

use super::draft::{Draft, SWITCHES};
use super::file::shown;
use super::{Link, LinkKind, NodeId, NodeKind, Problem, Topology};
use crate::diagnostics::Code;
use crate::rational::Rat;

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
pub fn read(name: &str, text: &str) -> Result<Topology, Problem> {
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
                return Err(wrong(line, &format!("there are two nodes `{}`", shown(name))));
            }
            continue;
        }
        let [from, way @ ("--" | "->"), to, rate, ref latency @ ..] = words[..] else {
            return Err(wrong(line, "this is no link"));
        };
        let node = |name: &str| {
            let unknown = format!("there is no rank or switch `{}`", shown(name));
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
            wrong(line, &format!("`{}` is no bandwidth: {other}", shown(rate)))
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

#[cfg(test)]
mod tests {
    use super::read;
    use crate::topology::Topology;

    fn shown(text: &str) -> String {
        match read("test", text) {
            Ok(topology) => {
                let link = |l: &crate::topology::Link| {
                    format!("{}>{} {} {}", l.from.0, l.to.0, l.capacity, l.latency)
                };
                topology.links().iter().map(link).collect::<Vec<_>>().join(", ")
            }
            Err(problem) => format!("{} {}", problem.code, problem.title),
        }
    }

    #[test]
    fn links_of_both_kinds() {
        let text = "# a pair\nranks 2\nswitch net\n0 -- net 12.5GB/s 0.7us\nnet -> 1 1MB/s\n1 -> 0 3GB/s\n";
        assert_eq!(
            shown(text),
            "0>2 12500000000 700, 1>0 3000000000 0, 2>0 12500000000 700, 2>1 1000000 0"
        );
        assert_eq!(shown("ranks 2\n0 -- 1 1.5\n0 -> 1 0.5"), "0>1 2 0, 1>0 3/2 0");
        let relative: Topology = read("test", "ranks 2\n0 -- 1 1").expect("a pair");
        assert!(relative.is_relative());
    }

    #[test]
    fn wrong_lists() {
        for (text, told) in [
            ("", "E0601 line 1: a list of links begins with the number of ranks"),
            ("0 -- 1 5", "E0601 line 1: a list of links begins with the number of ranks"),
            ("ranks many", "E0601 line 1: `ranks` takes a whole number"),
            ("ranks 0", "E0601 line 1: a topology of 0 ranks; it takes 1..=65536"),
            ("ranks 2\n0 - 1 5", "E0601 line 2: this is no link"),
            ("ranks 2\n0 -- 2 5", "E0602 line 2: there is no rank or switch `2`"),
            ("ranks 2\n0 -- 0 5", "E0602 line 2: rank 0 is linked to itself"),
            (
                "ranks 2\n0 -- 1 5\n1 -> 0 5GB/s",
                "E0601 line 3: `5GB/s` is no bandwidth: a multiple of B, as above",
            ),
            ("ranks 2\n0 -- 1 5GB", "E0601 line 2: `5GB` is no bandwidth: such as 12.5GB/s"),
            ("ranks 2\n0 -- 1 0GB/s", "E0601 line 2: link rank 0 -> rank 1 carries 0 bytes/s"),
            (
                "ranks 2\n0 -- 1 5GB/s 0.5ns",
                "E0601 line 2: a latency is a whole number of ns, such as 0.7us",
            ),
            ("ranks 2\nswitch 1", "E0601 line 2: there are two nodes `1`"),
            (
                "ranks 3\n0 -- 1 5",
                "E0603 the topology falls into 2 parts that cannot reach each other",
            ),
        ] {
            assert_eq!(shown(text), told, "{text}");
        }
    }
}
