//! The simulator against golden values of another simulator, closed forms, and properties of any run.

mod forms;
mod golden;
mod runs;
mod sharing;
mod switch;
mod symmetric;
mod wrong;

use std::sync::Arc;

use roundelay_core::dtype::DType;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::schedule::Schedule;
use roundelay_simulate::{Machine, Simulated, simulate};

use crate::sources::{self, named as library};

fn machine(topology: &str) -> Machine {
    Machine::new(Arc::new(topology.parse().expect("a topology")))
}

fn schedule(name: &str, nranks: u32) -> Schedule {
    library(name).schedule(nranks).expect("it can be laid out")
}

/// Simulates an `AllReduce` of `bytes` bytes.
fn run(schedule: &Schedule, machine: &Machine, bytes: u64) -> Simulated {
    simulate(schedule, machine, bytes / 4, DType::F32, false).expect("it ends")
}

/// The names of the library's algorithms.
fn names() -> Vec<String> {
    sources::library().iter().map(|algorithm| algorithm.name().to_owned()).collect()
}
