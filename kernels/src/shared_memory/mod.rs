//! Ranks as processes of one host: an arena of shared memory, calls that are published there, and data that is staged in
//! it or lies there anyway.
//!
//! unique, env, join (how processes meet) -> world (a rank, and what it shares: arena, board) -> plan (what a rank does
//! in a call: geometry cuts it into tiles) -> run (a call, by calls and claims) -> watch (whoever waits: how it ends early,
//! by failure and ending). Beside calls: mail (messages, by ends), shrink (a world of those who are left).

mod arena;
mod calls;
mod ending;
mod env;
mod failure;
mod fault;
mod futex;
mod geometry;
mod heap;
mod host_messages;
mod join;
#[cfg(all(test, loom))]
mod loom;
mod p2p;
mod plan;
mod plan_sharing;
mod queue_ends;
mod reach;
mod remote_read;
mod ring;
mod run;
mod shared_buffer;
mod shared_state;
mod shrink;
mod spinning;
mod strategy;
mod streams;
mod system;
#[cfg(all(test, not(loom)))]
mod tests;
mod unique;
mod watch;
mod work_counter;
mod world;

#[doc(hidden)]
pub use fault::{Fault, in_a_fork};
pub use plan::{WorldPlan, WorldRank};
pub use plan_sharing::Prepared;
pub use shared_buffer::Lent;
pub use unique::UniqueId;
pub use world::{World, host_key};
pub(crate) use {
    calls::ActiveCall,
    host_messages::{Counter, Parcel},
    plan::check,
};
