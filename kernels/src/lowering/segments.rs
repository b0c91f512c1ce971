//! The moves of a plan, in segments: moves in a row that hand partials to each other run tile by tile, so that a
//! partial never leaves the cache; any other move is a segment of its own.

use std::ops::Range;
use std::ptr;

use super::bases::Bases;
use crate::reduce::{Kernel, MoveForm, Stores};

/// The most sources of a move, and the most destinations.
pub(crate) const MAX_OPERANDS: usize = 8;
/// Bytes of an operand between two checks whether the run was stopped.
const PORTION: usize = 256 << 10;
/// Bytes of a tile of elements.
pub(super) const TILE: usize = 16 << 10;

/// All moves of a plan.
#[derive(Clone)]
pub(crate) struct Segments {
    pub(crate) kernel: Kernel,
    pub(crate) nranks: u32,
    pub(crate) all: Box<[Segment]>,
    pub(crate) moves: Box<[Move]>,
    pub(crate) operands: Box<[Operand]>,
    /// The number of partials at once.
    pub(crate) partials: u32,
    /// Bytes of a partial: a tile of elements, of wide ones where there are some.
    pub(crate) partial: usize,
    /// The kind of the stores to users' buffers.
    pub(crate) stores: Stores,
}

/// Moves of equally many elements: element i of each touches element i of its operands alone.
#[derive(Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) first: u32,
    pub(crate) len: u32,
    pub(crate) elements: usize,
    /// Whether there are partials, which hold a tile.
    pub(crate) partials: bool,
}

#[derive(Clone, Copy)]
pub(crate) struct Move {
    pub(crate) first: u32,
    pub(crate) srcs: u8,
    pub(crate) dsts: u8,
    /// The result is divided by the rank count.
    pub(crate) finish: bool,
    /// Whether it rounds after each source.
    pub(crate) chain: bool,
}

/// An address, once the buffers are known.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operand {
    /// Index in the table of buffers, or [`PARTIAL`].
    pub(crate) buffer: u32,
    /// Bytes; the number of a partial.
    pub(crate) offset: usize,
    /// Whether floats narrower than f32 are kept as f32 there.
    pub(crate) wide: bool,
}

/// The buffer of partials, a tile each, of which each worker has its own.
pub(crate) const PARTIAL: u32 = u32::MAX;

impl Segments {
    /// Returns the bytes of partials that a worker needs.
    pub(crate) fn partial_bytes(&self) -> usize {
        self.partials as usize * self.partial
    }

    /// Returns the elements that are run at once.
    pub(crate) fn tile(&self, segment: Segment) -> usize {
        (if segment.partials { TILE } else { PORTION }) / self.kernel.size()
    }

    /// Returns the bytes of user buffers that a segment reads and writes for an element.
    pub(crate) fn traffic(&self, segment: Segment) -> usize {
        let moves = &self.moves[segment.first as usize..][..segment.len as usize];
        let user = |m: &Move| self.of(*m).iter().filter(|o| o.buffer != PARTIAL).count();
        self.kernel.size() * moves.iter().map(user).sum::<usize>()
    }

    /// Returns the buffer that a segment copies to one place as it is; `None` for a segment that does anything else.
    pub(crate) fn copied(&self, segment: Segment) -> Option<u32> {
        let [m] = self.moves[segment.first as usize..][..segment.len as usize] else { return None };
        let [src, dst] = self.of(m) else { return None };
        (!m.finish && !src.wide && !dst.wide).then_some(src.buffer)
    }

    /// Returns the elements of a buffer at which the sources of a segment begin.
    pub(crate) fn sources(&self, segment: Segment, buffer: u32) -> Vec<u64> {
        let moves = &self.moves[segment.first as usize..][..segment.len as usize];
        let srcs = moves.iter().flat_map(|m| &self.of(*m)[..m.srcs as usize]);
        let of = srcs.filter(|src| src.buffer == buffer);
        of.map(|src| (src.offset / self.kernel.size()) as u64).collect()
    }

