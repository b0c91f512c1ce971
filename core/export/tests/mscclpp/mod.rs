//! Execution plans for MSCCL++'s executor: read, laid out, proved as the executor runs them, and written.

mod bad;
mod fuzz;
mod made;
mod model;
mod mutants;
mod proxies;
mod refusals;
mod rules;
mod run;
mod switch;

use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_exchange::mscclpp::{self, Program};
use roundelay_exchange::{Text, Verdict};
use serde_json::Value as Json;

use crate::foreign;

/// The plan of two ranks that shows the form.
fn two_ranks() -> String {
    let path =
        format!("{}/../../../tests/mscclpp/two-rank-allreduce.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn read(text: &str) -> Text<Program> {
    mscclpp::read("plan.json", text.as_bytes())
}

/// Returns the verdict of a plan that can be read.
fn verdict(plan: &Json) -> Verdict {
    let text = read(&plan.to_string());
    let program = text.program.unwrap_or_else(|| panic!("{:#?}", text.errors));
    program.verdict(&text.source)
}

/// Codes and titles of all that is wrong with a plan.
fn told(plan: &Json) -> Vec<(Code, String)> {
    let text = read(&plan.to_string());
    let mut all: Vec<Diagnostic> = text.errors;
    if let Some(program) = text.program {
        all.extend(program.verdict(&text.source).errors().cloned());
    }
    all.into_iter().map(|error| (error.code, error.title)).collect()
}

/// Whether a text is taken, and what its reader and its proof say.
fn says(text: &[u8]) -> (bool, String) {
    foreign::told(&mscclpp::read("plan.json", text), Program::verdict)
}
