//! Ranks on several hosts: one proved schedule, brought to sends and receives, on two transports. Between ranks of a host
//! messages go through the memory that their processes share, and between hosts something else carries them, which is
//! a [`Carrier`].
//!
//! carrier (what brings messages between hosts) -> place (who is on which host) -> form (what a rank does in a call) ->
//! traffic (the messages under way) -> run (a call) -> levels (a call whose ranks of a host meet in their memory, and first
//! ranks alone bring messages between hosts). Beside calls: mail. For tests there is a carrier between threads:
//! channels.

mod carrier;
mod channels;
mod form;
mod levels;
mod mail;
mod place;
mod run;
mod traffic;

pub use carrier::{Carrier, MOST, TAGS};
#[doc(hidden)]
pub use channels::{Channels, How};
pub use form::{HostsPlan, HostsRank};
pub use levels::{Levels, LevelsPlan, LevelsRank};
pub use place::Hosts;
