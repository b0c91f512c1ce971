//! Slots of fifos: how large they are, and where those of each link begin.

use rustc_hash::FxHashMap;

use crate::ids::{LaneId, RankId, ScratchId};
use crate::rational::Rat;

/// What all ranks agree about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(super) width: Rat,
    pub(super) credits: u32,
    pub(super) slices: u32,
}

/// The slots of all links of a schedule, numbered when either end first uses one: so both agree.
#[derive(Default)]
pub(crate) struct FifoSlots {
    pub(super) sizes: FxHashMap<ScratchId, Sizes>,
    pub(super) first: FxHashMap<(ScratchId, LaneId, RankId, RankId), u32>,
    /// Slots taken at each receiver.
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
