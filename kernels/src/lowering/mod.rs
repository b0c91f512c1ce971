//! A schedule lowered for one count, dtype and reduce op, which the engines share.
//!
//! lower (from ops to code and segments) -> interpreter (data, posts and waits of a stream, over an engine's signals);
//! planned, `rank_part` and `rank_plan` are the interface of plans: the checks of a call's buffers, and the ways to run.

mod bases;
mod code;
mod code_memory;
pub(crate) mod first_call;
mod interpreter;
mod lower;
pub(crate) mod plan_call;
mod rank_part;
mod rank_plan;
mod recording;
mod scratch;
mod segments;
mod user_buffers;

pub use first_call::Memory;
pub use rank_part::RankPart;
pub use rank_plan::{AnyRankPlan, RankCall, Runs};
pub use user_buffers::UserBuffers;
pub(crate) use {
    bases::Bases,
    code::{Code, Instr, InstrKind},
    code_memory::CodeMemory,
    interpreter::{Effects, Waiting, advance, run_streams},
    lower::lower,
    plan_call::PlannedCall,
    recording::RecordedEffects,
    scratch::Scratch,
    segments::Segment,
};
pub(crate) use {
    code::bad,
    interpreter::Waits,
    plan_call::{call_name, check_name},
    segments::{Move, Operand, PARTIAL, Segments},
};
