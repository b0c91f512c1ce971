//! PTX on a CPU: the text that NVRTC makes of Roundelay's kernels, as a program of typed instructions.
//!
//! [`program`] has the instructions that an interpreter executes, and [`program::Module::parse`] reads them. The subset
//! is closed: it holds the instructions that the kernels contain, and every other text is refused with its line.
//! [`machine`] executes them for all ranks at once, by the memory model of PTX.

mod arithmetic;
mod bad_text;
mod choices;
mod decode;
mod lint;
pub mod machine;
mod memory;
pub mod program;
mod text;

pub use bad_text::BadText;
pub use lint::{Finding, OPCODES, Rule, lint};
