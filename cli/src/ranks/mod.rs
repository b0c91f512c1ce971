//! Ranks as processes that this command starts of itself, and asks line by line to plan, to run and to show.
//!
//! Each is given the command's own arguments, so it finds the same algorithms; what it is asked comes on its standard
//! input, and it answers on its standard output.

mod answers;
mod held;
mod lines;
mod started;

use roundelay::library::TreeAllReduce;
use roundelay_core::prove;
use roundelay_core::verify::Proved;

pub(crate) use answers::{answer, become_rank};
pub(crate) use started::Ranks;

/// What so many ranks meet by: an `AllReduce` on a tree, which is soon proved.
pub(crate) fn meeting(nranks: u32) -> Proved {
    let tree = TreeAllReduce::new().slices(1);
    prove(&tree, nranks).expect("it is right for any number of ranks")
}

/// What ranks are to run.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct PlanShape {
    /// The algorithm, by its place among those that the command's arguments name.
    pub(crate) which: usize,
    /// The root, where it is not the algorithm's own.
    pub(crate) root: Option<u32>,
    /// Elements a unit.
    pub(crate) count: u64,
    pub(crate) dtype: String,
    pub(crate) op: String,
    /// Of the inputs.
    pub(crate) seed: u64,
}
