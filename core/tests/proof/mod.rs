//! Schedules and their proof from outside: right schedules are proved, wrong ones are refused, and an executor of
//! interleavings that knows nothing of clocks decides which is which.

mod averages;
mod clocks;
mod elision;
mod golden;
mod in_place;
mod kept;
mod legality;
mod limits;
mod mutants;
mod mutation;
mod oracles;
mod passes;
mod programs;
mod properties;
pub(crate) mod random;
mod right;
pub(crate) mod slips;
pub(crate) mod suite;
mod switch;

use roundelay_core::check::Frontend;
use roundelay_core::compile;
use roundelay_core::diagnostics::Finding;
use roundelay_core::layout::{Algorithm, Configured};
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;

/// The schedule of the only algorithm in `text`.
fn lay_out(text: &str, nranks: u32) -> Result<Schedule, Vec<Finding>> {
    let source = Source::from_text("test.coll", text);
    let program = compile(&source, Frontend::File).unwrap_or_else(|errors| {
        let all: Vec<_> = errors.iter().map(|e| e.report(&source)).collect();
        panic!("{}", all.join("\n"));
    });
    Configured::new(program.algorithms[0].clone(), &source).schedule(nranks)
}

/// The schedule of the only algorithm in `text`, which must be right.
fn schedule(text: &str, nranks: u32) -> Schedule {
    lay_out(text, nranks).unwrap_or_else(|found| panic!("{found:#?}\n{text}"))
}
