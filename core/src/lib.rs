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

pub mod expansion;

pub mod emit;

pub mod collective;
pub mod cost;
pub mod diagnostics;
pub mod dtype;
pub mod ids;
#[cfg(feature = "render")]
pub mod render;

use check::Door;
use check::hir::Program;
use diagnostics::{Diagnostic, Finding};
use schedule::interpret::Interpreted;
use schedule::Algorithm;
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
