//! The cut of a call into tiles that fit the caches.
//!
//! A schedule cuts each unit of its buffers at some fractions of the count into *cells*. The order of a reduction may
//! differ from cell to cell, so a tile is a stripe of every cell, and the count of the call settles the positions of
//! the cells. A tile in shared memory is laid out like the buffers of a run of the schedule with the count
//! [`Tiles::count`]: a multiple of all denominators, so that each cell has exactly its share. The last elements of a
//! cell in a tile may lie beyond the call's elements: their results are not copied out.

use std::collections::BTreeSet;
use std::ops::Range;

use roundelay_core::counts::Block;
use roundelay_core::rational::{Rat, lcm};
use roundelay_core::schedule::Schedule;

use crate::shared_memory::world::memory::arena::LINE;

/// The tiles of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tiles {
    /// Elements per unit of a tile in shared memory.
    pub(crate) count: u64,
    /// The number of tiles; at least one.
    pub(crate) number: u64,
    /// Elements per unit of the call.
    whole: u64,
    cells: Box<[Cell]>,
    /// The fractions of a unit at which the cells begin.
    cuts: Box<[Rat]>,
}

/// A stretch of every unit, in elements from the unit's beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    /// The cell's begin and length in the caller's buffer.
    begin: u64,
    len: u64,
    /// The cell's begin and room in a tile.
    place: u64,
    room: u64,
}

/// Adjacent elements, both in the caller's buffer and in a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stripe {
    /// The stripe's begin in the caller's buffer.
    pub(crate) outside: u64,
    /// The stripe's begin in the tile.
    pub(crate) inside: u64,
    pub(crate) len: u64,
}

impl Stripe {
    /// Returns the base of a buffer, of elements of `size` bytes, with which offset `inside` of the tile is offset `outside`
    /// of the buffer.
    pub(crate) fn base(self, buffer: *mut u8, size: usize) -> *mut u8 {
        let shift = (self.outside as usize).wrapping_sub(self.inside as usize);
        buffer.wrapping_add(shift.wrapping_mul(size))
    }

    /// Returns the stripe in pieces of `most` elements.
    pub(crate) fn pieces(self, most: u64) -> impl Iterator<Item = Self> {
        let begins = (self.inside..self.inside + self.len).step_by(most.max(1) as usize);
        begins.filter_map(move |begin| self.clipped(begin, begin + most))
    }

    /// Returns the part of the stripe from `from` to `to` in the tile; `None` if no element lies there.
    pub(crate) fn clipped(self, from: u64, to: u64) -> Option<Self> {
        let (first, end) = (self.inside.max(from), (self.inside + self.len).min(to));
        let outside = self.outside.wrapping_add(first.wrapping_sub(self.inside));
        (first < end).then(|| Self { outside, inside: first, len: end - first })
    }
}

/// A stripe of one cell of a unit, or of several where all blocks are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CellPart {
    pub(crate) stripe: Stripe,
    pub(crate) unit: u64,
    cell: usize,
}

/// The blocks of a buffer: one for each unit.
pub(crate) trait Blocks: Copy {
    /// Whether all blocks are equal: then parts of several units may be one.
    const EQUAL: bool;

    /// Returns the begin of a cell of a block in the caller's buffer, and its length.
    fn cell(self, tiles: &Tiles, unit: u64, cell: usize) -> (u64, u64);

    /// Returns a range of the only tile as one stripe, where that tile is laid out as the caller's buffer is.
    fn as_outside(self, tiles: &Tiles, from: u64, to: u64) -> Option<Stripe>;

    /// Returns the stripe of a tile of these blocks with the elements of `part`, a part of other blocks, `apart` units
    /// behind it; `None` if there is none.
    fn beside(self, tiles: &Tiles, tile: u64, part: CellPart, apart: i64) -> Option<Stripe>;
}

/// Equal blocks, one behind the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EqualBlocks;

/// Blocks with counts and places of their own: those of a buffer from unit `first` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnCounts<'b> {
    pub(crate) first: u64,
    pub(crate) blocks: &'b [Block],
}

impl Blocks for EqualBlocks {
    const EQUAL: bool = true;

    fn cell(self, tiles: &Tiles, unit: u64, cell: usize) -> (u64, u64) {
        let cell = tiles.cells[cell];
        (unit * tiles.whole + cell.begin, cell.len)
    }

    fn as_outside(self, tiles: &Tiles, from: u64, to: u64) -> Option<Stripe> {
        let alike = tiles.number == 1 && tiles.whole == tiles.count;
        (alike && from < to).then(|| Stripe { outside: from, inside: from, len: to - from })
    }

    fn beside(self, tiles: &Tiles, _tile: u64, part: CellPart, apart: i64) -> Option<Stripe> {
        let Stripe { outside, inside, len } = part.stripe;
        let outside = outside.wrapping_add_signed(apart.wrapping_mul(tiles.whole.cast_signed()));
        let inside = inside.wrapping_add_signed(apart.wrapping_mul(tiles.count.cast_signed()));
        Some(Stripe { outside, inside, len })
    }
}

