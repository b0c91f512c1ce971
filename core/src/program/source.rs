//! The programs of a whole source.

use super::ir::Program;
use crate::check::Executor;
use crate::diagnostics::Diagnostic;

/// The declarations of a source without errors: each algorithm is a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CompiledSource {
    /// The algorithms, in source order.
    pub algorithms: Vec<Program>,
    /// The executors, in source order.
    pub executors: Vec<Executor<Program>>,
    /// Warnings for the author, in source order; warnings that an attribute denies are errors.
    pub warnings: Vec<Diagnostic>,
}
