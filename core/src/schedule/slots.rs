//! Slots of fifos: how large they are, and where those of each link begin.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::interner::Mix;
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
pub(crate) struct Slots {
    pub(super) sizes: HashMap<ScratchId, Sizes>,
    pub(super) first: HashMap<(ScratchId, LaneId, RankId, RankId), u32, BuildHasherDefault<Mix>>,
    /// Slots taken at each receiver.
    pub(super) taken: HashMap<(ScratchId, RankId), u64, BuildHasherDefault<Mix>>,
}

impl Slots {
    /// The first slot of every link.
    pub(crate) fn links(
        &self,
    ) -> impl Iterator<Item = ((ScratchId, LaneId, RankId, RankId), u32)> + '_ {
        self.first.iter().map(|(link, first)| (*link, *first))
    }
}
