//! The default engine: ranks are streams of ops on a pool of worker threads, in one process.
//!
//! plan (what callers see) -> code (the schedule, lowered) -> machine (what workers do), over signal, ready
//! and idle (the protocols that loom checks).

mod code;
mod element;
mod error;
mod idle;
#[cfg(all(test, loom))]
mod loom;
mod machine;
mod plan;
mod pool;
mod ready;
mod scratch;
mod signal;
mod sync;

pub use element::Element;
pub use error::{Error, Stuck};
pub use plan::{Fault, Options, Plan, Stats};
