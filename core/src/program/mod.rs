//! The program of an algorithm: the work of one rank, in few constructs, with its loops.
//!
//! [`ir`] is the form, and [`lower()`] makes it of the checked tree.

pub mod declaration;
mod edit;
pub mod ir;
mod lower;
mod ops;
mod source;
pub mod text;

pub use ir::Program;
pub use lower::lower;
pub use source::CompiledSource;
