//! `executor synthesize`: an executor for a mesh with dead links, of the algorithms that are the fastest in a simulated
//! run, and its times beside those of the library's executor and of the published entry.

mod candidates;
mod classes;
mod machine;
mod page;
mod shortest;
mod waves;

use std::fmt::Write as _;

use roundelay::library::SOURCES;
use roundelay_core::diagnostics::Code;
use roundelay_core::dtype::DType;
use roundelay_core::executor::Executor;
use roundelay_core::syntax::Source;
use roundelay_core::units::microseconds;
use roundelay_export::contest::{Export, contest};
use serde::Serialize;

use super::flags::{LinkFlags, SynthesisFlags};
use super::{compiled, simulated, size};
use crate::progress;
use crate::report::{Failure, Format, quoted};
use crate::streams::{print, print_json};
use crate::synthesize::fault;
use crate::topo::short;
use candidates::{Candidate, ExecutorSearch, RING};
use classes::{Range, chosen};

/// The executor of the library whose classes are compared, and its machine.
const OURS: &str = "AllLinksAllReduceMesh";
const OURS_ON: &str = "full_mesh(8) without (0, 1)";
/// The weight of a size at which executors are compared; the sizes between have 1.
const COMPARED: f64 = 100.0;
/// The parts of the range between two sizes in which the bound of a class is looked for.
const STEPS: u64 = 16;

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
    let (text, topology) = machine::of(flags)?;
    let search = ExecutorSearch { flags, text, topology };
    let nranks = search.topology.nranks();
    let mut sizes = flags.sizes.clone();
    sizes.sort_unstable();
    sizes.dedup();
    if let Some(bytes) = sizes.first().filter(|bytes| **bytes < DType::F32.size() as u64) {
        let title = format!("a call of {bytes} bytes holds no {}", DType::F32);
        return Err(Failure::usage(Code::BadFlag, title));
    }
    let candidates = search.candidates()?;
    if candidates.is_empty() {
        let title = format!("no algorithm was found for {}", search.text);
        return Err(Failure::usage(Code::BadTopology, title)
            .with_help("each link of an executor's machine works in both directions"));
    }
    let (grid, weights) = grid(&sizes);
    let row = |of: &Candidate| -> Result<Vec<f64>, Failure> {
        progress::about(of.call.clone());
        grid.iter().map(|bytes| search.seconds(&of.executor, *bytes)).collect()
    };
    let times = candidates.iter().map(row).collect::<Result<Vec<_>, _>>()?;
    let ranges = chosen(&times, &weights);
    let mut classes = Vec::new();
    for (at, range) in ranges.iter().enumerate() {
        let below =
            ranges.get(at + 1).map(|next| search.crossing(&candidates, &grid, *range, *next));
        let algorithm = candidates[range.candidate].call.clone();
        classes.push(ClassJson { below: below.transpose()?, algorithm });
    }
    let used: Vec<&Candidate> = ranges.iter().map(|range| &candidates[range.candidate]).collect();
    let (pages, executor) = search.whole(&classes, &used)?;
    let at = |executor: &Executor| -> Result<Vec<f64>, Failure> {
        sizes.iter().map(|bytes| Ok(microseconds(search.seconds(executor, *bytes)?))).collect()
    };
    let least = |bytes: &u64| {
        Ok(microseconds(simulated::least(&executor, *bytes, DType::F32, &flags.links)?))
    };
    let score = Score {
        synthesized: at(&executor)?,
        library: search.ours().as_ref().map(at).transpose()?,
        ring: candidates.iter().find(|c| c.call == RING).map(|c| at(&c.executor)).transpose()?,
        bound: sizes.iter().map(least).collect::<Result<_, Failure>>()?,
    };
    let columns = sizes.iter().map(|size| grid.iter().position(|of| of == size));
    let columns: Vec<usize> =
        columns.map(|column| column.expect("a size is one of the grid")).collect();
    let tried = tried(&candidates, &times, &columns);
    let head = search.head(&sizes, &score, &tried);
    let page = format!("{head}{pages}");
    match flags.format {
        Format::Human => print(page.trim_end()),
        Format::Json => print_json(&SynthesisReport {
            ok: true,
            topology: &search.text,
            nranks,
            sizes: &sizes,
            classes,
            score,
            tried,
            page,
        }),
    }
    Ok(true)
}

/// Returns the sizes that are simulated: the compared ones and, between these, each four times the last. The second list
/// has their weights.
fn grid(sizes: &[u64]) -> (Vec<u64>, Vec<f64>) {
    let (first, last) = (sizes.first().copied().unwrap_or(1), sizes.last().copied().unwrap_or(1));
    let between = std::iter::successors(Some(1_u64), |size| size.checked_mul(4));
    let mut grid: Vec<u64> = between.filter(|size| (first..=last).contains(size)).collect();
    grid.extend_from_slice(sizes);
    grid.sort_unstable();
    grid.dedup();
    let weights = grid.iter().map(|of| if sizes.contains(of) { COMPARED } else { 1.0 }).collect();
    (grid, weights)
}

