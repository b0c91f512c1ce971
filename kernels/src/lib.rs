//! The engines of Roundelay, which move all bytes. Their `unsafe` code is in this crate, and that of the C library in
//! `capi`.
//!
//! A [`Plan`] is a proved schedule with a count, a dtype and a reduce op; it runs on the callers' slices.
//! [`mod@reference`] computes the same results in a plain way, for comparison.

mod buffers;
#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(all(test, target_os = "linux"))]
#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "what other systems have in its place is only tried here"
)]
#[path = "process/elsewhere.rs"]
mod elsewhere;
pub mod executor;
#[cfg(feature = "grid")]
pub mod grid;
pub mod host;
#[cfg_attr(not(target_os = "linux"), path = "hosts/elsewhere.rs")]
pub mod hosts;
pub mod limit;
#[cfg(all(test, loom))]
mod modelled;
#[cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]
pub mod mpi;
#[cfg_attr(not(target_os = "linux"), path = "process/elsewhere.rs")]
pub mod process;
pub mod reduce;
pub mod reference;
#[cfg(feature = "grid")]
#[doc(hidden)]
pub mod shim;
mod stuck;

pub use host::{
    AnyRankPlan, Calls, Differ, Element, Ended, Error, Message, Missing, Options, Plan, RankPlan,
    Runs, SpmdPlan, Stats, stay_on_core,
};
pub use stuck::Stuck;
