//! Ranks that are processes: what they compute, and what the others are told when one of them fails. Each test starts
//! this binary again, once for each rank.

#![cfg(target_os = "linux")]

#[path = "processes/delays.rs"]
mod delays;
#[path = "processes/failures.rs"]
mod failures;
#[path = "processes/kinds.rs"]
mod kinds;
#[path = "processes/limits.rs"]
mod limits;
#[path = "processes/ranks.rs"]
mod ranks;
#[path = "processes/traces.rs"]
mod traces;
