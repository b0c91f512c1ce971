//! The Roundelay compiler.

pub mod collective;
pub mod diagnostics;
pub mod dtype;
pub mod ids;
#[cfg(feature = "render")]
pub mod render;
pub mod schedule;
pub mod source;
pub mod syntax;
pub mod verify;
