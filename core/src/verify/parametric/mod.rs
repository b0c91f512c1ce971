//! The proof for every number of ranks at once, of programs that look the same from every rank.
//!
//! **The class.** All ranks run one text. Peers, blocks and loop bounds are linear terms in the round s and n = nranks;
//! a peer is the rank plus an offset modulo n, a block is the rank plus a term modulo n. A rotation of all ranks and
//! blocks by one maps a program of this class to itself, so a fact that is shown for rank 0 holds for every rank.
//! Positions in a ring serve as well as ranks: the facts then hold for every order of that ring.
//!
//! **The argument.** Each step is a set of linear inequalities in n and s that must have no solution with
//! `n >= from` (`linear`); nothing is concluded from particular values of n.
//!
//! 1. *Signals* (`signals`). In each loop body, a post statement to `+o(s)` stands against a wait statement from
//!    `-o(s)` that is later in the text. So the k-th post meets the k-th wait, in the same round, and (part, round,
//!    statement) is an order that the program keeps: no deadlock occurs and no signal is left over.
//! 2. *Order* (`order`). Two accesses share memory where their blocks, counted from the owner, are equal
//!    modulo n. For each pair of statements with a write, in any two rounds, a chain of signals leads from
//!    one statement to its partner. Another rank's buffers are touched after its `enter` and before its `exit`;
//!    scratch is checked over two runs.
//! 3. *Values* (`values`). As there is no race, any order that the program keeps gives the result; the proof takes
//!    the order of 1. A read sees the last write before it: the proof solves for that write, and splits cases where
//!    the answer changes. Values are arcs of ranks. For each move of a loop a value in round s is guessed and
//!    proved by induction on that order. At the end all blocks are read, and must hold the promised values.
//!
//! Steps 2 and 3 are done in place too. A fact that is not shown is not claimed: the answer is then [`NotCovered`], and
//! the proof for given n (`verify`) decides.
//!
//! Loops over the bits of n have no linear terms: `doubling` has a proof of its own for them.

mod arcs;
mod blocks;
mod doubling;
mod eval;
mod linear;
mod lower;
mod memory;
mod order;
mod rounds;
mod signals;
mod values;

use super::layout::BufferMode;
use crate::program::ir;
use doubling::DoublingClaim;
use linear::Facts;
use memory::effects;
use order::RoundOrder;
pub use rounds::NotCovered;
use signals::links;

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
    let mut outside = None;
    for from in FROM {
        match prove_from(source, from) {
            Ok(blocks) => return Ok(Every { from, blocks, powers_of_two: false }),
            Err(found) => outside = Some(found),
        }
    }
    let outside = outside.unwrap_or_else(|| NotCovered::new(source.header(), "no count was tried"));
    let DoublingClaim { powers_of_two, blocks } = doubling::prove(source, outside)?;
    Ok(Every { from: 2, blocks, powers_of_two })
}

/// Returns whether each move keeps blocks together.
fn prove_from(source: &ir::Program, from: u32) -> Result<bool, NotCovered> {
    let facts = Facts::ranks(from);
    let program = lower::lower(source, from)?;
    let links = links(&program, &facts)?;
    let order = RoundOrder { program: &program, links: &links };
    let in_place = program.collective.has_in_place() && !program.out_of_place;
    for mode in BufferMode::BOTH.into_iter().take(1 + usize::from(in_place)) {
        let effects = effects(&program, &facts, mode)?;
        order.caller(&effects, &facts)?;
        order.races(&effects, &facts, None)?;
        values::complete(&program, &effects, mode, &facts)?;
    }
    if program.uses_scratch() {
        let twice = program.twice();
        let links = signals::links(&twice, &facts)?;
        let effects = effects(&twice, &facts, BufferMode::OutOfPlace)?;
        let order = RoundOrder { program: &twice, links: &links };
        order.races(&effects, &facts, Some(program.steps.len()))?;
    }
    Ok(blocks::keeps_blocks(&program, &facts))
}
