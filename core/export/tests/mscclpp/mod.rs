//! Execution plans for MSCCL++'s executor: read, laid out, proved as the executor runs them, and written.

mod bad;
mod fuzz;
mod made;
mod model;
mod mutants;
mod ports;
mod proxies;
mod refusals;
mod rules;
mod run;

use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_export::exchange::mscclpp::{self, MscclppVerdict, Text};
use serde_json::Value as Json;

/// The plan of two ranks that shows the form.
fn two_ranks() -> String {
    let path =
        format!("{}/../../tests/mscclpp/two-rank-allreduce.json", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn read(text: &str) -> Text {
    mscclpp::read("plan.json", text.as_bytes())
}

/// Returns the verdict of a plan that can be read.
fn verdict(plan: &Json) -> MscclppVerdict {
    let text = read(&plan.to_string());
    let program = text.program.unwrap_or_else(|| panic!("{:#?}", text.errors));
    program.verdict(&text.source)
}

/// Codes and titles of all that is wrong with a plan.
fn told(plan: &Json) -> Vec<(Code, String)> {
    let text = read(&plan.to_string());
    let mut all: Vec<Diagnostic> = text.errors;
    if let Some(program) = text.program {
        all.extend(program.verdict(&text.source).checked.errors);
    }
    all.into_iter().map(|error| (error.code, error.title)).collect()
}

/// Numbers of a fixed sequence, so that a failure repeats.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below.max(1)
    }
}
