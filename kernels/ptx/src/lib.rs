//! PTX on a CPU: the text that NVRTC makes of Roundelay's kernels, as a program of typed instructions.
//!
//! [`program`] has the instructions that an interpreter executes, and [`program::Module::parse`] reads them. A function
//! with an instruction that is not in the subset cannot be launched; [`program::Module::parse_whole`] refuses the text.
//! [`machine`] executes them for all ranks at once, by the memory model of PTX and by declared [`Assumptions`].

mod arithmetic;
mod assumptions;
mod choices;
mod decode;
mod error;
mod lint;
pub mod machine;
mod memory;
pub mod program;
mod text;

pub use assumptions::{Assumption, Assumptions, UnknownAssumption};
pub use error::BadText;
pub use lint::{Finding, OPCODES, Rule, lint};
