//! Ranks as processes of one host: an arena of shared memory, calls that ranks publish in the arena, and data that is
//! staged in the arena or lies there already.
//!
//! unique, env, join (how processes meet) -> world (a rank, its shared state and its local state) -> plan, strategy
//! (the part of a rank in a call; geometry cuts the call into tiles) -> run (a call, with calls and `work_counter`), blocks
//! (a call with a count for each block) ->
//! watch (a wait for other ranks; failure and ending say why it ends early). Beside calls: p2p (messages, with
//! `queue_ends`), shrink (a world of the surviving ranks).

mod algorithm_names;
mod arena;
mod blocks;
mod call_failure;
mod call_record;
mod call_sites;
mod calls;
mod choices;
mod clock;
mod ending;
mod env;
mod exit_code;
mod failure;
mod fault;
mod futex;
mod geometry;
mod head;
mod heap;
mod host_messages;
mod join;
mod known_ways;
#[cfg(all(test, loom))]
mod loom;
#[doc(hidden)]
pub mod observed;
mod p2p;
mod plan;
mod plan_sharing;
mod pull;
mod queue_ends;
mod reach;
mod recording;
mod refusals;
mod remote_read;
mod ring;
mod routes;
mod run;
mod run_pull;
mod run_split;
mod segment_statements;
mod shared_buffer;
mod shared_state;
mod shrink;
mod spinning;
mod split;
mod strategy;
mod streams;
mod system;
#[cfg(all(test, not(loom)))]
mod tests;
mod told;
mod trials;
mod unique;
mod watch;
mod ways;
mod work_counter;
mod world;

pub use crate::chosen_way::ChosenWay;
pub use blocks::BlocksPlan;
#[doc(hidden)]
pub use call_sites::{at_site, current_site};
#[doc(hidden)]
pub use fault::{Fault, in_a_fork};
pub use plan::{WorldPlan, WorldRank};
pub use plan_sharing::Prepared;
pub use shared_buffer::Lent;
pub use unique::{UniqueId, same_secret};
pub use world::{World, host_key};
pub(crate) use {
    calls::ActiveCall,
    host_messages::{Counter, Parcel},
    plan::check,
};
