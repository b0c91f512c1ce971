//! Topologies for simulations of collectives in ns-3, in the form that ASTRA-sim and `SimAI` share: links between
//! numbered nodes, of which some are switches.
//!
//! ```text
//! 6 2 5                    nodes, switches, links
//! 4 5                      the numbers of the switches
//! 0 4 200Gbps 0.005ms 0    a link both ways: its ends, bandwidth, delay and rate of errors
//! ```
//!
//! The first line of `SimAI` has six words: nodes, GPUs of a server, `NVSwitches`, other switches, links, and the kind
//! of the GPUs. The other nodes are the ranks, in ascending order.

use std::collections::HashSet;

use super::links::number;
use crate::file_words::{Line, Word, lines};
use roundelay_base::diagnostics::Code;
use roundelay_base::rational::Rat;
use roundelay_topology::draft::{Draft, SLOWEST, SWITCHES};
use roundelay_topology::file::{File, show};
use roundelay_topology::{Fabric, LinkKind, NodeId, NodeKind, Problem};

/// The powers of two and ten with which the units of bandwidths begin.
const POWERS: [(&str, u64); 9] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("k", 1_000),
    ("K", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];
/// The units of delays, in picoseconds.
const TIMES: [(&str, u64); 5] =
    [("ms", 1_000_000_000), ("us", 1_000_000), ("ns", 1000), ("ps", 1), ("s", 1_000_000_000_000)];

/// Whether a file with this first line has the form: three numbers, or five and a word.
pub(super) fn begins(first: &Line) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = |word: &Word| digits(word.text.strip_prefix('-').unwrap_or(word.text));
    match first.words.len() {
        3 => first.words.iter().all(is_number),
        6 => first.words[..5].iter().all(is_number),
        _ => false,
    }
}

/// The counts of the first line.
struct NodeCounts<'a> {
    ranks: u64,
    /// The number of `NVSwitches`, whose numbers come first.
    nvswitches: u64,
    switches: u64,
    links: u64,
    at_links: Word<'a>,
}

impl<'a> NodeCounts<'a> {
    fn read(file: File, first: &Line<'a>) -> Result<Self, Problem> {
        let count = |at: usize, what: &str| {
            let word = first.words[at];
            let value: Option<u64> = word.text.parse().ok();
            value.ok_or_else(|| wrong(file, word, &format!("no number of {what}")))
        };
        let nodes = count(0, "nodes")?;
        let (nvswitches, others, last, at) = if first.words.len() == 3 {
            (0, count(1, "switches")?, 1, 2)
        } else {
            count(1, "GPUs of a server")?;
            (count(2, "NVSwitches")?, count(3, "switches")?, 3, 4)
        };
        let links = count(at, "links")?;
        let switches = nvswitches.saturating_add(others);
        if switches > SWITCHES.min(nodes) {
            let title = format!("{switches} switches of {nodes} nodes; the most are {SWITCHES}");
            return Err(file.problem(Code::BadTopology, first.words[last].at, title));
        }
        if links > Fabric::LINK_LIMIT as u64 / 2 {
            let title = format!("{links} links; the most are {}", Fabric::LINK_LIMIT / 2);
            return Err(file.problem(Code::BadTopology, first.words[at].at, title));
        }
        Ok(Self { ranks: nodes - switches, nvswitches, switches, links, at_links: first.words[at] })
    }
}

/// Reads the file, and returns notes about it.
pub(super) fn read(file: File) -> Result<(Fabric, Vec<String>), Problem> {
    let mut lines = lines(&file);
    let Some(first) = lines.next() else {
        return Err(file.problem(Code::BadTopology, 0, "the file is empty"));
    };
    let counts = NodeCounts::read(file, &first)?;
    let draft = Draft::new(file.name, counts.ranks, false);
    let mut reader = Reader {
        file,
        draft: draft.map_err(|problem| file.at_line(first.words[0].at, problem))?,
        nodes: counts.ranks + counts.switches,
        switches: Vec::new(),
        named: HashSet::new(),
        pairs: HashSet::new(),
        lossy: 0,
    };
    while (reader.switches.len() as u64) < counts.switches {
        let line = lines.next().ok_or_else(|| {
            let title = format!(
                "the file ends after {} of {} switches",
                reader.switches.len(),
                counts.switches
            );
            file.problem(Code::BadTopology, file.text.len(), title).help("is it cut off?")
        })?;
        for word in line.words {
            reader.switch(word, &counts)?;
        }
    }
    reader.switches.sort_unstable();
    for line in lines {
        if reader.pairs.len() as u64 >= counts.links {
            let title = format!("the first line says {} links, and this is one more", counts.links);
            return Err(file.problem(Code::BadTopology, line.words[0].at, title));
        }
        reader.link(&line)?;
    }
    let read = reader.pairs.len() as u64;
    if read < counts.links {
        let title = format!("the file ends after {read} of {} links", counts.links);
        return Err(file
            .problem(Code::BadTopology, file.text.len(), title)
            .note(format!("{} of the first line is their number", counts.at_links.text))
            .help("is it cut off?"));
    }
    let notes = reader.notes(counts.ranks);
    Ok((reader.draft.build()?, notes))
}

fn wrong(file: File, word: Word, why: &str) -> Problem {
    file.problem(Code::BadTopology, word.at, format!("`{}` is {why}", show(word.text)))
}

