//! The data of a launch of a generated kernel, for every launcher: plain arithmetic, no driver.

mod arena;
#[cfg(any(feature = "cuda", feature = "ptx"))]
pub(crate) mod bound;
#[cfg(any(feature = "cuda", feature = "ptx"))]
pub(crate) mod fold;
mod issue_order;
mod launch;
pub(crate) mod layout;
mod model;
mod parts;
mod placement;
#[cfg(any(feature = "cuda", feature = "ptx"))]
pub(crate) mod steps;
mod watch;

pub use crate::buffers::Buffers;
pub use arena::Arena;
pub use issue_order::order;
pub use launch::{Launch, RankMemory, Stage};
pub use layout::{GridLayout, TooLarge};
pub use model::{Estimate, Gpu, LaunchShape, WalkCost};
pub use parts::{Crowded, parts, worth};
pub use placement::Placement;
pub use watch::stuck;
