//! Ranks that are processes: their results, and the errors of the other ranks when one of them fails. Each test starts
//! this binary again, once for each rank.

#![cfg(target_os = "linux")]

#[path = "processes/checks.rs"]
mod checks;
#[path = "processes/delays.rs"]
mod delays;
#[path = "processes/failures.rs"]
mod failures;
#[path = "processes/hosts.rs"]
mod hosts;
#[path = "processes/kinds.rs"]
mod kinds;
#[path = "processes/limits.rs"]
mod limits;
#[path = "processes/observed.rs"]
mod observed;
#[path = "processes/ranks.rs"]
mod ranks;
#[path = "processes/traces.rs"]
mod traces;
#[path = "processes/ways.rs"]
mod ways;
