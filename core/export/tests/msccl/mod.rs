//! Programs for MSCCL's runtime: read, laid out, and proved as the runtime runs them.

mod bad;
mod corpus;
mod files;
mod fuzz;
mod generate;
mod large;
mod limits;
mod model;
mod mutants;
mod run;

use roundelay_core::diagnostics::Code;
use roundelay_exchange::msccl::{self, Connections, Program};
use roundelay_exchange::{Text, Verdict};

use crate::foreign::told;
use crate::models;

/// A published program.
fn bytes(name: &str) -> Vec<u8> {
    let path = format!("{}/../../../tests/msccl/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A program of our own, for any runtime.
fn read(text: &str) -> Text<Program> {
    msccl::read("test.xml", text.as_bytes(), None)
}

/// Returns the verdict of a text that can be read.
fn verdict_of(text: &Text<Program>, connections: &Connections) -> (Program, Verdict) {
    let program = text.program.clone().unwrap_or_else(|| panic!("{:#?}", text.errors));
    let verdict = program.verdict(&text.source, connections);
    (program, verdict)
}

fn verdict(text: &str) -> Verdict {
    verdict_of(&read(text), &Connections::default()).1
}

fn codes(verdict: &Verdict) -> Vec<Code> {
    verdict.errors().map(|error| error.code).collect()
}

/// Whether a text is taken, and what its reader and its proof say.
fn says(text: &[u8]) -> (bool, String) {
    told(&msccl::read("test.xml", text, None), |program, source| {
        program.verdict(source, &Connections::default())
    })
}
