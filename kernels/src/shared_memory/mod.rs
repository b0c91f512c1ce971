//! Ranks as processes of one host: an arena of shared memory, calls that are published there, and data that is staged in
//! it or lies there anyway.
//!
//! unique, env, join (how processes meet) -> world (a rank, and what it shares: arena, board) -> plan (what a rank does
//! in a call: geometry cuts it into tiles) -> run (a call, by calls and claims) -> watch (whoever waits: how it ends early,
//! by failure and ending). Beside calls: mail (messages, by ends), shrink (a world of those who are left).

mod arena;
mod board;
mod calls;
mod claims;
mod ending;
mod ends;
mod env;
mod failure;
mod fault;
mod fetch;
mod forms;
mod futex;
mod geometry;
mod heap;
mod join;
mod lent;
#[cfg(all(test, loom))]
mod loom;
mod mail;
mod offers;
mod parcels;
mod plan;
mod reach;
mod ring;
mod run;
mod shrink;
mod spinning;
mod streams;
mod system;
#[cfg(all(test, not(loom)))]
mod tests;
mod unique;
mod watch;
mod world;

#[doc(hidden)]
pub use fault::{Fault, in_a_fork};
pub use lent::Lent;
pub use offers::Prepared;
pub use plan::{WorldPlan, WorldRank};
pub use unique::UniqueId;
pub use world::{World, host_key};
pub(crate) use {
    calls::Visit,
    parcels::{Counter, Parcel},
    plan::check,
};
