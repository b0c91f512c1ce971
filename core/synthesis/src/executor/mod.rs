//! The search for an executor of a mesh with dead links: an AllReduce with an algorithm for each range of sizes, the one
//! that is the fastest in a simulated run.
//!
//! `candidates` makes the algorithms: those of a library that run on the machine, and those that are found, as
//! [`Waves`] of `shortest` trees, of packed trees and of lists of sends. `classes` chooses at most three ranges of
//! sizes, and `score` times a call as the contest does. What is returned is a page whose executor is proved, also with
//! the one-shot flags of the contest.

mod candidates;
mod classes;
mod machine;
mod page;
mod score;
mod shortest;
mod waves;

use std::sync::Arc;

use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::dtype::DType;
use roundelay_core::executor::Executor;
use roundelay_core::program::CompiledSource;
use roundelay_core::topology::Topology;
use roundelay_core::units::size;
use roundelay_core::verify::Signals;
use roundelay_topology::Problem;

use crate::page::fill;
use crate::search::{SearchContext, SearchError, found_source};
use candidates::{Candidate, RING};
pub use classes::{Range, choose};
pub use machine::mesh;
pub use score::{Links, ScoredCall};
pub use shortest::{Roots, trees as shortest_trees};
pub use waves::{Move, Waves, Weighted};

/// The executor of the library whose classes are compared.
pub const OURS: &str = "AllLinksAllReduceMesh";
/// The machine of that executor.
const OURS_ON: &str = "full_mesh(8) without (0, 1)";
/// The weight of a size at which executors are compared; the sizes between have 1.
const COMPARED: f64 = 100.0;
/// The parts of the range between two sizes in which the bound of a class is looked for.
const STEPS: u64 = 16;

/// The machine for which an executor is found, and its links.
#[derive(Clone)]
pub struct ExecutorSearch<'a> {
    /// The machine in the language; all of its ranks take part.
    pub text: String,
    /// The machine.
    pub topology: Arc<Topology>,
    /// The sizes in bytes at which executors are compared, in ascending order.
    pub sizes: Vec<u64>,
    /// The links.
    pub links: Links,
    /// The sources of the library, with their names.
    pub library: &'a [(&'static str, &'static str)],
    /// The behavior of the contest's signals.
    pub signals: Signals,
    /// Whether the contest's form holds an executor; the errors are the reasons why not.
    pub exports: &'a dyn Fn(&Executor) -> Result<(), Vec<Diagnostic>>,
    /// The caller's part.
    pub context: SearchContext<'a>,
}

/// An executor that was found.
#[derive(Debug)]
pub struct FoundExecutor {
    /// The algorithms that are found, and the executor.
    pub page: String,
    /// The classes, the smallest sizes first.
    pub classes: Vec<FoundClass>,
    /// Simulated times at the compared sizes, in seconds.
    pub times: FoundTimes,
    /// The least times of each algorithm over all numbers of slices, in seconds.
    pub tried: Vec<(String, Vec<f64>)>,
}

/// A class of sizes.
#[derive(Clone, Debug)]
pub struct FoundClass {
    /// The bytes below which the class is taken; `None` for the last.
    pub below: Option<u64>,
    /// The algorithm with its arguments.
    pub algorithm: String,
}

/// Simulated seconds at the compared sizes.
#[derive(Clone, Debug)]
pub struct FoundTimes {
    /// Of the executor that was found.
    pub synthesized: Vec<f64>,
    /// Of the classes of the library's executor on this machine, if they run on it.
    pub library: Option<Vec<f64>>,
    /// Of the ring of the published entry, if there is one.
    pub ring: Option<Vec<f64>>,
    /// The least that any algorithm could take.
    pub bound: Vec<f64>,
}

