//! The data of a launch of a generated kernel, for every launcher: plain arithmetic, no driver.

mod arena;
#[cfg(any(feature = "cuda", feature = "ptx"))]
pub(crate) mod bound;
#[cfg(any(feature = "cuda", feature = "ptx"))]
pub(crate) mod fold;
mod launch;
mod layout;
mod model;
mod order;
mod parts;
mod placement;
#[cfg(any(feature = "cuda", feature = "ptx"))]
pub(crate) mod steps;
mod watch;

pub use crate::buffers::Buffers;
pub use arena::Arena;
pub use launch::{Launch, RankMemory};
pub use layout::{GridLayout, TooLarge};
pub use model::{Estimate, Gpu, LaunchShape, WalkCost};
pub use order::order;
pub use parts::{Crowded, parts, worth};
pub use placement::Placement;
pub use watch::stuck;
