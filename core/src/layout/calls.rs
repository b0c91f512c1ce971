//! Calls of algorithms: which call it is, and the regions that it is made on.

use std::sync::Arc;

use super::area::Area;
use crate::ids::{LaneId, RankId};

/// What a called algorithm's buffer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BoundBuffer {
    /// This region, of every rank.
    Whole(Area),
    /// Of rank r, block r of this region.
    Block(Area),
}

impl BoundBuffer {
    /// The region, of every rank or in blocks.
    pub(crate) const fn area(self) -> Area {
        let (Self::Whole(area) | Self::Block(area)) = self;
        area
    }
}

/// Which of a rank's calls: the statements that led there, the lane, and how often it came by before.
pub(crate) type CallId = (Vec<u32>, LaneId, u32);

/// The regions of a call, of some ranks.
pub(crate) type CallOf = (CallId, Arc<[RankId]>);
