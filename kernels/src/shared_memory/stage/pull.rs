//! The code of results that each rank makes for itself: a rank stages the parts of its input that others read, and folds or
//! copies the staged parts of other ranks into its own output.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use roundelay_core::ids::RankId;
use roundelay_core::schedule::{Buffer, Schedule};

use super::segment_statements::SegmentStatements;
use crate::lowering::{Bases, Code, Move, Operand, PARTIAL, Segment, Segments};

/// The code with which one rank makes its output from the staged inputs.
pub(crate) struct Pull {
    pub(crate) data: Segments,
    pub(crate) bases: Bases,
    /// The place of each segment in this rank's output, in elements of a tile, and the segment's statements, counted
    /// from 1.
    pub(crate) outputs: Box<[(u64, u32)]>,
    /// The other ranks whose tiles this rank reads.
    pub(crate) sources: Box<[ReadSource]>,
    pub(crate) readers: Arc<[usize]>,
    pub(crate) output: u32,
    /// The part of its own input that this rank reads.
    pub(crate) own: Option<OwnInput>,
    /// The units of this rank's input that other ranks read.
    pub(crate) read: Box<[u64]>,
    /// For each segment that only copies the input of another rank to the same places of a unit: that rank, and the unit
    /// that it reads less the unit that it writes.
    pub(crate) copies: Box<[Option<(usize, i64)>]>,
}

/// The part of its own input that a rank reads.
pub(crate) struct OwnInput {
    pub(crate) source: ReadSource,
    /// The unit that each segment reads, less the unit of the output that the segment writes, where every segment reads
    /// the elements of its own input that have the places of the elements that it writes. Then the input can be read
    /// where it lies.
    pub(crate) apart: Option<Box<[i64]>>,
}

/// The part of a rank's input that this rank reads.
pub(crate) struct ReadSource {
    pub(crate) rank: usize,
    /// The number of the input in the code.
    pub(crate) buffer: u32,
    /// The units of which this rank reads elements, in order.
    pub(crate) units: Box<[u64]>,
    /// Whether any segment does more than copy the input.
    pub(crate) folded: bool,
}

impl Pull {
    pub(crate) fn new(
        code: &Code,
        schedule: &Schedule,
        rank: RankId,
        stands: &SegmentStatements,
        count: u64,
    ) -> Self {
        let all = &code.segments;
        let output = code.buffers.index(Buffer::Output, rank);
        let mut data = Segments {
            all: Box::default(),
            moves: Box::default(),
            operands: Box::default(),
            ..all.clone()
        };
        let (mut segments, mut moves, mut operands) = (Vec::new(), Vec::new(), Vec::new());
        let mut outputs = Vec::new();
        for (segment, stands) in all.all.iter().zip(&stands.0) {
            for (at, dst) in writes(all, *segment, output) {
                let first = moves.len() as u32;
                for (m, dsts) in needed(all, *segment, at, dst) {
                    let (srcs, _) = all.of(m).split_at(m.srcs as usize);
                    let begin = operands.len() as u32;
                    operands.extend_from_slice(srcs);
                    operands.extend_from_slice(&dsts);
                    moves.push(Move { first: begin, dsts: dsts.len() as u8, ..m });
                }
                let len = moves.len() as u32 - first;
                segments.push(Segment { first, len, ..*segment });
                outputs.push(((dst.offset / all.kernel.size()) as u64, *stands));
            }
        }
        (data.all, data.moves, data.operands) = (segments.into(), moves.into(), operands.into());
        let input = |rank: RankId| code.buffers.index(Buffer::Input, rank);
        let ranks = || (0..schedule.nranks).map(RankId);
        let others = || ranks().filter(|other| *other != rank);
        let mine = reads(code, rank, count);
        let copies: Vec<_> = data
            .all
            .iter()
            .zip(&outputs)
            .map(|(segment, (begin, _))| {
                let copied = data.copied(*segment)?;
                let from = others().find(|other| input(*other) == copied)?;
                let begins = data.sources(*segment, copied);
                let apart = units_apart(&begins, *begin, segment.elements as u64, count)?;
                Some((from.index(), apart))
            })
            .collect();
        let source = |rank: RankId| {
            let buffer = input(rank);
            let units = mine.get(&buffer)?.iter().copied().collect();
            let mut all = data.all.iter().zip(&copies);
            let folded = all.any(|(segment, copies)| {
                copies.is_none() && !data.sources(*segment, buffer).is_empty()
            });
            Some(ReadSource { rank: rank.index(), buffer, units, folded })
        };
        let (mut read, mut readers) = (BTreeSet::new(), Vec::new());
        for other in others() {
            if let Some(units) = reads(code, other, count).get(&input(rank)) {
                read.extend(units);
                readers.push(other.index());
            }
        }
        let sources: Box<[_]> = others().filter_map(source).collect();
        let own = source(rank).map(|source| {
            let outputs = data.all.iter().zip(outputs.iter().map(|(begin, _)| *begin));
            let apart = outputs.map(|(segment, begin)| {
                let from = data.sources(*segment, source.buffer);
                units_apart(&from, begin, segment.elements as u64, count)
            });
            OwnInput { apart: apart.collect(), source }
        });
        Self {
            data,
            bases: Bases::new(code.buffers.len.len()),
            outputs: outputs.into(),
            sources,
            readers: readers.into(),
            output,
            own,
            read: read.into_iter().collect(),
            copies: copies.into(),
        }
    }
}

