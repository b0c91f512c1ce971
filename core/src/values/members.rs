//! The ranks of the numbers 0, 1, 2, … of a layout: trees and groups are laid out once, in numbers, for all ranks.

use std::sync::Arc;

use crate::ids::RankId;

/// The rank of each number; without a list every rank is its own number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Members(pub(crate) Option<Arc<[RankId]>>);

impl Members {
    pub(crate) fn number(&self, rank: RankId) -> Option<u32> {
        match &self.0 {
            None => Some(rank.0),
            Some(members) => members.iter().position(|member| *member == rank).map(|n| n as u32),
        }
    }

    pub(crate) fn rank(&self, number: u32) -> RankId {
        self.0.as_ref().map_or(RankId(number), |members| members[number as usize])
    }
}