impl ExecutorSearch<'_> {
    /// Finds the executor.
    ///
    /// # Errors
    /// The reasons why the machine has no algorithm, and a page that is wrong.
    pub fn find(&self) -> Result<FoundExecutor, SearchError> {
        let sizes = &self.sizes;
        if let Some(bytes) = sizes.first().filter(|bytes| **bytes < DType::F32.size() as u64) {
            let title = format!("a call of {bytes} bytes holds no {}", DType::F32);
            return Err(Problem::new(Code::BadFlag, title).into());
        }
        let candidates = self.candidates()?;
        if candidates.is_empty() {
            let title = format!("no algorithm was found for {}", self.text);
            let help = "each link of an executor's machine works in both directions";
            return Err(SearchError::new(Code::BadTopology, title, help));
        }
        let (grid, weights) = grid(sizes);
        let row = |of: &Candidate| -> Result<Vec<f64>, SearchError> {
            (self.context.about)(of.call.clone());
            grid.iter().map(|bytes| self.seconds(&of.executor, *bytes)).collect()
        };
        let times = candidates.iter().map(row).collect::<Result<Vec<_>, _>>()?;
        let ranges = choose(&times, &weights);
        let mut classes = Vec::new();
        for (at, range) in ranges.iter().enumerate() {
            let next = ranges.get(at + 1);
            let below = next.map(|next| self.crossing(&candidates, &grid, *range, *next));
            let algorithm = candidates[range.candidate].call.clone();
            classes.push(FoundClass { below: below.transpose()?, algorithm });
        }
        let used: Vec<&Candidate> = ranges.iter().map(|of| &candidates[of.candidate]).collect();
        let (page, executor) = self.whole(&classes, &used)?;
        let at = |executor: &Executor| -> Result<Vec<f64>, SearchError> {
            sizes.iter().map(|bytes| self.seconds(executor, *bytes)).collect()
        };
        let ring = candidates.iter().find(|c| c.call == RING);
        let least = |bytes: &u64| Ok(call(&executor, *bytes).least(&executor, self.links)?);
        let found = FoundTimes {
            synthesized: at(&executor)?,
            library: self.ours().as_ref().map(at).transpose()?,
            ring: ring.map(|c| at(&c.executor)).transpose()?,
            bound: sizes.iter().map(least).collect::<Result<_, SearchError>>()?,
        };
        let columns = sizes.iter().map(|size| grid.iter().position(|of| of == size));
        let columns: Vec<usize> =
            columns.map(|column| column.expect("a size is one of the grid")).collect();
        let tried = tried(&candidates, &times, &columns);
        Ok(FoundExecutor { page, classes, times: found, tried })
    }

    /// Returns the simulated seconds of a call of `bytes` bytes.
    fn seconds(&self, executor: &Executor, bytes: u64) -> Result<f64, SearchError> {
        Ok(call(executor, bytes).seconds(executor, self.links)?)
    }

    /// Returns the executor of a text, proved, or its errors.
    fn compiled(&self, text: &str, wanted: Option<&str>) -> Result<Executor, Vec<Diagnostic>> {
        let source = found_source(text);
        let CompiledSource { executors, .. } = (self.context.compile)(&source)?;
        let wanted = executors.iter().filter(|of| wanted.is_none_or(|name| of.name == name));
        Executor::compile_all(wanted, &source)?.pop().ok_or_else(Vec::new)
    }

    /// Returns the text of an executor on the machine.
    fn executor(&self, docs: &str, classes: &str) -> String {
        let words = [
            ("DOCS", docs.to_owned()),
            ("TOPOLOGY", self.text.clone()),
            ("CLASSES", classes.to_owned()),
        ];
        fill(page::EXECUTOR, &words)
    }

    /// Returns the size in bytes from which the next class is as fast as the one before it.
    fn crossing(
        &self,
        candidates: &[Candidate],
        grid: &[u64],
        this: Range,
        next: Range,
    ) -> Result<u64, SearchError> {
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
        classes: &[FoundClass],
        used: &[&Candidate],
    ) -> Result<(String, Executor), SearchError> {
        let mut pages: Vec<&str> = Vec::new();
        for page in used.iter().filter_map(|candidate| candidate.page.as_deref()) {
            if !pages.contains(&page) {
                pages.push(page);
            }
        }
        let line = |class: &FoundClass| match class.below {
            Some(below) => format!("    when bytes < {} => {};", size(below), class.algorithm),
            None => format!("    otherwise => {};", class.algorithm),
        };
        let lines: Vec<String> = classes.iter().map(line).collect();
        let docs = format!("/// AllReduce on {}.\n", self.text);
        let text = pages.concat() + &self.executor(&docs, &lines.join("\n"));
        (self.context.about)("the proof of the executor".to_owned());
        let wrong = |errors: Vec<Diagnostic>| SearchError::page(errors, &*text);
        let executor = self.compiled(&text, None).map_err(wrong)?;
        (self.exports)(&executor).map_err(wrong)?;
        Ok((text, executor))
    }

    /// Returns the library's executor on this machine; `None` where its algorithms do not run.
    fn ours(&self) -> Option<Executor> {
        let (_, text) = self.library.iter().find(|(_, text)| text.contains(OURS))?;
        self.compiled(&text.replace(OURS_ON, &self.text), Some(OURS)).ok()
    }
}

/// A call of an executor that was found.
fn call(executor: &Executor, bytes: u64) -> ScoredCall {
    ScoredCall { bytes, ccl_buffer: executor.ccl_buffer, dtype: DType::F32 }
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

/// Returns the least times of each algorithm at some sizes.
fn tried(
    candidates: &[Candidate],
    times: &[Vec<f64>],
    columns: &[usize],
) -> Vec<(String, Vec<f64>)> {
    let mut tried: Vec<(String, Vec<f64>)> = Vec::new();
    for (candidate, row) in candidates.iter().zip(times) {
        let now: Vec<f64> = columns.iter().map(|column| row[*column]).collect();
        match tried.iter_mut().find(|(name, _)| *name == candidate.name) {
            Some((_, known)) => {
                for (known, now) in known.iter_mut().zip(now) {
                    *known = known.min(now);
                }
            }
            None => tried.push((candidate.name.clone(), now)),
        }
    }
    tried
}