/// Returns the number of units between the elements at `from`, in elements, and the output at `begin`: `None` if the
/// elements do not all lie at the output's places in their units, or not equally far away.
fn units_apart(from: &[u64], begin: u64, elements: u64, count: u64) -> Option<i64> {
    let mut apart = from.iter().map(|from| from.cast_signed() - begin.cast_signed());
    let Some(first) = apart.next() else { return Some(0) };
    // Where a segment goes on in the next unit, it does so in both buffers.
    let within = begin % count + elements <= count || first == 0;
    let same = apart.all(|other| other == first) && first % count.cast_signed() == 0;
    (same && within).then_some(first / count.cast_signed())
}

/// Returns the moves of a segment that write a buffer, each with the operand that it writes.
fn writes(all: &Segments, segment: Segment, buffer: u32) -> Vec<(usize, Operand)> {
    let mut found = Vec::new();
    for at in segment.first as usize..(segment.first + segment.len) as usize {
        let m = all.moves[at];
        let dsts = &all.of(m)[m.srcs as usize..];
        found.extend(dsts.iter().filter(|dst| dst.buffer == buffer).map(|dst| (at, *dst)));
    }
    found
}

/// Returns the moves of a segment that destination `dst` of move `last` needs, with the operands that each writes for
/// it.
fn needed(
    all: &Segments,
    segment: Segment,
    last: usize,
    dst: Operand,
) -> Vec<(Move, Vec<Operand>)> {
    let partials = |operands: &[Operand]| -> Vec<Operand> {
        operands.iter().filter(|o| o.buffer == PARTIAL).copied().collect()
    };
    let mut live = partials(&all.of(all.moves[last])[..all.moves[last].srcs as usize]);
    let mut kept = vec![(all.moves[last], vec![dst])];
    for at in (segment.first as usize..last).rev() {
        let m = all.moves[at];
        let (srcs, dsts) = all.of(m).split_at(m.srcs as usize);
        let made: Vec<Operand> =
            partials(dsts).into_iter().filter(|dst| live.contains(dst)).collect();
        if !made.is_empty() {
            live.retain(|partial| !made.contains(partial));
            live.extend(partials(srcs));
            kept.push((m, made));
        }
    }
    kept.reverse();
    kept
}

/// Returns the buffers from which the output of a rank is made, each with the units, of `count` elements, of which
/// elements are read.
fn reads(code: &Code, rank: RankId, count: u64) -> BTreeMap<u32, BTreeSet<u64>> {
    let output = code.buffers.index(Buffer::Output, rank);
    let all = &code.segments;
    let mut found: BTreeMap<u32, BTreeSet<u64>> = BTreeMap::new();
    for segment in &all.all {
        for (at, dst) in writes(all, *segment, output) {
            for (m, _) in needed(all, *segment, at, dst) {
                let srcs = all.of(m)[..m.srcs as usize].iter();
                for src in srcs.filter(|src| src.buffer != PARTIAL) {
                    let first = (src.offset / all.kernel.size()) as u64;
                    let end = first + segment.elements as u64;
                    found.entry(src.buffer).or_default().extend(first / count..end.div_ceil(count));
                }
            }
        }
    }
    found
}
