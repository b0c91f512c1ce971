//! Ranks as processes of one host: an arena of shared memory, calls that ranks publish in the arena, and data that is
//! staged in the arena or lies there already.
//!
//! The folders need each other in one direction: meet (how processes meet) -> world (a rank: the memory that ranks share,
//! waits for other ranks, failures, messages, the ways of data that are chosen by measurement) -> calls (each rank
//! publishes its call and compares it with the calls of others) -> stage (the engine of a call). Beside them, observe reads
//! the memory of a world from outside; a call asks it for circles of waits. On systems other than Linux `meet` refuses:
//! all else is the same there, and there are no worlds.

#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nobody looks from outside"))]

mod calls;
#[cfg(all(test, loom))]
mod loom;
#[cfg_attr(not(target_os = "linux"), path = "meet/other_systems.rs")]
mod meet;
#[cfg_attr(not(target_os = "linux"), path = "observe/other_systems.rs")]
#[doc(hidden)]
pub mod observe;
#[cfg(all(test, target_os = "linux"))]
#[allow(
    dead_code,
    clippy::duplicate_mod,
    reason = "what other systems have in its place is only tried here"
)]
#[path = "meet/other_systems.rs"]
mod other_systems;
mod stage;
#[cfg(all(test, target_os = "linux"))]
mod tests;
mod world;

pub use crate::chosen_way::ChosenWay;
#[cfg(all(target_os = "linux", feature = "cuda"))]
pub(crate) use meet::mapping::Mapping;
pub use meet::unique::{UniqueId, same_secret};
#[cfg(all(
    feature = "tcp",
    target_os = "linux",
    target_pointer_width = "64",
    target_endian = "little"
))]
pub(crate) use meet::{
    system::host,
    unique::{addresses_in, put_addresses, read_hex},
};
pub use stage::blocks::BlocksPlan;
pub use stage::plan::{WorldPlan, WorldRank};
pub use stage::plan_sharing::Prepared;
#[doc(hidden)]
pub use world::call_sites::{at_site, current_site};
#[doc(hidden)]
pub use world::fault::Fault;
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub use world::fault::in_a_fork;
pub use world::shared_buffer::Lent;
pub use world::{CORES, World, host_key};
pub(crate) use {
    calls::ActiveCall,
    calls::host_messages::{Counter, Parcel},
    stage::plan::check,
};
