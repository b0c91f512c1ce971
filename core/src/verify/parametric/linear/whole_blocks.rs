//! Whether each move keeps blocks together for every nranks: then the claim holds for every vector of counts, as the
//! module `owners` has it for a given nranks. Scratch is not followed, so a program with scratch has no such claim.

use super::Linear;
use crate::collective::Collective;
use crate::schedule::Buffer;
use crate::verify::parametric::rounds::{Action, Interval, Naming as _, Owned, Rounds, WHOLE};
use crate::verify::parametric::terms::Affine;

/// The block that a place is, counted from the rank that runs the statement: the rank that gives it and, in an
/// `AllToAll`, the rank that gets it.
type BlockTerm = (Affine, Affine);

/// Whether the operands of each move are parts of one block, cut at the same fractions.
pub(super) fn keeps_blocks(program: &Rounds<Linear>) -> bool {
    program.steps.iter().enumerate().all(|(i, step)| {
        let Action::Move(srcs, dsts) = &step.action else { return true };
        let facts = program.class.facts(program.rounds(i));
        let mut all = srcs.iter().chain(dsts).map(|place| block(program.collective, place));
        let Some(Some((first, cut))) = all.next() else { return false };
        all.all(|other| {
            other.is_some_and(|(block, other)| {
                other == cut
                    && facts.prove_congruent(block.0 - first.0)
                    && facts.prove_congruent(block.1 - first.1)
            })
        })
    })
}

/// Returns the block of a place and the part of it; `None` where the place is no part of one known block.
fn block(collective: Collective, place: &Owned<Linear>) -> Option<(BlockTerm, Interval)> {
    let region = &place.region;
    let own = place.owner;
    match (region.many, region.block) {
        (false, None) if matches!(region.buffer, Buffer::Input | Buffer::Output) => {
            let block = match collective {
                Collective::AllGather | Collective::ReduceScatter => (own, Affine::ZERO),
                _ => return None,
            };
            Some((block, region.outer))
        }
        (true, Some(at)) if region.outer == WHOLE => {
            let block = match (collective, region.buffer) {
                (Collective::AllGather, Buffer::Output)
                | (Collective::ReduceScatter, Buffer::Input) => (at, Affine::ZERO),
                (Collective::AllToAll, Buffer::Input) => (own, at),
                (Collective::AllToAll, Buffer::Output) => (at, own),
                _ => return None,
            };
            Some((block, region.inner))
        }
        _ => None,
    }
}
