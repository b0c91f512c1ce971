//! Runs of moves without a signal between them. Where no move of a run touches data that another one writes, the run
//! is a set of moves, whatever their order, and a move of neighboring pieces is the moves of the pieces.

use super::space::{CellRange, Space};
use crate::ids::OpId;
use crate::schedule::{OpKind, Schedule};

/// The most parts that a turn may cut one move into.
const PARTS: usize = 1 << 12;

/// Returns the runs of moves of a schedule.
pub(super) fn runs(own: &Schedule) -> Vec<Vec<OpId>> {
    let mut runs = Vec::new();
    for stream in &own.streams {
        let ops = stream.first.0..stream.first.0 + stream.len;
        let ops: Vec<OpId> = ops.map(OpId).collect();
        let moves = ops.split(|at| own.op(*at).kind != OpKind::Move);
        runs.extend(moves.filter(|run| !run.is_empty()).map(<[OpId]>::to_vec));
    }
    runs
}

/// A move of pieces of equal length.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Part {
    /// The buffer of each operand, with the turn that takes the moving rank to its owner.
    operands: Vec<(u32, usize)>,
    /// The number of sources, and whether each of them is rounded.
    fold: (u8, bool),
    /// The first cell of each operand.
    firsts: Vec<u64>,
    len: u64,
}

/// A set of moves, in a form that does not depend on the way in which they are cut.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MoveSet(Vec<Part>);

impl MoveSet {
    /// Returns the moves of a rank as a set; `None` where a move touches data that another one writes.
    pub(super) fn new(
        own: &Schedule,
        space: &Space,
        moves: impl Iterator<Item = OpId>,
        rank: u32,
    ) -> Option<Self> {
        let mut parts = Vec::new();
        for at in moves {
            let op = own.op(at);
            let operands = own.operands_of(op);
            let pieces: Vec<CellRange> =
                operands.iter().map(|operand| space.piece(own, *operand)).collect();
            let owners =
                operands.iter().map(|operand| space.turns.turn_between(rank, operand.rank.0));
            parts.push(Part {
                operands: owners.zip(&pieces).map(|(owner, piece)| (owner, piece.buffer)).collect(),
                fold: (op.srcs, op.chain),
                firsts: pieces.iter().map(|piece| piece.first).collect(),
                len: pieces[0].len,
            });
        }
        parts.retain(|part| part.len > 0);
        if parts.len() > 1 && !are_apart(&parts) {
            return None;
        }
        Some(Self(joined(parts)))
    }

    /// Returns the moves to which a turn takes these.
    pub(super) fn turned(&self, space: &Space, by: u32) -> Self {
        let mut parts = Vec::new();
        for part in &self.0 {
            if part.turn(space, by, &mut parts).is_none() {
                // A move that a turn cuts into too many parts is like no other move.
                return Self(Vec::new());
            }
        }
        Self(joined(parts))
    }
}

impl Part {
    /// Adds the parts to which a turn takes this one; `None` where they are too many.
    fn turn(&self, space: &Space, by: u32, parts: &mut Vec<Self>) -> Option<()> {
        let pieces = self.operands.iter().zip(&self.firsts);
        let pieces: Vec<CellRange> = pieces
            .map(|((_, buffer), first)| CellRange { buffer: *buffer, first: *first, len: self.len })
            .collect();
        let turned = space.parts(&pieces, by, PARTS)?;
        parts.extend(turned.into_iter().map(|(firsts, len)| Self { firsts, len, ..self.clone() }));
        Some(())
    }
}

/// Puts parts in order, and joins neighbors.
fn joined(mut parts: Vec<Part>) -> Vec<Part> {
    parts.sort_unstable();
    let mut joined: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        if let Some(last) = joined.last_mut()
            && (&last.operands, last.fold) == (&part.operands, part.fold)
            && last.firsts.iter().zip(&part.firsts).all(|(a, b)| a + last.len == *b)
        {
            last.len += part.len;
        } else {
            joined.push(part);
        }
    }
    joined
}

/// Whether no part touches data that another part writes. Input and output may share memory.
fn are_apart(parts: &[Part]) -> bool {
    /// The owner, the buffer, the first cell and the end, and the part.
    type Touched = (u32, usize, u64, u64, usize);
    let mut writes: Vec<Touched> = Vec::new();
    let mut reads: Vec<Touched> = Vec::new();
    for (number, part) in parts.iter().enumerate() {
        let all = part.operands.iter().zip(&part.firsts).enumerate();
        for (operand, ((owner, buffer), first)) in all {
            let touched = (*owner, *buffer, *first, first + part.len, number);
            if operand < usize::from(part.fold.0) { &mut reads } else { &mut writes }.push(touched);
        }
    }
    writes.sort_unstable();
    let apart = writes.windows(2).all(|pair| {
        let [(o, b, _, end, p), (other, buffer, first, _, q)] = [pair[0], pair[1]];
        (o, b) != (other, buffer) || end <= first || p == q
    });
    apart
        && reads.iter().all(|&(owner, buffer, first, end, number)| {
            let shared = buffer == 0 && writes.iter().any(|w| (w.0, w.1) == (owner, 1));
            // Writes of one buffer are apart, so the last one that begins before the end is the only candidate with
            // those of the own part before it.
            let after = writes.partition_point(|w| (w.0, w.1, w.2) < (owner, buffer, end));
            let hit = writes[..after]
                .iter()
                .rev()
                .take_while(|w| (w.0, w.1) == (owner, buffer) && w.3 > first);
            !shared && hit.into_iter().all(|w| w.4 == number)
        })
}
