//! Rings, channels and trees sought in a topology.
//!
//! Every search is deterministic, has a budget of steps, and says whether its answer is proved the best
//! or only found.

pub mod hamilton;
pub mod pairs;
pub mod proof;

mod cover;
mod heuristic;
