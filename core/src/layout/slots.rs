//! Slots of fifos: their sizes, and the first slot of each link.

use rustc_hash::FxHashMap;

use crate::ids::{LaneId, RankId, ScratchId};
use crate::rational::Rat;

/// The sizes of a fifo, which all ranks agree on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(super) width: Rat,
    pub(super) credits: u32,
    pub(super) slices: u32,
}

/// The slots of all links of a schedule. A link's slots are numbered when either of its ends first uses one, so both
/// ends agree.
#[derive(Default)]
pub(crate) struct FifoSlots {
    pub(super) sizes: FxHashMap<ScratchId, Sizes>,
    pub(super) first: FxHashMap<(ScratchId, LaneId, RankId, RankId), u32>,
    /// The number of slots taken at each receiver.
    pub(super) taken: FxHashMap<(ScratchId, RankId), u64>,
}

impl FifoSlots {
    /// The first slot of every link.
    pub(crate) fn links(
        &self,
    ) -> impl Iterator<Item = ((ScratchId, LaneId, RankId, RankId), u32)> + '_ {
        self.first.iter().map(|(link, first)| (*link, *first))
    }
}