/// A file that is read, behind its first line.
struct Reader<'a> {
    file: File<'a>,
    draft: Draft,
    nodes: u64,
    /// The numbers of the switches in the file, and their nodes.
    switches: Vec<(u64, NodeId)>,
    named: HashSet<u64>,
    /// The ends of the links, the smaller one first.
    pairs: HashSet<(NodeId, NodeId)>,
    /// The links that have a rate of errors.
    lossy: usize,
}

impl Reader<'_> {
    /// Reads the number of a node.
    fn number(&self, word: Word) -> Result<u64, Problem> {
        let number = word.text.parse().ok().filter(|number| *number < self.nodes);
        number.ok_or_else(|| {
            let title = format!("there is no node `{}`", show(word.text));
            let nodes = format!("the nodes are 0..{}", self.nodes);
            self.file.problem(Code::BadLink, word.at, title).note(nodes)
        })
    }

    fn switch(&mut self, word: Word, counts: &NodeCounts) -> Result<(), Problem> {
        let read = self.switches.len() as u64;
        let number = self.number(word)?;
        if read >= counts.switches {
            return Err(wrong(self.file, word, "a switch more than the first line says"));
        }
        if !self.named.insert(number) {
            return Err(wrong(self.file, word, "a switch that is named before"));
        }
        let node = if read < counts.nvswitches {
            self.draft.switch(format!("NVSwitch {number}"), NodeKind::NvSwitch, None)
        } else {
            self.draft.switch(format!("switch {number}"), NodeKind::Net, None)
        };
        self.switches.push((number, node));
        Ok(())
    }

    /// Returns the node of a number, and whether it is a switch of the network.
    fn node(&self, word: Word) -> Result<(NodeId, bool), Problem> {
        let number = self.number(word)?;
        match self.switches.binary_search_by_key(&number, |(known, _)| *known) {
            Ok(at) => {
                let (_, node) = self.switches[at];
                Ok((node, self.draft.kind(node) == NodeKind::Net))
            }
            Err(below) => Ok((NodeId((number - below as u64) as u32), false)),
        }
    }

    fn link(&mut self, line: &Line) -> Result<(), Problem> {
        let file = self.file;
        let [from, to, rate, delay, errors] = line.words[..] else {
            let at = line.words.get(5).map_or(line.end, |word| word.at);
            return Err(file
                .problem(Code::BadTopology, at, "a link has five words")
                .help("its ends, bandwidth, delay and rate of errors: `0 1 200Gbps 0.005ms 0`"));
        };
        let ((a, net_a), (b, net_b)) = (self.node(from)?, self.node(to)?);
        let capacity = bandwidth(rate.text)
            .ok_or_else(|| wrong(file, rate, "no bandwidth").help("it is such as 200Gbps"))?;
        let latency = nanoseconds(delay.text).ok_or_else(|| {
            let help = "it is a whole number of nanoseconds, at most an hour, such as 0.005ms";
            wrong(file, delay, "no delay").help(help)
        })?;
        let share: Option<f64> = errors.text.parse().ok().filter(|rate| (0.0..=1.0).contains(rate));
        let share =
            share.ok_or_else(|| wrong(file, errors, "no rate of errors").help("it is 0..=1"))?;
        self.lossy += usize::from(share > 0.0);
        if !self.pairs.insert((a.min(b), a.max(b))) {
            let title = format!("the link {} - {} is named twice", from.text, to.text);
            return Err(file
                .problem(Code::BadLink, from.at, title)
                .help("a link goes both ways: name it once, with the bandwidth of all its lanes"));
        }
        let kind = if net_a || net_b { LinkKind::Net } else { LinkKind::NvLink };
        self.draft.cable(a, b, kind, capacity, latency).map_err(|problem| {
            let word = if problem.code == Code::BadLink { to } else { rate };
            file.at_line(word.at, problem)
        })
    }

    fn notes(&self, ranks: u64) -> Vec<String> {
        let mut notes = Vec::new();
        if self.switches.first().is_some_and(|(number, _)| *number < ranks) {
            let note = "switches have lower numbers than other nodes: the ranks are the other nodes in their order";
            notes.push(note.to_owned());
        }
        if self.lossy > 0 {
            notes.push(format!(
                "links lose packets, which no time takes into account ({})",
                self.lossy
            ));
        }
        notes
    }
}

/// Reads a bandwidth in bits (`200Gbps`, `1Mb/s`) or bytes (`25GBps`, `25GB/s`), as bytes a second.
fn bandwidth(text: &str) -> Option<Rat> {
    let units = [("bps", 8), ("b/s", 8), ("Bps", 1), ("B/s", 1)];
    let (rest, parts) =
        units.iter().find_map(|(unit, parts)| Some((text.strip_suffix(unit)?, *parts)))?;
    let power = POWERS.iter().find_map(|(name, power)| Some((rest.strip_suffix(name)?, *power)));
    let (digits, power) = power.unwrap_or((rest, 1));
    over(number(digits)?.times(power)?, parts)
}

/// Reads a delay, which is in seconds where it has no unit.
fn nanoseconds(text: &str) -> Option<u64> {
    let unit = TIMES.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, *unit)));
    let (digits, unit) = unit.unwrap_or((text, 1_000_000_000_000));
    let time = over(number(digits)?.times(unit)?, 1000)?;
    (time.den() == 1).then(|| time.num()).filter(|time| *time <= SLOWEST)
}

fn over(value: Rat, parts: u64) -> Option<Rat> {
    Rat::new(value.num(), value.den().checked_mul(parts)?)
}
