//! The hops on the critical path of a tree over nodes, by simulation.
//!
//! The trees are those of the library: NCCL's double binary tree, and the trees of NHR, which are as deep as those of
//! PAT. A rank stands for a node: what happens in a node is the same for all numbers of nodes.

use std::sync::{Arc, Mutex, PoisonError};

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::compile_with;
use roundelay_core::diagnostics::Finding;
use roundelay_core::dtype::DType;
use roundelay_core::layout::{Algorithm as _, Configured, Limits};
use roundelay_core::symmetry::representative;
use roundelay_core::syntax::Source;
use roundelay_core::topology::Topology;
use roundelay_core::values::params::ParamValue;
use roundelay_library::SOURCES;
use roundelay_simulate::{Machine, simulate, symmetric};
use roundelay_topology::shape::Shape;

/// The most nodes that are simulated.
pub(crate) const MOST: u32 = 4096;

/// Seconds of a hop in a simulation, beside which the data takes no time.
const HOP: f64 = 1.0;

/// The hops between nodes that follow one another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Levels {
    /// In an all-reduce, up a tree and down again.
    pub(crate) all_reduce: f64,
    /// In an all-gather.
    pub(crate) all_gather: f64,
    /// In a reduce-scatter.
    pub(crate) reduce_scatter: f64,
}

/// The levels that were simulated last, by their number of nodes: jobs have many communicators of few sizes.
static KNOWN: Mutex<[Option<(u32, Levels)>; 16]> = Mutex::new([None; 16]);

impl Levels {
    /// Simulates the trees over 2 to [`MOST`] nodes, unless they are known.
    ///
    /// # Errors
    /// The reason in words.
    pub(crate) fn over(nodes: u32) -> Result<Self, String> {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, levels)) = known.iter().flatten().find(|(of, _)| *of == nodes) {
            return Ok(*levels);
        }
        let machine = machine(nodes)?;
        let levels = Self {
            all_reduce: of_tree(nodes, &machine)?,
            all_gather: of_turns("NhrAllGather", nodes, &machine)?,
            reduce_scatter: of_turns("NhrReduceScatter", nodes, &machine)?,
        };
        known.rotate_right(1);
        known[0] = Some((nodes, levels));
        Ok(levels)
    }

    /// The levels by NCCL's formula, which counts those of the largest power of two.
    pub(crate) fn by_formula(nodes: u32) -> Self {
        let log = f64::from(nodes.checked_ilog2().unwrap_or(0));
        Self { all_reduce: 2.0 * log, all_gather: log, reduce_scatter: log }
    }
}

/// The machine on which a hop takes [`HOP`] and data takes nearly nothing.
fn machine(nodes: u32) -> Result<Machine, String> {
    let switch = Shape::crossbar(nodes).build().map_err(|problem| problem.title)?;
    let topology: Arc<Topology> = Arc::new(switch.into());
    // A hop is two links.
    Ok(Machine { bandwidth: 1e12, latency: HOP / 2.0, ..Machine::new(topology) })
}

/// Returns an algorithm of a file of the library.
pub(crate) fn algorithm(file: &str, name: &str) -> Result<Configured, String> {
    let missing = || format!("the library has no {name}");
    let (_, text) = SOURCES.iter().find(|(known, _)| *known == file).ok_or_else(missing)?;
    let source = Source::from_text(file, text);
    let program = compile_with(&source, Frontend::File, &Dependencies::library(SOURCES));
    let program = program.map_err(|errors| format!("{file} has {} errors", errors.len()))?;
    let found = program.algorithms.into_iter().find(|algorithm| &*algorithm.name == name);
    Ok(Configured::new(found.ok_or_else(missing)?, &source))
}

/// Returns the hops of an all-reduce on NCCL's double binary tree.
fn of_tree(nodes: u32, machine: &Machine) -> Result<f64, String> {
    let mut tree = algorithm("tree.coll", "DoubleBinaryTreeAllReduce")?;
    tree.set("slices", ParamValue::Int(1))?;
    let title = |findings: Vec<Finding>| {
        findings.into_iter().next().map_or_else(String::new, |finding| finding.title)
    };
    let schedule = tree.schedule_within(nodes, Limits::FULL).map_err(title)?;
    let done = simulate(&schedule, machine, 2, DType::U8, false).map_err(title)?;
    Ok((done.seconds / HOP).round())
}

/// Returns the hops of an algorithm of the file of NHR, in which all ranks do the same.
fn of_turns(name: &str, nodes: u32, machine: &Machine) -> Result<f64, String> {
    let one = representative(&algorithm("nhr.coll", name)?, nodes).map_err(|found| found.why())?;
    Ok((symmetric(&one, machine, 1, DType::U8)?.seconds / HOP).round())
}