impl Blocks for OwnCounts<'_> {
    const EQUAL: bool = false;

    fn cell(self, tiles: &Tiles, unit: u64, cell: usize) -> (u64, u64) {
        let block = unit.checked_sub(self.first).and_then(|at| self.blocks.get(at as usize));
        let Block { start, count } = block.copied().unwrap_or_default();
        let at = |cell: usize| tiles.cuts.get(cell).map_or(count, |at| at.element(count));
        let begin = at(cell);
        // A place that another rank told may be any number.
        (start.wrapping_add(begin), at(cell + 1) - begin)
    }

    fn as_outside(self, _tiles: &Tiles, _from: u64, _to: u64) -> Option<Stripe> {
        None
    }

    fn beside(self, tiles: &Tiles, tile: u64, part: CellPart, apart: i64) -> Option<Stripe> {
        let unit = part.unit.checked_add_signed(apart)?;
        tiles.part(tile, (unit, part.cell), self).map(|part| part.stripe)
    }
}

/// Returns the fractions of a unit at which a schedule cuts, 0 first, and the least common multiple of their
/// denominators and of the schedule's `multiple`, of which every count is a multiple.
pub(crate) fn cuts(schedule: &Schedule) -> Option<(Vec<Rat>, u64)> {
    let mut cuts = BTreeSet::from([(0, 1)]);
    for region in &schedule.regions {
        for at in [region.base, region.lo, region.hi] {
            let at = at.fraction();
            cuts.insert((at.num(), at.den()));
        }
    }
    let mut all = schedule.multiple;
    for (_, den) in &cuts {
        all = lcm(all, *den)?;
    }
    let mut cuts: Vec<Rat> = cuts.into_iter().filter_map(|(num, den)| Rat::new(num, den)).collect();
    cuts.sort_unstable();
    Some((cuts, all))
}

impl Tiles {
    /// Cuts a call of `count` elements a unit into tiles of about `most` elements a unit at most.
    pub(crate) fn new(cuts: &[Rat], multiple: u64, count: u64, most: u64) -> Self {
        let most = (most / multiple).max(1) * multiple;
        let tiles = count.div_ceil(most).max(1);
        let share = count.div_ceil(tiles).max(1).next_multiple_of(multiple);
        let ends = cuts.iter().skip(1).map(|at| (at.element(count), at.element(share)));
        let mut cells = Vec::with_capacity(cuts.len());
        let (mut begin, mut place) = (0, 0);
        for (end, until) in ends.chain([(count, share)]) {
            cells.push(Cell { begin, len: end - begin, place, room: until - place });
            (begin, place) = (end, until);
        }
        Self { count: share, number: tiles, whole: count, cells: cells.into(), cuts: cuts.into() }
    }

    /// Returns tiles of about `most` elements a unit, for calls whose counts are not known yet.
    pub(crate) fn of_blocks(cuts: &[Rat], multiple: u64, most: u64) -> Self {
        Self::new(cuts, multiple, most.max(multiple) / multiple * multiple, most)
    }

    /// Returns the address of a buffer, of elements of `size` bytes, moved by some units of the call.
    pub(crate) fn shifted(&self, base: *const u8, units: i64, size: usize) -> *const u8 {
        let elements = units.wrapping_mul(self.whole.cast_signed()) as usize;
        base.wrapping_add(elements.wrapping_mul(size))
    }

    /// Returns the number of tiles of a block of `count` elements.
    pub(crate) fn number_of(&self, count: u64) -> u64 {
        count.div_ceil(self.count)
    }

    /// Returns the stripes of tile `tile` in a buffer of `units` units.
    pub(crate) fn stripes<B: Blocks>(
        &self,
        tile: u64,
        units: u32,
        blocks: B,
    ) -> impl Iterator<Item = Stripe> + use<'_, B> {
        self.within(tile, 0, u64::from(units) * self.count, blocks).map(|part| part.stripe)
    }

    /// Returns the stripes of tile `tile` in some units of a buffer.
    pub(crate) fn stripes_of<B: Blocks, U: Iterator<Item = u64>>(
        &self,
        tile: u64,
        units: U,
        blocks: B,
    ) -> impl Iterator<Item = Stripe> + use<'_, B, U> {
        let (unit, cell) = (0, self.cells.len());
        let range = 0..u64::MAX;
        let parts = CellParts { tiles: self, tile, blocks, units, range, unit, cell, next: None };
        parts.map(|part| part.stripe)
    }

    /// Returns the parts of tile `tile` whose elements lie from `from` to `to` in the tile; the range begins and ends
    /// with cells.
    pub(crate) fn within<B: Blocks>(
        &self,
        tile: u64,
        from: u64,
        to: u64,
        blocks: B,
    ) -> CellParts<'_, B, Range<u64>> {
        let (first, cell) = (from / self.count, self.cells.len());
        let whole = blocks.as_outside(self, from, to);
        let units = if whole.is_some() { 0..0 } else { first..to.div_ceil(self.count) };
        let next = whole.map(|stripe| CellPart { stripe, unit: first, cell: 0 });
        CellParts { tiles: self, tile, blocks, units, range: from..to, unit: first, cell, next }
    }

    fn part<B: Blocks>(
        &self,
        tile: u64,
        (unit, cell): (u64, usize),
        blocks: B,
    ) -> Option<CellPart> {
        let (begin, len) = blocks.cell(self, unit, cell);
        let Cell { place, room, .. } = self.cells[cell];
        let first = tile.checked_mul(room)?;
        let len = len.checked_sub(first)?.min(room);
        let outside = begin.wrapping_add(first);
        let stripe = Stripe { outside, inside: unit * self.count + place, len };
        (len > 0).then_some(CellPart { stripe, unit, cell })
    }
}

