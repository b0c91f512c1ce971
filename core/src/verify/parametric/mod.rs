//! The proof for every number of ranks at once, of programs that look the same from every rank.
//!
//! A class of programs says how ranks, blocks and rounds are named, what its numbers and its loops are, and when two
//! events are in order: `linear` has loops over nranks, `doubling` has loops over the bits of nranks. All else is
//! written once: the values of expressions (`eval`) and the walk of the statements (`walk`), which make the actions of
//! every rank (`rounds`); the pairs of posts and waits (`signals`); the places in memory (`memory`) and the accesses to
//! them (`order`); and the sequence of the argument (`claim`), out of place and in place.
//!
//! A fact that is not shown is not claimed: the answer is then [`NotCovered`], and the proof for given n (`verify`)
//! decides.

mod access_order;
mod claim;
mod doubling;
mod eval;
mod linear;
mod places;
mod rounds;
mod signals;
mod terms;
mod walk;

use crate::program::ir;
use doubling::Doubling;
use linear::Linear;
pub use rounds::NotCovered;

/// The claim: the algorithm, with any ring for its ring parameters, is right for every `nranks >= from`, in place too
/// unless it is marked `#[out_of_place]`. The proof for a given count covers fewer ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Every {
    /// The smallest nranks that the argument covers.
    pub from: u32,
    /// Whether each move keeps blocks together, so that the claim holds for every vector of counts, one for each block.
    pub blocks: bool,
    /// Whether the claim holds for every nranks that is a power of two, and says nothing about others.
    pub powers_of_two: bool,
}

/// The smallest nranks from which the argument is tried; with few ranks, the neighbors on both sides are one rank.
const FROM: std::ops::RangeInclusive<u32> = 2..=5;

/// Proves the algorithm of `source` for all numbers of ranks but a few.
///
/// # Errors
/// [`NotCovered`] with the statement for which the proof fails, and the reason.
pub fn prove(source: &ir::Program) -> Result<Every, NotCovered> {
    let mut outside = NotCovered::new(source.header(), "the root does not do what the others do");
    if source.collective.is_rooted() {
        return Err(outside);
    }
    for from in FROM {
        match walk::lower(source, Linear::from(from)).and_then(|program| claim::prove(&program)) {
            Ok(blocks) => return Ok(Every { from, blocks, powers_of_two: false }),
            Err(found) => outside = found,
        }
    }
    let Some(class) = Doubling::of(source) else { return Err(outside) };
    // A construct further in the text that leaves this class is named, as the program is then nearer to this class.
    let program = walk::lower(source, class)
        .map_err(|found| if found.at.lo > outside.at.lo { found } else { outside })?;
    let Doubling { powers_of_two } = class;
    Ok(Every { from: 2, blocks: claim::prove(&program)?, powers_of_two })
}
