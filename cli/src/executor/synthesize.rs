//! `executor synthesize`: an executor for a mesh with dead links, of the algorithms that are the fastest in a simulated
//! run, and its times beside those of the library's executor and of the published entry.

use std::fmt::Write as _;
use std::sync::Arc;

use roundelay::library::SOURCES;
use roundelay_core::diagnostics::Code;
use roundelay_core::executor::Executor;
use roundelay_core::topology::Topology;
use roundelay_core::units::microseconds;
use roundelay_export::contest::{Export, SIGNALS, contest};
use roundelay_synthesis::executor::{
    ExecutorSearch, FoundClass, FoundExecutor, FoundTimes, Links, OURS, mesh,
};
use serde::Serialize;

use super::executor_flags::SynthesisFlags;
use super::{misfits, size};
use crate::report::{Failure, Format, quoted};
use crate::streams::{print, print_json};
use crate::synthesize::CONTEXT;
use crate::topo::short;
use crate::topology;

/// The most ranks of an executor that is synthesised.
const MOST_RANKS: u32 = 32;

#[derive(Serialize)]
struct SynthesisReport<'a> {
    ok: bool,
    topology: &'a str,
    nranks: u32,
    /// The sizes in bytes at which executors are compared.
    sizes: &'a [u64],
    classes: Vec<ClassJson>,
    score: Score,
    /// The least times of each algorithm, over all numbers of slices.
    tried: Vec<Tried>,
    page: String,
}

#[derive(Serialize)]
struct ClassJson {
    /// Bytes; `null` for the last class.
    below: Option<u64>,
    algorithm: String,
}

/// Simulated times at the compared sizes, in microseconds.
#[derive(Serialize)]
struct Score {
    synthesized: Vec<f64>,
    /// The classes of the library's executor on this machine, if they run on it.
    library: Option<Vec<f64>>,
    /// The ring of the published entry, if there is one.
    ring: Option<Vec<f64>>,
    /// The least that any algorithm could take.
    bound: Vec<f64>,
}

#[derive(Serialize)]
struct Tried {
    algorithm: String,
    simulated_us: Vec<f64>,
}

pub(super) fn main(flags: &SynthesisFlags) -> Result<bool, Failure> {
    let (text, topology) = machine(flags)?;
    let mut sizes = flags.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    let exports = |executor: &Executor| match contest(&Export::new(executor, |_| None)) {
        Ok(_) => Ok(()),
        Err(all) => Err(misfits(executor, all)),
    };
    let search = ExecutorSearch {
        text,
        topology,
        sizes,
        links: flags.links.links(),
        library: SOURCES,
        signals: SIGNALS,
        exports: &exports,
        context: CONTEXT,
    };
    let FoundExecutor { page, classes, times, tried } = search.find()?;
    let score = Score::of(times);
    let tried: Vec<Tried> = tried.into_iter().map(Tried::of).collect();
    let page = head(&search, &score, &tried) + &page;
    match flags.format {
        Format::Human => print(page.trim_end()),
        Format::Json => print_json(&SynthesisReport {
            ok: true,
            topology: &search.text,
            nranks: search.topology.nranks(),
            sizes: &search.sizes,
            classes: classes.into_iter().map(ClassJson::of).collect(),
            score,
            tried,
            page,
        }),
    }
    Ok(true)
}

/// Returns the text of the machine, and its topology.
fn machine(flags: &SynthesisFlags) -> Result<(String, Arc<Topology>), Failure> {
    let (given, nranks) = flags.machine.read()?;
    given.holds_pairs(nranks)?;
    if nranks > MOST_RANKS {
        let title = format!("{nranks} ranks are too many: an executor is found for {MOST_RANKS}");
        return Err(Failure::usage(Code::BadTopology, title).with_help(
            "take the first ranks with --nranks, or find one algorithm by `synthesize`",
        ));
    }
    if nranks == given.nranks() && flags.machine.is_text() {
        return Ok((flags.machine.topology.trim().to_owned(), given));
    }
    let text = mesh(&given, nranks).ok_or_else(|| {
        let title = format!("the first {nranks} ranks are no mesh of equal links");
        Failure::usage(Code::BadTopology, title).with_help(
            "give a text of the language whose ranks all take part, such as \"groups([4, 4])\"",
        )
    })?;
    let topology = topology::read(&text, None)?.topology;
    Ok((text, topology))
}

impl ClassJson {
    fn of(FoundClass { below, algorithm }: FoundClass) -> Self {
        Self { below, algorithm }
    }
}

impl Score {
    fn of(times: FoundTimes) -> Self {
        let us = |times: Vec<f64>| times.into_iter().map(microseconds).collect();
        Self {
            synthesized: us(times.synthesized),
            library: times.library.map(us),
            ring: times.ring.map(us),
            bound: us(times.bound),
        }
    }
}

impl Tried {
    fn of((algorithm, seconds): (String, Vec<f64>)) -> Self {
        Self { algorithm, simulated_us: seconds.into_iter().map(|time| time * 1e6).collect() }
    }
}

/// Returns the comment at the head of the page.
fn head(search: &ExecutorSearch<'_>, score: &Score, tried: &[Tried]) -> String {
    let ExecutorSearch { text, topology, sizes, .. } = search;
    let mut call = format!("roundelay executor synthesize --topology {}", quoted(text));
    if sizes[..] != [1 << 10, 1 << 20, 1 << 30] {
        let all: Vec<String> = sizes.iter().map(u64::to_string).collect();
        let _ = write!(call, " --sizes {}", all.join(","));
    }
    let Links { bandwidth, latency } = search.links;
    let (bandwidth, latency) = (short(bandwidth / 1e9), short(latency * 1e6));
    let links = [("--bandwidth", "GB/s", "25", &bandwidth), ("--latency", "us", "2", &latency)];
    for (flag, unit, usual, value) in links {
        if value != usual {
            let _ = write!(call, " {flag} {value}{unit}");
        }
    }
    let mut lines = vec![
        format!("AllReduce of {} ranks on {text}.", topology.nranks()),
        format!("Written by `{call}`."),
        String::new(),
    ];
    let line = |name: &str, cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>12}")).collect();
        format!("  {name:<42} {}", cells.join(" "))
    };
    let texts: Vec<String> = sizes.iter().map(|bytes| size(*bytes)).collect();
    let row = |name: &str, times: Option<&[f64]>| {
        let cells: Vec<String> = match times {
            Some(times) => times.iter().map(|time| format!("{time:.1}")).collect(),
            None => sizes.iter().map(|_| "none".to_owned()).collect(),
        };
        line(name, &cells)
    };
    let links = if topology.is_relative() {
        format!(" with links of {bandwidth} GB/s and {latency} us")
    } else {
        String::new()
    };
    lines.push(format!("Simulated times in us, as of `executor score`{links}:"));
    lines.push(line("", &texts));
    lines.push(row("this executor", Some(&score.synthesized)));
    lines.push(row(&format!("the classes of {OURS}"), score.library.as_deref()));
    lines.push(row("the ring of the published entry", score.ring.as_deref()));
    lines.push(row("the bound", Some(&score.bound)));
    lines.push("The best of what was tried, over all numbers of slices:".to_owned());
    lines.extend(tried.iter().map(|of| row(&of.algorithm, Some(&of.simulated_us))));
    lines.iter().map(|line| format!("// {line}").trim_end().to_owned() + "\n").collect()
}
