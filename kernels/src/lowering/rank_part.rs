//! The part of one rank in a planned call, which the plans of all engines have alike: the call, the extents of the
//! rank's buffers, and whether a check comes before its next call.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use roundelay_core::ids::RankId;

use super::plan_call::PlannedCall;
use crate::error::Error;
use crate::options::{Check, Options};

/// The part of a rank in calls of one shape.
pub struct RankPart {
    pub(crate) call: Arc<PlannedCall>,
    /// The number of ranks that call, which may be more than the schedule has where a call has several schedules.
    pub(crate) nranks: u32,
    /// The rank that calls.
    pub(crate) rank: RankId,
    /// The elements of the rank's input and output.
    pub(crate) lens: [usize; 2],
    /// The offsets of input and output in the one buffer of a call in place, in bytes.
    pub(crate) within: [usize; 2],
    /// Whether no check comes before the next call.
    pub(crate) checked: AtomicBool,
}

impl RankPart {
    /// Makes the part of a rank of `nranks`, with a check before its first call where the options ask for it.
    pub(crate) fn new(
        call: Arc<PlannedCall>,
        (nranks, rank): (u32, RankId),
        options: &Options,
    ) -> Result<Self, Error> {
        let checked = AtomicBool::new(options.checks()? == Check::Never);
        let lens = [call.input_len(rank), call.output_len(rank)];
        let within = call.in_place(rank).into();
        Ok(Self { call, nranks, rank, lens, within, checked })
    }

    /// Puts the part of another call in the place of this part, for the same rank.
    pub(crate) fn set_call(&mut self, call: PlannedCall) {
        self.lens = [call.input_len(self.rank), call.output_len(self.rank)];
        self.within = call.in_place(self.rank).into();
        self.call = Arc::new(call);
    }
}

impl fmt::Debug for RankPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = f.debug_struct("RankPart");
        self.call.describe(&mut all);
        all.field("nranks", &self.nranks).field("rank", &self.rank).finish_non_exhaustive()
    }
}
