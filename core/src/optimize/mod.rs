//! Between the proof and the engines: passes from schedule to schedule. Each gives a schedule that is proved like
//! any other and whose results have the same bits.

pub mod elide;
mod flow;
pub mod fuse;
mod program;
mod share;
mod signals;

pub use fuse::{Fused, fuse};

/// Who brings the ranks in.
///
/// It decides what a run's ends order: with one caller for all of them, every rank has entered before the first
/// op and none leaves before the last; ranks that call by themselves are ordered by signals alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callers {
    /// One call runs all ranks.
    One,
    /// Each rank is a call of its own, as in MPI.
    Each,
}

/// Why a pass leaves a schedule as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit(pub String);
