//! The program of an algorithm: the work of one rank, in few constructs, with its loops.
//!
//! [`ir`] is the form, and [`lower()`] makes it of the checked tree.

mod edit;
pub mod ir;
mod lower;
mod ops;
pub mod text;

pub use ir::Program;
pub use lower::lower;

/// The declarations of a source without errors, whose algorithms are programs.
pub type CompiledSource = crate::check::CheckedSource<Program>;
