//! The functions that expanded code calls; not for writing by hand.

use std::fmt::Write as _;

use roundelay_core::check::Frontend;
use roundelay_core::check::dependencies::Dependencies;
use roundelay_core::compile_with;
use roundelay_core::executor::Executor;
pub use roundelay_core::expansion::Read;
pub use roundelay_core::layout::Configured;
pub use roundelay_core::source::{CalledSource, Location};
use roundelay_core::syntax::Source;
pub use roundelay_core::values::escape::{Escapes, Int, Scope};
pub use roundelay_core::values::params::ParamValue;
use roundelay_kernels::executor::CompiledExecutor;

use crate::library::SOURCES;
use crate::{Algorithm, Error};

/// Returns a statement's place.
pub const fn at(line: u32, column: u32, end_line: u32, end_column: u32) -> Location {
    Location { line, column, end_line, end_column }
}

/// Returns the executor `name` of `source`, which its macro has compiled before.
///
/// # Panics
///
/// If it cannot be compiled now, which the macro rules out.
pub fn executor(name: &str, source: &str) -> CompiledExecutor {
    let source = Source::from_text(format!("{name}.coll"), source);
    let program = compile_with(&source, Frontend::File, &Dependencies::library(SOURCES));
    let program = program.expect("the macro has checked it");
    let checked = program.executors.into_iter().find(|executor| executor.name == name);
    let checked = checked.expect("a source in canonical form holds its executor");
    CompiledExecutor::new(Executor::compile(&checked, &source).expect("the macro has compiled it"))
}

/// Checks that `algorithm` is proved for these rank counts; generated tests call it. Refused counts do not matter,
/// unless they are `named` or all are refused.
///
/// # Panics
///
/// If a proof fails, with all findings.
pub fn is_proved(algorithm: &dyn Algorithm, counts: impl IntoIterator<Item = u32>, named: bool) {
    let mut proved = 0;
    let mut refusal = None;
    let mut wrong = String::new();
    for nranks in counts {
        let Err(findings) = roundelay_core::prove(algorithm, nranks) else {
            proved += 1;
            continue;
        };
        let refused = findings.iter().all(|finding| finding.code.refuses());
        let error = Error::from_findings(algorithm, nranks, findings);
        if refused && !named {
            refusal = Some(error);
        } else if wrong.is_empty() {
            // The smallest count that shows it says most.
            let _ = write!(wrong, "{error}");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    if let (0, Some(refusal)) = (proved, refusal) {
        panic!("{} admits no rank count that was tried: {refusal}", algorithm.name());
    }
}
