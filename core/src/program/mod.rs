//! The program of an algorithm: what one rank does, in few constructs, with its loops.
//!
//! [`ir`] is the form on one page, [`lower()`] makes it of the checked tree, and a walk lays one rank out by it.

mod advice;
mod configured;
mod edit;
pub mod ir;
mod lower;
mod ops;
mod runs;
pub mod text;
pub(crate) mod walk;
mod wrap;

pub use configured::Configured;
pub use ir::Program;
pub use lower::lower;
