//! Jobs of an MPI library whose ranks preload a library: the launcher, the variables of the ranks, and the meeting of
//! the hosts.

mod door;
mod flavour;
mod hosts;
mod rendezvous;

pub use flavour::Flavour;
pub use hosts::are_one;
pub use rendezvous::{NAME as RENDEZVOUS, Rendezvous};
