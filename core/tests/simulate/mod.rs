//! The simulator against golden values of another simulator, closed forms, and properties of any run.

mod forms;
mod golden;
mod runs;
mod sharing;
mod symmetric;
mod wrong;

use std::sync::Arc;

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::compile_with;
use roundelay_core::dtype::DType;
use roundelay_core::layout::{Algorithm as _, Configured};
use roundelay_core::schedule::Schedule;
use roundelay_core::simulate::{Machine, Simulated, simulate};
use roundelay_core::syntax::Source;

use roundelay_library::SOURCES as LIBRARY;

/// The library's algorithm of that name.
fn library(name: &str) -> Configured {
    let head = format!("algorithm {name}(");
    let (file, text) =
        LIBRARY.iter().find(|(_, text)| text.contains(&head)).expect("it is in the library");
    algorithm(&Source::from_text(*file, text), name)
}

fn algorithm(source: &Source, name: &str) -> Configured {
    let dependencies = Dependencies::library(LIBRARY);
    let program = compile_with(source, Frontend::File, &dependencies).expect("the source is right");
    let found = program.algorithms.into_iter().find(|a| a.name == name);
    Configured::new(found.expect("it holds the algorithm"), source)
}

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
    let dependencies = Dependencies::library(LIBRARY);
    let names = |(file, text): &(&str, &str)| {
        let program = compile_with(&Source::from_text(*file, text), Frontend::File, &dependencies);
        let program = program.expect("the library is right");
        program.algorithms.into_iter().map(|a| a.name).collect::<Vec<_>>()
    };
    LIBRARY.iter().flat_map(names).collect()
}
