//! Ranks as threads of one process: streams of ops on a pool of worker threads, or one thread a rank.
//!
//! plan (the interface to callers) -> engine -> chunks or streams (the work of workers, without and with signals), over
//! signal, ready, idle and `worker_group` (the protocols that loom checks); spmd is the engine of a thread a rank, over
//! calls and wakeup.

mod calls;
mod chunks;
mod engine;
mod idle;
#[cfg(all(test, loom))]
mod loom;
mod needs;
#[cfg_attr(not(target_os = "linux"), path = "pin/other_systems.rs")]
mod pin;
mod plan;
mod pool;
mod ready;
mod record;
mod signal;
mod spmd;
mod streams;
mod wakeup;
mod worker_group;

pub use calls::Calls;
pub use engine::Stats;
#[cfg(all(feature = "cuda", target_os = "linux"))]
pub(crate) use pin::stay_near;
pub use pin::{AFFINITY, share, stay_in_place, stay_in_share, stay_on_core};
pub use plan::{Fault, Plan};
pub use spmd::{RankPlan, SpmdPlan, ThreadRank};
