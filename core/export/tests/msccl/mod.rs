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
use roundelay_export::exchange::msccl::{self, Connections, MscclVerdict, Program, Text};

/// A published program.
fn bytes(name: &str) -> Vec<u8> {
    let path = format!("{}/../../tests/msccl/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A program of our own, for any runtime.
fn read(text: &str) -> Text {
    msccl::read("test.xml", text.as_bytes(), None)
}

/// Returns the verdict of a text that can be read.
fn verdict_of(text: &Text, connections: &Connections) -> (Program, MscclVerdict) {
    let program = text.program.clone().unwrap_or_else(|| panic!("{:#?}", text.errors));
    let verdict = program.verdict(&text.source, connections);
    (program, verdict)
}

fn verdict(text: &str) -> MscclVerdict {
    verdict_of(&read(text), &Connections::default()).1
}

fn codes(verdict: &MscclVerdict) -> Vec<Code> {
    verdict.errors().map(|error| error.code).collect()
}
