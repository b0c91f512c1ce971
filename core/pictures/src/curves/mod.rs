//! Times of several algorithms over rank counts, as they were simulated: compared, and drawn as curves with the bandwidth
//! bound below them.
//!
//! The caller simulates; a [`Comparison`] has the points, the rank counts at which an algorithm does not run, and the
//! loads of the links by [`Levels`] of the topology.

mod drawing;
mod levels;

use std::collections::BTreeMap;

use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::Code;
use roundelay_core::topology::Topology;
use roundelay_core::units::{plural, ranges};
use roundelay_simulate::cost::Costs;

pub use levels::{Levels, Load};

/// Times that differ by no more than this share count as equal: blocks that differ by an element make such differences.
const NEAR: f64 = 1e-3;

/// The runs of one algorithm.
#[derive(Debug)]
pub struct AlgorithmCurve {
    /// Its name, with its file where another algorithm has an equal name.
    pub name: String,
    /// The runs, by rank count.
    pub points: Vec<RunPoint>,
    /// The rank counts at which it does not run.
    pub missing: Vec<Missing>,
}

/// A simulated run.
#[derive(Debug)]
pub struct RunPoint {
    /// The number of ranks.
    pub nranks: u32,
    /// The bytes as nccl-tests counts them.
    pub bytes: u64,
    /// The time of the run.
    pub seconds: f64,
    /// The size by the time, in bytes a second.
    pub algbw: f64,
    /// The same by what the collective asks of a link.
    pub busbw: f64,
    /// The least seconds of any algorithm by bandwidth alone, where the topology has a bound.
    pub bound: Option<f64>,
    /// The load of each level of the topology.
    pub loads: Vec<Load>,
}

impl RunPoint {
    /// Returns the share of the bound that was reached; 1 for an empty run.
    pub fn share(&self) -> Option<f64> {
        Some(if self.seconds > 0.0 { self.bound? / self.seconds } else { 1.0 })
    }
}

/// A rank count at which an algorithm does not run, with the first reason.
#[derive(Debug)]
pub struct Missing {
    /// The number of ranks.
    pub nranks: u32,
    /// The code of the reason.
    pub code: Code,
    /// The reason in a line.
    pub reason: String,
}

/// All runs, with their common properties.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// The collective of all algorithms.
    pub collective: Collective,
    /// The size of a run: `32 MiB`, or a count of elements.
    pub size: String,
    /// The topology.
    pub topology: &'a Topology,
    /// The constants of the simulation, by rank count.
    pub costs: BTreeMap<u32, Costs>,
    /// The levels of the topology.
    pub levels: Levels,
    /// The rank counts that were asked for, in ascending order.
    pub nranks: Vec<u32>,
    /// The algorithms.
    pub curves: Vec<AlgorithmCurve>,
}

impl Comparison<'_> {
    /// Returns `2..=128 ranks`.
    pub fn ranks(&self) -> String {
        let one = if self.nranks.len() == 1 { self.nranks[0] } else { 0 };
        format!("{} rank{}", ranges(&self.nranks), plural(one))
    }

    /// Returns the sources of the constants, each with the rank counts at which it is that of the runs.
    pub fn constants(&self) -> Vec<(String, Vec<u32>)> {
        let mut all: Vec<(String, Vec<u32>)> = Vec::new();
        for (nranks, costs) in &self.costs {
            let source = costs.source();
            match all.iter_mut().find(|(known, _)| *known == source) {
                Some((_, counts)) => counts.push(*nranks),
                None => all.push((source, vec![*nranks])),
            }
        }
        all
    }

    /// Returns the algorithms that take the least time, each with the rank counts at which it does; algorithms whose
    /// times are equal, or hardly longer, are all listed.
    pub fn fastest(&self) -> Vec<(&str, Vec<u32>)> {
        let seconds = |curve: &AlgorithmCurve, n: u32| {
            curve.points.iter().find(|p| p.nranks == n).map(|p| p.seconds)
        };
        let best = |n: u32| {
            self.curves.iter().filter_map(|curve| seconds(curve, n)).fold(f64::MAX, f64::min)
        };
        let of = |curve: &AlgorithmCurve| {
            let same = |n: &u32| seconds(curve, *n).is_some_and(|s| s <= best(*n) * (1.0 + NEAR));
            self.nranks.iter().copied().filter(same).collect::<Vec<_>>()
        };
        let all = self.curves.iter().map(|curve| (&*curve.name, of(curve)));
        all.filter(|(_, counts)| !counts.is_empty()).collect()
    }
}