/// The parts of a tile in some units. Where all blocks are equal, parts that go on from each other on both sides are one:
/// a unit may be a single element.
pub(crate) struct CellParts<'t, B, U> {
    tiles: &'t Tiles,
    tile: u64,
    blocks: B,
    units: U,
    /// The elements of the tile that are wanted.
    range: Range<u64>,
    unit: u64,
    /// The next cell of the unit.
    cell: usize,
    next: Option<CellPart>,
}

impl<B: Blocks, U: Iterator<Item = u64>> CellParts<'_, B, U> {
    /// Returns the next part, which is of one cell.
    fn of_cell(&mut self) -> Option<CellPart> {
        loop {
            while let Some(cell) = self.tiles.cells.get(self.cell) {
                let at = (self.unit, self.cell);
                self.cell += 1;
                if self.range.contains(&(self.unit * self.tiles.count + cell.place))
                    && let Some(part) = self.tiles.part(self.tile, at, self.blocks)
                {
                    return Some(part);
                }
            }
            (self.unit, self.cell) = (self.units.next()?, 0);
        }
    }
}

impl<B: Blocks, U: Iterator<Item = u64>> Iterator for CellParts<'_, B, U> {
    type Item = CellPart;

    fn next(&mut self) -> Option<CellPart> {
        let mut part = self.next.take().or_else(|| self.of_cell())?;
        while let Some(other) = if B::EQUAL { self.of_cell() } else { None } {
            let stripe = &mut part.stripe;
            let end = (stripe.outside + stripe.len, stripe.inside + stripe.len);
            if end != (other.stripe.outside, other.stripe.inside) {
                self.next = Some(other);
                break;
            }
            stripe.len += other.stripe.len;
        }
        Some(part)
    }
}

/// Returns the elements per unit that fit into `bytes` bytes, for buffers of `units` units, in whole cache lines where
/// there is room.
pub(crate) fn fitting(bytes: usize, units: u64, size: usize) -> u64 {
    let most = bytes as u64 / units.max(1) / size as u64;
    let line = (LINE / size) as u64;
    if most > line { most / line * line } else { most }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(fractions: &[(u64, u64)]) -> Vec<Rat> {
        fractions.iter().map(|(num, den)| Rat::new(*num, *den).expect("a fraction")).collect()
    }

    /// Every element of every unit is in one stripe, stripes do not overlap in a tile, and cells begin as they do at
    /// the whole count.
    #[test]
    fn tiles_partition_every_unit() {
        let thirds = (at(&[(0, 1), (1, 3), (1, 2), (2, 3)]), 6);
        let whole = (at(&[(0, 1)]), 1);
        for (cuts, multiple) in [thirds, whole] {
            for count in [0, 1, 2, 5, 6, 7, 100, 1001] {
                for most in [1, 6, 7, 64, 5000] {
                    let tiles = Tiles::new(&cuts, multiple, count, most);
                    assert!(tiles.count.is_multiple_of(multiple));
                    let mut seen = vec![0; 2 * count as usize];
                    for tile in 0..tiles.number {
                        let mut places = vec![0; 2 * tiles.count as usize];
                        for stripe in tiles.stripes(tile, 2, EqualBlocks) {
                            for i in 0..stripe.len {
                                seen[(stripe.outside + i) as usize] += 1;
                                places[(stripe.inside + i) as usize] += 1;
                                let cell = |at: u64, of: u64| {
                                    let within = at % of;
                                    cuts.iter().rposition(|cut| cut.element(of) <= within)
                                };
                                let (outside, inside) = (
                                    cell(stripe.outside + i, count),
                                    cell(stripe.inside + i, tiles.count),
                                );
                                assert_eq!(outside, inside, "{count} {most} {stripe:?}");
                            }
                        }
                        assert!(places.iter().all(|times| *times <= 1));
                        let whole: Vec<Stripe> = tiles.stripes(tile, 2, EqualBlocks).collect();
                        let same = tiles.within(tile, 0, 2 * tiles.count, EqualBlocks);
                        let same: Vec<Stripe> = same.map(|part| part.stripe).collect();
                        assert_eq!(whole, same);
                    }
                    assert!(seen.iter().all(|times| *times == 1), "{count} {most}");
                }
            }
        }
    }
}
