//! Calls of algorithms: their identity, and the regions that they run on.

use std::sync::Arc;

use super::area::Area;
use crate::ids::{LaneId, RankId};

/// The region that a called algorithm uses as its input or output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BoundBuffer {
    /// This region, of every rank.
    Whole(Area),
    /// For rank r, block r of this region.
    Block(Area),
}

impl BoundBuffer {
    /// Returns the region, of every rank or in blocks.
    pub(crate) const fn area(self) -> Area {
        let (Self::Whole(area) | Self::Block(area)) = self;
        area
    }
}

/// The identity of a rank's call: the statements that led to it, the lane, and its number among the calls with both.
pub(crate) type CallId = (Vec<u32>, LaneId, u32);

/// A call, and the ranks that make it.
pub(crate) type CallOf = (CallId, Arc<[RankId]>);
