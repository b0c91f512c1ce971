//! The program of an algorithm: what one rank does, in few constructs, with its loops.
//!
//! [`ir`] is the form on one page, and [`lower()`] makes it of the checked tree.

mod edit;
pub mod ir;
mod lower;
mod ops;
pub mod text;

pub use ir::Program;
pub use lower::lower;
