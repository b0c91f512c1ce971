//! A check of communication kernels on several GPUs, without a GPU: a [`Harness`] says which kernels run on which memory and
//! what they must compute, the machine of [`roundelay_ptx`] runs them under many choices of its memory model, and a
//! [`Verdict`] says what went wrong, or on which assumptions beyond PTX the kernels rely.

mod addresses;
mod arguments;
mod assumption;
mod case;
mod check_run;
mod coverage;
mod elements;
mod expectation;
mod expression;
mod fill;
mod finding;
mod finding_text;
pub mod harness;
mod judge;
mod modules;
mod node;
mod own;
mod read;
mod sequence;
mod verdict;

pub use assumption::{Assumption, Assumptions, MachineAssumption, names};
pub use case::Case;
pub use check_run::CheckOptions;
pub use expression::{Expression, NAMES, Numbers};
pub use finding::{Finding, Kind, Memory, ThreadSite};
pub use harness::Harness;
pub use judge::{Candidate, Claims, FAMILIES, JudgedCase, Judgement, Outcome};
pub use modules::Compiled;
pub use node::Mistake;
pub use sequence::Variation;
pub use verdict::{CaseRuns, NOT_COVERED, State, Verdict};
