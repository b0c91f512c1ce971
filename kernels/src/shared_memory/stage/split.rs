//! A result that all ranks get, of which each rank makes a share for all. A rank stages only the parts of its input that
//! other ranks fold, reads its own part where it lies, and writes its share both to its own output and to the place from
//! which the other ranks copy it: one place for all of them, or for each rank that in which the rank has staged its input.

use std::sync::Arc;

use roundelay_core::ids::RankId;
use roundelay_core::schedule::{Buffer, Schedule};

use super::geometry::{EqualBlocks, Stripe, Tiles};
use super::segment_statements::SegmentStatements;
use crate::lowering::{Bases, Code, Move, Operand, PARTIAL, Segments};
use crate::shared_memory::world::memory::arena::LINE;

/// The code with which a rank makes its share.
pub(crate) struct Split {
    pub(crate) data: Segments,
    pub(crate) bases: Bases,
    /// The place of each segment in the output, in elements of a tile, and the segment's statements, counted from 1.
    pub(crate) places: Box<[(u64, u32)]>,
    /// The number of each rank's input in the code.
    pub(crate) inputs: Box<[u32]>,
    /// The number of this rank's output in the code.
    pub(crate) output: u32,
    /// The numbers in the code of the places from which other ranks copy: that of another rank's output for the common
    /// place; or that of each other rank's output, with the rank, for the places of their inputs.
    pub(crate) copies: Box<[(usize, u32)]>,
    /// Whether the share is written in the places of the inputs.
    pub(crate) in_place: bool,
    pub(crate) rank: usize,
    /// The ranks that must be done with a slot before it is used again: none, as all have then made their shares.
    pub(crate) readers: Arc<[usize]>,
}

impl Split {
    /// Makes the code of a rank, of a schedule in which all ranks get the same result; `None` where an element of the
    /// result is not made of the elements of the inputs at the same place, or where an input is read after its place has the
    /// result.
    pub(crate) fn new(
        code: &Code,
        schedule: &Schedule,
        (rank, in_place): (RankId, bool),
        stands: &SegmentStatements,
    ) -> Option<Self> {
        let all = &code.segments;
        let ranks = || (0..schedule.nranks).map(RankId);
        let inputs: Box<[u32]> =
            ranks().map(|rank| code.buffers.index(Buffer::Input, rank)).collect();
        // Every rank has the result, so the number of another rank's output can stand for the common place.
        let number = |rank| code.buffers.index(Buffer::Output, rank);
        let others = ranks().filter(|other| *other != rank);
        let others = others.take(if in_place { usize::MAX } else { 1 });
        let copies: Box<[_]> = others.map(|other| (other.index(), number(other))).collect();
        let output = number(rank);
        let is_output = |buffer| buffer == output || copies.iter().any(|(_, copy)| *copy == buffer);
        if copies.is_empty() || in_place && !reads_come_first(all, &inputs, is_output) {
            return None;
        }
        let (mut moves, mut operands) = (Vec::new(), Vec::new());
        for m in &all.moves {
            let (srcs, dsts) = all.of(*m).split_at(m.srcs as usize);
            let first = operands.len() as u32;
            operands.extend_from_slice(srcs);
            let kept = |dst: &&Operand| dst.buffer == PARTIAL || is_output(dst.buffer);
            operands.extend(dsts.iter().filter(kept));
            let dsts = (operands.len() - first as usize - srcs.len()) as u8;
            moves.push(Move { first, dsts, ..*m });
        }
        let data = Segments { moves: moves.into(), operands: operands.into(), ..all.clone() };
        let mut places = Vec::new();
        for (segment, stands) in all.all.iter().zip(&stands.0) {
            let of = |rank| all.destinations(*segment, code.buffers.index(Buffer::Output, rank));
            let [begin] = of(rank)[..] else { return None };
            let read = |input: &u32| all.sources(*segment, *input) == [begin];
            if !ranks().all(|rank| of(rank) == [begin]) || !inputs.iter().all(read) {
                return None;
            }
            places.push((begin, *stands));
        }
        let bases = Bases::new(code.buffers.len.len());
        Some(Self {
            data,
            bases,
            places: places.into(),
            inputs,
            output,
            copies,
            in_place,
            rank: rank.index(),
            readers: Arc::default(),
        })
    }

    /// Returns the stripes of a tile that a rank makes, with the number of the segment of each.
    pub(crate) fn share<'s>(
        &'s self,
        tiles: &'s Tiles,
        tile: u64,
        maker: usize,
    ) -> impl Iterator<Item = (usize, Stripe)> + 's {
        let line = (LINE / self.data.kernel.size()).max(1) as u64;
        let n = self.inputs.len() as u64;
        self.places.iter().enumerate().flat_map(move |(nth, (begin, _))| {
            let elements = self.data.all[nth].elements as u64;
            let lines = elements.div_ceil(line);
            let at = |share: u64| begin + (lines * share / n * line).min(elements);
            let (from, to) = (at(maker as u64), at(maker as u64 + 1));
            let parts = tiles.within(tile, *begin, begin + elements, EqualBlocks);
            parts.filter_map(move |part| Some((nth, part.stripe.clipped(from, to)?)))
        })
    }
}

/// Whether the moves of each segment read inputs before the first of them writes an output, or in it.
fn reads_come_first(all: &Segments, inputs: &[u32], is_output: impl Fn(u32) -> bool) -> bool {
    all.all.iter().all(|segment| {
        let moves = &all.moves[segment.first as usize..][..segment.len as usize];
        let sides = |m: &Move| all.of(*m).split_at(m.srcs as usize);
        let mut later =
            moves.iter().skip_while(|m| !sides(m).1.iter().any(|dst| is_output(dst.buffer)));
        later.next();
        later.all(|m| !sides(m).0.iter().any(|src| inputs.contains(&src.buffer)))
    })
}