    /// Returns the elements of a buffer at which the destinations of a segment begin.
    pub(crate) fn destinations(&self, segment: Segment, buffer: u32) -> Vec<u64> {
        let moves = &self.moves[segment.first as usize..][..segment.len as usize];
        let dsts = moves.iter().flat_map(|m| &self.of(*m)[m.srcs as usize..]);
        let of = dsts.filter(|dst| dst.buffer == buffer);
        of.map(|dst| (dst.offset / self.kernel.size()) as u64).collect()
    }

    /// Returns a move's operands, sources first.
    pub(crate) fn of(&self, m: Move) -> &[Operand] {
        &self.operands[m.first as usize..][..(m.srcs + m.dsts) as usize]
    }

    /// Runs the elements `range` of a segment with the stores of these segments: see [`Self::run_with`].
    ///
    /// # Safety
    /// As for [`Self::run_with`].
    #[inline]
    pub(crate) unsafe fn run(
        &self,
        segment: Segment,
        range: Range<usize>,
        bases: &Bases,
        partials: *mut u8,
        stopped: impl FnMut() -> bool,
    ) -> bool {
        // SAFETY: the caller's promise.
        unsafe { self.run_with(segment, range, bases, partials, self.stores, stopped) }
    }

    /// Runs the elements `range` of a segment, and asks `stopped` between tiles. Returns whether it came to the end.
    ///
    /// # Safety
    /// `bases` has an entry for each buffer, valid for the bytes of it that these elements touch, aligned and
    /// initialized, writable unless it is an input; `partials` is valid for [`Self::partial_bytes`], and no other code
    /// uses it. Meanwhile no other code writes bytes that these elements of the segment read, or touches bytes that
    /// they write.
    #[inline]
    pub(crate) unsafe fn run_with(
        &self,
        segment: Segment,
        range: Range<usize>,
        bases: &Bases,
        partials: *mut u8,
        stores: Stores,
        mut stopped: impl FnMut() -> bool,
    ) -> bool {
        let (size, width) = (self.kernel.size(), self.kernel.width());
        let tile = self.tile(segment);
        let moves = &self.moves[segment.first as usize..][..segment.len as usize];
        let mut first = range.start;
        while first < range.end {
            if stopped() {
                return false;
            }
            let len = tile.min(range.end - first);
            for m in moves {
                let operands = self.of(*m);
                let (srcs, dsts) = operands.split_at(m.srcs as usize);
                let mut from = [ptr::null::<u8>(); MAX_OPERANDS];
                let mut to = [ptr::null_mut::<u8>(); MAX_OPERANDS];
                // Lowering checked that the operand lies within its buffer, and that the partial is one of the
                // worker's, each of which holds a tile. `wrapping`, as a base may be the base of a buffer of which only
                // this stretch is there.
                let at = |operand: &Operand| match operand.buffer {
                    PARTIAL => partials.wrapping_add(operand.offset * self.partial),
                    buffer => {
                        let size = if operand.wide { size * width } else { size };
                        bases.get(buffer).wrapping_add(operand.offset + first * size)
                    }
                };
                let mut form = MoveForm { chain: m.chain, ..MoveForm::default() };
                for (nth, (from, operand)) in from.iter_mut().zip(srcs).enumerate() {
                    *from = at(operand).cast_const();
                    form.wide_srcs |= u8::from(operand.wide) << nth;
                }
                for (nth, (to, operand)) in to.iter_mut().zip(dsts).enumerate() {
                    *to = at(operand);
                    form.wide_dsts |= u8::from(operand.wide) << nth;
                }
                // A partial is read again at once.
                let partial = dsts[0].buffer == PARTIAL;
                let stores = if partial { Stores::Cached } else { stores };
                let divide = m.finish.then_some(self.nranks);
                // SAFETY: lowering checked that operands lie within their buffers; whole elements of aligned buffers;
                // operands are equal or apart, by lowering and, across an in-place alias, by the proof; a partial is
                // written before it is read, by lowering; no other code interferes, by the caller's promise.
                unsafe {
                    let (from, to) = (&from[..srcs.len()], &to[..dsts.len()]);
                    self.kernel.run(from, to, len, form, divide, stores);
                }
            }
            first += len;
        }
        true
    }
}
