//! Proofs by symmetry: where all ranks do the same, turned, one rank stands for all.
//!
//! A group of turns acts on the ranks, and on the cells of every buffer. A schedule is *symmetric* if the ops of each
//! rank are those of rank 0, turned: peers, owners and pieces move by the turn that takes rank 0 to the rank, while
//! streams, lanes and statements stay. Then the wait of rank 0 for the k-th post of rank p meets the turned image of
//! rank 0's own k-th post; the accesses of all ranks to rank 0's memory are the images of rank 0's accesses to theirs;
//! and the value of a cell of rank p is the value of a cell of rank 0, turned. So one pass over the ops of rank 0 finds
//! each deadlock, race and wrong result that a pass over the ops of all ranks would find.
//!
//! That a schedule is symmetric is shown, not sampled. One walk of the program follows how each value of rank 0 changes
//! from rank to rank ([`Way::Followed`]). Where values leave the class that the walk follows, and ranks have few ops,
//! the ops of every rank are compared with those of rank 0 ([`Way::Compared`]).

mod block_owners;
mod comparison;
mod findings;
mod moves;
mod one_rank;
mod one_walk;
mod order;
mod parts;
mod proof;
mod reduction;
pub(crate) mod space;
mod turned_ops;
mod values;

use crate::diagnostics::Finding;
use crate::layout::{Algorithm, Leaves};
use crate::schedule::Schedule;
use crate::turns::Turns;
use space::Space;

pub(crate) use order::folded;
pub(crate) use proof::proved;
pub use proof::{NoProof, SymmetricProof, prove};
pub(crate) use turned_ops::MoveTurner;

/// The way in which a schedule was shown to be symmetric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One walk of the program followed how each value changes from rank to rank.
    Followed,
    /// The ops of every rank were compared with those of rank 0.
    Compared,
}

/// A rank that stands for all: its ops, and the turns that take them to the ops of every other rank.
#[derive(Clone, Debug)]
pub struct Representative {
    /// The ops of rank 0, in a schedule without the other ranks.
    pub own: Schedule,
    /// The turns.
    pub turns: Turns,
    /// The way in which the schedule was shown to be symmetric.
    pub way: Way,
    /// The ops, messages and pieces of all ranks, which may cut what rank 0 moves as one piece.
    pub totals: Totals,
    pub(crate) space: Space,
}

/// The counts of all ranks together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Ops.
    pub ops: u64,
    /// Messages between ranks: see [`Schedule::messages`].
    pub messages: u64,
    /// The pieces of these messages.
    pub pieces: u64,
}

/// The reason why no rank stands for all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asymmetric {
    /// The construct at which the program leaves the class, with the turns that reach farthest.
    Leaves(Leaves),
    /// The ops of a rank are not those of rank 0, turned.
    Differs {
        /// The rank.
        rank: u32,
        /// The turns that were tried.
        turns: String,
    },
    /// A reason that has no place in the program.
    Other(String),
    /// A rank cannot be laid out.
    Faulty(Vec<Finding>),
}

impl Asymmetric {
    /// Returns the reason in words.
    pub fn why(&self) -> String {
        match self {
            Self::Leaves(leaves) => leaves.why.clone(),
            Self::Differs { rank, turns } => {
                format!("rank {rank} does not do the same as rank 0, turned ({turns})")
            }
            Self::Other(why) => why.clone(),
            Self::Faulty(all) => all.first().map_or_else(String::new, |first| first.title.clone()),
        }
    }
}

/// Finds a rank that stands for all ranks of an algorithm.
///
/// # Errors
/// The reason why there is none.
pub fn representative<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
) -> Result<Representative, Asymmetric> {
    if algorithm.collective().is_rooted() {
        return Err(Asymmetric::Other("the root is a rank unlike the others".to_owned()));
    }
    if nranks < 2 {
        return Err(Asymmetric::Other("there is one rank".to_owned()));
    }
    let left = match one_walk::follow(algorithm, nranks) {
        Ok(found) => return Ok(found),
        Err(faulty @ Asymmetric::Faulty(_)) => return Err(faulty),
        Err(left) => left,
    };
    match comparison::compare(algorithm, nranks) {
        Some(Ok(found)) => Ok(found),
        Some(Err(faulty @ Asymmetric::Faulty(_))) => Err(faulty),
        Some(Err(_)) | None => Err(left),
    }
}
