//! A check of communication kernels on several GPUs, without a GPU: a [`Harness`] says which kernels run on which memory and
//! what they must compute, the machine of [`roundelay_ptx`] runs them under many choices of its memory model, and a
//! [`Verdict`] says what went wrong, or on which assumptions beyond PTX the kernels rely.

mod arguments;
mod assumption;
mod check;
mod coverage;
mod elements;
mod expected;
mod expression;
mod finding;
pub mod harness;
mod layout;
mod modules;
mod node;
mod own;
mod read;
mod report;
mod sequence;
mod verdict;

pub use assumption::{Assumption, Assumptions, MachineAssumption, names};
pub use check::Options;
pub use expression::{Expression, NAMES, Numbers};
pub use finding::{Access, Finding, Kind, Memory};
pub use harness::Harness;
pub use modules::Compiled;
pub use node::Mistake;
pub use sequence::{Case, Variation};
pub use verdict::{CaseRuns, NOT_COVERED, State, Verdict};
