//! The Roundelay compiler.

pub mod collective;
pub mod diagnostics;
pub mod dtype;
pub mod ids;
pub mod schedule;
pub mod source;
pub mod syntax;
pub mod verify;
