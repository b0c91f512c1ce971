//! The program of an algorithm: the work of one rank, in few constructs, with its loops.
//!
//! [`ir`] is the form, with the expressions of `expr`, and [`lower()`] makes it of the checked tree.

mod edit;
mod expr;
pub mod ir;
mod lower;
mod ops;
pub mod text;

pub use ir::Program;
pub use lower::lower;

/// The declarations of a source without errors, whose algorithms are programs.
pub type CompiledSource = crate::check::CheckedSource<Program>;
