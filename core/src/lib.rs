//! The Roundelay compiler: a page of per-rank step loops becomes a schedule that is proved before it runs.
//!
//! The pipeline is this page, in the order of the modules:
//! **syntax -> check -> schedule -> verify -> optimize -> emit / run**.
//! Nothing here knows an engine, a thread or a proc macro's bridge.

pub mod source;
pub mod syntax;

pub mod check;

pub mod topology;

pub mod schedule;

pub mod verify;

pub mod emit;

pub mod collective;
pub mod cost;
pub mod diagnostics;
pub mod dtype;
pub mod ids;
#[cfg(feature = "render")]
pub mod render;
pub mod stages;

use check::Door;
use check::hir::Program;
use diagnostics::{Code, Diagnostic, Finding};
use schedule::interpret::Interpreted;
use schedule::{Algorithm, Limits};
use source::Source;
use verify::Proved;

/// Syntax and check: from text or tokens to a program that makes sense, or all that is wrong with it.
pub fn compile(source: &Source, door: Door) -> Result<Program, Vec<Diagnostic>> {
    let (file, mut errors) = syntax::parse(source);
    if errors.is_empty() {
        return check::check(&file, door);
    }
    // What the parser could read is checked too: the author sees all errors at once.
    errors.extend(check::check(&file, door).err().into_iter().flatten());
    Err(errors)
}

/// Schedule and verify: from an algorithm and a number of ranks to ops that are proved right.
pub fn prove<A: Algorithm + ?Sized>(algorithm: &A, nranks: u32) -> Result<Proved, Vec<Finding>> {
    Proved::new(algorithm.schedule(nranks)?)
}

/// The same for a checked source, with problems at their exact place.
pub fn prove_source(algorithm: &Interpreted, nranks: u32) -> Result<Proved, Vec<Diagnostic>> {
    prove(algorithm, nranks)
        .map_err(|all| all.into_iter().map(|f| algorithm.diagnostic(f, nranks)).collect())
}

/// Rank counts that the macro proves while it expands; plans prove theirs, always.
const AT_EXPANSION: std::ops::RangeInclusive<u32> = 1..=4;

/// What the macro says beyond names and types: every algorithm that can be laid out now is proved for a few
/// small rank counts, within a budget of steps. An algorithm with a `rust { }` escape, or with a parameter
/// that has no value yet, is proved when its plan is made.
pub fn prove_at_expansion(program: &Program, source: &Source) -> Vec<Diagnostic> {
    let mut errors: Vec<Diagnostic> = Vec::new();
    for algorithm in &program.algorithms {
        let open = algorithm.params.iter().any(|p| p.default.is_none() && !p.ty.has_natural());
        if algorithm.escapes || open {
            continue;
        }
        let algorithm = Interpreted::new(algorithm.clone(), source);
        let found = AT_EXPANSION.flat_map(|nranks| {
            let schedule = algorithm.schedule_within(nranks, Limits::EXPANSION);
            let findings = schedule.and_then(|s| verify::verify(&s)).err().unwrap_or_default();
            let place = |finding| algorithm.diagnostic(finding, nranks);
            findings.into_iter().map(place).collect::<Vec<_>>()
        });
        for error in found {
            // A refusal is the author's word; what is beyond the budget is left to the plan.
            let no_error = error.code.refuses() || error.code == Code::StepLimit;
            let known = errors.iter().any(|e| (e.code, e.primary) == (error.code, error.primary));
            if !no_error && !known {
                errors.push(error);
            }
        }
    }
    errors
}
