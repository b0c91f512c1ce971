//! Ranks on several hosts: one proved schedule, in its form of sends and receives, on two transports. Between ranks of
//! a host messages go through the memory that their processes share, and between hosts a [`Carrier`] brings them.
//!
//! carrier (the transport between hosts) -> place (the host of each rank) -> form (the steps of a rank in a call) ->
//! transfers (the messages under way) -> run (a call) -> levels (a call whose ranks of a host meet in their memory, and
//! whose first ranks alone bring messages between hosts). Beside calls: mail. For tests there is a carrier between
//! threads: channels.

mod carrier;
mod channels;
mod form;
mod levels;
mod mail;
mod place;
mod run;
mod transfers;

pub use carrier::{Carrier, ConnectionFacts, MOST, Survivors, TAGS};
#[doc(hidden)]
pub use channels::{Channels, How};
pub use form::{HostsPlan, HostsRank};
pub use levels::{Levels, LevelsPlan, LevelsRank};
pub use place::Hosts;
