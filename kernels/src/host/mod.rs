//! The default engine: ranks are streams of ops on a pool of worker threads, in one process.
//!
//! plan (what callers see) -> lower (from ops to code and segments) -> chunks or streams (what workers do, without and
//! with signals), over signal, ready, idle and crew (the protocols that loom checks).

mod bases;
mod bell;
mod calls;
mod chunks;
mod code;
mod crew;
mod element;
mod engine;
mod error;
mod idle;
mod interpreter;
#[cfg(all(test, loom))]
mod loom;
mod lower;
mod needs;
mod options;
#[cfg_attr(not(target_os = "linux"), path = "pin/elsewhere.rs")]
mod pin;
mod plan;
pub(crate) mod planned;
mod pool;
mod rank_plan;
mod ready;
mod record;
mod scratch;
mod segments;
mod signal;
mod spmd;
mod streams;
pub(crate) mod sync;

pub use calls::Calls;
pub use element::Element;
pub use engine::Stats;
pub use error::{Differ, Ended, Error, Message, Missing};
pub use options::Options;
pub use pin::stay_on_core;
pub use plan::{Fault, Plan};
#[cfg(any(not(target_os = "linux"), test))]
pub use rank_plan::Nowhere;
pub use rank_plan::{AnyRankPlan, RankCall, Runs, UserBuffers};
pub use spmd::{RankPlan, SpmdPlan, ThreadRank};
#[allow(unused_imports, reason = "for ranks as processes, which not every system has")]
pub(crate) use {
    bases::Bases,
    code::{Code, Instr, Kind, bad},
    interpreter::{Effects, Waiting, Waits, run_streams},
    lower::lower,
    planned::{PlannedCall, call_name},
    scratch::Scratch,
    segments::{Move, Operand, PARTIAL, Segment, Segments},
};
