//! Regions while they are being cut: rational intervals, their pieces, and slots of scratch.

use std::sync::Arc;

use crate::ids::ScratchId;
use crate::rational::Rat;
use crate::schedule::{Buffer, Region};
use crate::values::arith::Fault;

/// A region of any rank's buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Area {
    /// The interval.
    pub region: Region,
    /// Whether it is a slot with the shape of the data last written to it.
    pub floating: bool,
    /// In a called algorithm whose ranks have a block each: the call's frame, from 1; the interval is then this
    /// rank's. 0 where the interval is that of all ranks.
    pub frame: u32,
    /// The axes along which it moves from rank to rank, where a walk follows them; 0 where it lies still.
    pub axes: u32,
}

/// A region cut in pieces, or the slots of a scratch buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// The region that is cut; for slots of scratch, slot 0.
    pub whole: Area,
    /// How the region is cut.
    pub cut: Cut,
}

/// The way in which a region is cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cut {
    /// It is cut into this number of nearly equal pieces.
    Even(i64),
    /// It is cut into pieces of these cumulative weights, of which the last is the total.
    Weighted(Arc<[i64]>),
    /// The pieces are this number of slots of scratch.
    Slots(i64),
}

impl Area {
    /// Units `0..units` of a user buffer.
    pub fn whole(buffer: Buffer, units: u32) -> Self {
        let hi = Rat::whole(u64::from(units));
        let region = Region { buffer, slot: 0, base: Rat::ZERO, lo: Rat::ZERO, hi };
        Self { region, floating: false, frame: 0, axes: 0 }
    }

    /// Slot 0 of a scratch buffer whose slots have the shape of `like`.
    pub fn slot(id: ScratchId, like: Self) -> Self {
        let region = Region {
            buffer: Buffer::Scratch(id),
            slot: 0,
            base: like.region.lo,
            lo: like.region.lo,
            hi: like.region.hi,
        };
        Self { region, floating: false, frame: 0, axes: 0 }
    }

    /// Slot 0 of a scratch buffer whose slots take the shape of the data written to them.
    pub fn floating_slot(id: ScratchId, width: Rat) -> Self {
        let region = Region {
            buffer: Buffer::Scratch(id),
            slot: 0,
            base: Rat::ZERO,
            lo: Rat::ZERO,
            hi: width,
        };
        Self { region, floating: true, frame: 0, axes: 0 }
    }

    /// Cuts the region into `n` nearly equal pieces.
    pub fn split(self, n: i64) -> Result<Pieces, Fault> {
        if n < 1 {
            let takes = "at least 1 piece";
            return Err(Fault::Argument { function: "split", takes, got: n });
        }
        self.cut(Cut::Even(n))
    }

    /// Cuts the region into pieces in proportion to integer weights.
    pub fn split_weighted(self, weights: &[i64]) -> Result<Pieces, Fault> {
        let bad =
            |got| Fault::Argument { function: "split", takes: "weights from 0, not all 0", got };
        let mut total = 0_i64;
        let mut sums = Vec::with_capacity(weights.len());
        for &weight in weights {
            if weight < 0 {
                return Err(bad(weight));
            }
            total = total.checked_add(weight).ok_or(Fault::Fraction)?;
            sums.push(total);
        }
        if total == 0 {
            return Err(bad(0));
        }
        self.cut(Cut::Weighted(sums.into()))
    }

    fn cut(self, cut: Cut) -> Result<Pieces, Fault> {
        if self.floating {
            return Err(Fault::FloatingSlot);
        }
        Ok(Pieces { whole: self, cut })
    }

    /// Its width in units.
    pub fn width(&self) -> Rat {
        self.region.hi.minus(self.region.lo).expect("every cut checks that the width fits")
    }
}

impl Pieces {
    /// The number of pieces.
    pub fn len(&self) -> i64 {
        match &self.cut {
            Cut::Even(n) | Cut::Slots(n) => *n,
            Cut::Weighted(sums) => sums.len() as i64,
        }
    }

    /// The number of equal parts of the whole in which boundaries are counted.
    pub fn parts(&self) -> u64 {
        match &self.cut {
            Cut::Even(n) => *n as u64,
            Cut::Weighted(sums) => sums.last().map_or(0, |total| *total as u64),
            Cut::Slots(_) => 1,
        }
    }

    /// Whether there are no pieces.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Piece `index`.
    pub fn piece(&self, index: i64) -> Result<Area, Fault> {
        let len = self.len();
        if !(0..len).contains(&index) {
            return Err(Fault::Index { index, len });
        }
        if let Cut::Slots(_) = self.cut {
            let region = Region { slot: index as u32, ..self.whole.region };
            return Ok(Area { region, ..self.whole });
        }
        self.range(index, index + 1)
    }

    /// Pieces `lo..hi` as one region.
    pub fn range(&self, lo: i64, hi: i64) -> Result<Area, Fault> {
        let len = self.len();
        if !(0..=len).contains(&lo) {
            return Err(Fault::Index { index: lo, len });
        }
        if !(0..=len).contains(&hi) {
            return Err(Fault::Index { index: hi, len });
        }
        if hi < lo {
            return Err(Fault::EmptyRange { lo, hi });
        }
        let (lo, hi) = (self.boundary(lo)?, self.boundary(hi)?);
        // The ends fit 64 bits, but their distance may not.
        if lo.den().max(hi.den()) > u32::MAX.into() {
            hi.minus(lo).ok_or(Fault::Fraction)?;
        }
        Ok(Area { region: Region { lo, hi, ..self.whole.region }, ..self.whole })
    }

    fn boundary(&self, i: i64) -> Result<Rat, Fault> {
        let Region { lo, hi, .. } = self.whole.region;
        let (i, n) = match &self.cut {
            Cut::Slots(_) => return Err(Fault::SlotRange),
            Cut::Even(n) => (i, *n),
            Cut::Weighted(sums) => {
                let before = if i == 0 { 0 } else { sums[i as usize - 1] };
                (before, sums[sums.len() - 1])
            }
        };
        lo.boundary(hi, i as u64, n as u64).ok_or(Fault::Fraction)
    }

    /// Width of the widest piece, in units.
    pub fn widest(&self) -> Result<Rat, Fault> {
        match self.cut {
            Cut::Slots(_) => Ok(self.whole.width()),
            Cut::Even(_) => self.piece(0).map(|piece| piece.width()),
            Cut::Weighted(_) => (0..self.len()).try_fold(Rat::ZERO, |widest, i| {
                self.piece(i).map(|piece| widest.max(piece.width()))
            }),
        }
    }
}
