//! Symmetry by one walk: the axes along which operands move give the action on cells, and each op must be taken to the
//! op of the other rank by it.

use super::moves::{MoveSet, runs};
use super::space::Space;
use super::{Asymmetric, Representative, Totals, Way};
use crate::ids::OpId;
use crate::layout::Algorithm;
use crate::layout::assembly::{OfOneRank, Unlike, one_for_all};
use crate::layout::turning::{Axis, Leaves};
use crate::schedule::{Operand, Schedule};
use crate::turns::Turns;

/// Shows by one walk that the ops of all ranks are those of rank 0, turned.
pub(super) fn follow<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
) -> Result<Representative, Asymmetric> {
    let rotation = with(algorithm, &Turns::rotation(nranks));
    let (first, groups) = match rotation {
        Ok(found) => return Ok(found),
        Err((Asymmetric::Faulty(found), _)) => return Err(Asymmetric::Faulty(found)),
        Err(left) => left,
    };
    // Where ranks are in groups, the reason by which the turns of the groups fail says most.
    let left = match groups.map(|radices| with(algorithm, &Turns::from_radices(&radices))) {
        Some(Ok(found)) => return Ok(found),
        Some(Err((left, _))) => left,
        None => first,
    };
    match Turns::xor(nranks).map(|turns| with(algorithm, &turns)) {
        Some(Ok(found)) => Ok(found),
        _ => Err(left),
    }
}

fn with<A: Algorithm + ?Sized>(
    algorithm: &A,
    turns: &Turns,
) -> Result<Representative, (Asymmetric, Option<[u32; 2]>)> {
    let OfOneRank { own, axes, lists } = match one_for_all(algorithm, turns) {
        Ok(found) => found,
        Err(Unlike::Leaves(leaves, groups)) => return Err((Asymmetric::Leaves(leaves), groups)),
        Err(Unlike::Faulty(found)) => return Err((Asymmetric::Faulty(found), None)),
    };
    checked(own, turns, &axes, &lists).map_err(|left| (left, None))
}

/// Checks that the action that the axes give takes the ops of rank 0 to those of every rank.
fn checked(
    own: Schedule,
    turns: &Turns,
    axes: &[u32],
    lists: &[Vec<Axis>],
) -> Result<Representative, Asymmetric> {
    let other = Asymmetric::Other;
    if own.demands.topology.is_some() || own.demands.rings {
        return Err(other("links between ranks are demanded".to_owned()));
    }
    let of = |at: usize| &lists[axes[at] as usize][..];
    let operands = own.operands.iter().enumerate().map(|(at, operand)| (*operand, of(at)));
    let mut space = Space::new(&own, turns, operands).map_err(other)?;
    if let Err(left) = all_alike(&own, &space, &of) {
        let spread = space.spread();
        if spread.is_err() || all_alike(&own, &space, &of).is_err() {
            return Err(left);
        }
    }
    let n = u64::from(turns.nranks());
    let messages = crate::optimize::join::messages(&own);
    let totals = Totals {
        ops: own.ops.len() as u64 * n,
        messages: messages.messages * n,
        pieces: messages.pieces * n,
    };
    Ok(Representative { own, turns: turns.clone(), way: Way::Followed, totals, space })
}

/// Checks that turns take the moves of rank 0 to the moves of every rank.
fn all_alike<'a>(
    own: &Schedule,
    space: &Space,
    of: &impl Fn(usize) -> &'a [Axis],
) -> Result<(), Asymmetric> {
    for run in runs(own) {
        let mut literal = Vec::new();
        for &at in &run {
            match moves_alike(own, space, at, of) {
                Ok(true) => {}
                Ok(false) => literal.push(at),
                Err(why) => {
                    let at = own.op(at).at;
                    return Err(Asymmetric::Leaves(Leaves { at, exact: None, why }));
                }
            }
        }
        let (Some(first), Some(last)) = (literal.first(), literal.last()) else { continue };
        // Between the first and the last of them, no move may touch data of another: they change places at other ranks.
        let between = run.iter().copied().filter(|at| first <= at && at <= last);
        let apart = MoveSet::new(own, space, between, 0).is_some();
        if !apart || !is_taken_to_itself(own, space, &literal) {
            let why = "these pieces are the same at all ranks, while others move with the rank";
            let at = own.op(literal[0]).at;
            return Err(Asymmetric::Leaves(Leaves { at, exact: None, why: why.to_owned() }));
        }
    }
    Ok(())
}

/// Whether a move of rank 0 is taken to the move of each other rank by itself. If not, all its pieces are the same at
/// all ranks; the error is the reason why it is taken to no move of another rank.
fn moves_alike<'a>(
    own: &Schedule,
    space: &Space,
    at: OpId,
    of: &impl Fn(usize) -> &'a [Axis],
) -> Result<bool, String> {
    let op = own.op(at);
    let first = op.arg as usize;
    let operands = own.operands_of(op);
    let numbered = || operands.iter().zip(first..);
    let fractions = |at: usize| space.fractions(of(at), own.multiple);
    if operands.len() > 1 && numbered().any(|(_, at)| fractions(at) != fractions(first)) {
        return Err("its pieces are cut at other fractions of the count at other ranks".to_owned());
    }
    let inside =
        |(operand, at): (&Operand, usize)| space.inside(space.piece(own, *operand), of(at)).ok();
    let all: Option<Vec<_>> = numbered().map(inside).collect();
    if let Some(all) = all
        && all.windows(2).all(|pair| pair[0] == pair[1])
    {
        return Ok(true);
    }
    if numbered().any(|(_, at)| !of(at).is_empty()) {
        return Err("some of its pieces move with the rank in another way than others".to_owned());
    }
    Ok(false)
}

/// Whether each turn takes a run of moves with fixed pieces to the same moves, in some order.
fn is_taken_to_itself(own: &Schedule, space: &Space, literal: &[OpId]) -> bool {
    let Some(moves) = MoveSet::new(own, space, literal.iter().copied(), 0) else { return false };
    space.turns.generators().all(|by| moves.turned(space, by) == moves)
}
