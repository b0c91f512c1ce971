//! Regions that move with the rank, where one rank stands for all.

use crate::layout::area::Area;
use crate::layout::interning::Tables;
use crate::layout::turning::Digits;

impl Tables {
    /// Returns the block of `large` that is bound to this rank, which moves with the rank. Its number is that of the
    /// rank inside of `depth` blocks of `within`.
    pub(in crate::layout) fn block(&mut self, large: Area, block: Area, depth: usize) -> Area {
        let Some(turning) = &mut self.turning else { return block };
        let digits = turning.seen(depth);
        match turning.moved(large.axes, digits, (large.region.lo, block.width(), false)) {
            Some(axes) => Area { axes, ..block },
            None => {
                turning.leave(0, None, "the pieces are too fine");
                block
            }
        }
    }

    /// Checks that the regions of a call are equal at all ranks that make it together.
    pub(in crate::layout) fn bound(&mut self, regions: [Area; 2], depth: usize, at: u32) {
        let Some(turning) = &mut self.turning else { return };
        let together = turning.seen(depth);
        let moves = |area: &Area| {
            let axes = &turning.axes.items[area.axes as usize];
            axes.iter().any(|axis| together == Digits::All || together == Digits::One(axis.digit))
        };
        if regions.iter().any(moves) {
            turning.leave(at, None, "the regions of the call move with the rank");
        }
    }

    /// Returns a slot of scratch that moves as the region that it is like.
    pub(in crate::layout) fn like(&mut self, slot: Area, like: Area) -> Area {
        let axes = self.turning.as_mut().map_or(0, |turning| turning.based(like.axes));
        Area { axes, ..slot }
    }
}
