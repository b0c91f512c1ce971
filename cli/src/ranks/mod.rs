//! Ranks as processes that this command starts of itself, and asks line by line to plan, to run and to show.
//!
//! Each is given the command's own arguments, so it finds the same algorithms; what it is asked comes on its standard
//! input, and it answers on its standard output.

#[cfg(target_os = "linux")]
mod answers;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod held;
#[cfg(target_os = "linux")]
mod lines;
#[cfg(target_os = "linux")]
mod started;

use roundelay::library::TreeAllReduce;
use roundelay_core::prove;
use roundelay_core::verify::Proved;

#[cfg(target_os = "linux")]
pub(crate) use answers::{answer, become_rank};
#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::Ranks;
#[cfg(target_os = "linux")]
pub(crate) use started::Ranks;

/// What so many ranks meet by: an `AllReduce` on a tree, which is soon proved.
pub(crate) fn meeting(nranks: u32) -> Proved {
    let tree = TreeAllReduce::new().slices(1);
    prove(&tree, nranks).expect("it is right for any number of ranks")
}

/// What ranks are to run.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
pub(crate) struct Shape {
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