/// Returns the least times of each algorithm at some sizes, in microseconds.
fn tried(candidates: &[Candidate], times: &[Vec<f64>], columns: &[usize]) -> Vec<Tried> {
    let mut tried: Vec<Tried> = Vec::new();
    for (candidate, row) in candidates.iter().zip(times) {
        let now: Vec<f64> = columns.iter().map(|column| row[*column] * 1e6).collect();
        match tried.iter_mut().find(|of| of.algorithm == candidate.name) {
            Some(known) => {
                for (known, now) in known.simulated_us.iter_mut().zip(now) {
                    *known = known.min(now);
                }
            }
            None => tried.push(Tried { algorithm: candidate.name.clone(), simulated_us: now }),
        }
    }
    tried
}

impl ExecutorSearch<'_> {
    /// Returns the size in bytes from which the next class is as fast as the one before it.
    fn crossing(
        &self,
        candidates: &[Candidate],
        grid: &[u64],
        this: Range,
        next: Range,
    ) -> Result<u64, Failure> {
        let (first, last) = (grid[this.end - 1], grid[this.end]);
        let step = ((last - first) / STEPS).max(1);
        for bytes in (1..STEPS).map(|at| first + at * step).filter(|bytes| *bytes < last) {
            let of = |range: Range| self.seconds(&candidates[range.candidate].executor, bytes);
            if of(next)? <= of(this)? {
                return Ok(bytes);
            }
        }
        Ok(last)
    }

    /// Returns the algorithms and the executor as a text, and the executor: proved, also with the flags of the contest,
    /// and written in the contest's form.
    fn whole(
        &self,
        classes: &[ClassJson],
        used: &[&Candidate],
    ) -> Result<(String, Executor), Failure> {
        let mut pages: Vec<&str> = Vec::new();
        for page in used.iter().filter_map(|candidate| candidate.page.as_deref()) {
            if !pages.contains(&page) {
                pages.push(page);
            }
        }
        let line = |class: &ClassJson| match class.below {
            Some(below) => format!("    when bytes < {} => {};", size(below), class.algorithm),
            None => format!("    otherwise => {};", class.algorithm),
        };
        let lines: Vec<String> = classes.iter().map(line).collect();
        let docs = format!("/// AllReduce on {}.\n", self.text);
        let text = pages.concat() + &self.executor(&docs, &lines.join("\n"));
        progress::about("the proof of the executor".to_owned());
        let source = Source::from_text("synthesized.coll", &text);
        let mut all = compiled(&source, None).map_err(|errors| fault(&errors, &text))?;
        let executor = all.pop().ok_or_else(|| fault(&[], &text))?;
        contest(&Export::of(&executor, |_| None)).map_err(|found| {
            let told = found
                .into_iter()
                .flat_map(|(class, finding)| executor.classes[class].diagnostics(vec![finding]));
            fault(&told.collect::<Vec<_>>(), &text)
        })?;
        Ok((text, executor))
    }

    /// Returns the library's executor on this machine; `None` where its algorithms do not run.
    fn ours(&self) -> Option<Executor> {
        let (_, text) = SOURCES.iter().find(|(_, text)| text.contains(OURS))?;
        let text = text.replace(OURS_ON, &self.text);
        compiled(&Source::from_text("library.coll", &text), Some(OURS)).ok()?.pop()
    }

    /// Returns the comment at the head of the page.
    fn head(&self, sizes: &[u64], score: &Score, tried: &[Tried]) -> String {
        let flags = self.flags;
        let mut call = format!("roundelay executor synthesize --topology {}", quoted(&self.text));
        if sizes != [1 << 10, 1 << 20, 1 << 30] {
            let all: Vec<String> = sizes.iter().map(u64::to_string).collect();
            let _ = write!(call, " --sizes {}", all.join(","));
        }
        let LinkFlags { bandwidth, latency } = flags.links;
        let (bandwidth, latency) = (short(bandwidth / 1e9), short(latency * 1e6));
        let links = [("--bandwidth", "GB/s", "25", &bandwidth), ("--latency", "us", "2", &latency)];
        for (flag, unit, usual, value) in links {
            if value != usual {
                let _ = write!(call, " {flag} {value}{unit}");
            }
        }
        let mut lines = vec![
            format!("AllReduce of {} ranks on {}.", self.topology.nranks(), self.text),
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
        let links = if self.topology.is_relative() {
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
}
