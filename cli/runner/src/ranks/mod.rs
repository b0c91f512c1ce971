//! Ranks as processes that this command starts of itself, and asks line by line to plan, to run and to show.
//!
//! Each process gets the command's own arguments, so it finds the same algorithms; questions come on its standard
//! input, and answers go to its standard output.

mod answers;
mod protocol;
mod rank_processes;
mod rank_state;

use roundelay::library::TreeAllReduce;
use roundelay_core::prove;
use roundelay_core::verify::Proved;

pub use answers::{Find, answer, become_rank};
pub use rank_processes::Ranks;

/// Returns the proof of the plan by which `nranks` ranks meet: an `AllReduce` on a tree, which is proved quickly.
pub fn meeting(nranks: u32) -> Proved {
    let tree = TreeAllReduce::new().slices(1);
    prove(&tree, nranks).expect("the tree is right for any number of ranks")
}

/// The plan that ranks are to make.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
pub struct PlanShape {
    /// The algorithm, by its index among the algorithms that the command's arguments name.
    pub which: usize,
    /// The root, where it is not the algorithm's own.
    pub root: Option<u32>,
    /// Elements a unit.
    pub count: u64,
    /// The counts of the blocks, where each has its own.
    pub counts: Option<Vec<u64>>,
    /// The name of the type of elements.
    pub dtype: String,
    /// The name of the reduce op.
    pub op: String,
    /// The seed of the inputs.
    pub seed: u64,
}
