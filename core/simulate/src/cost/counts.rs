//! The costs of a schedule, counted op by op.

use roundelay_base::diagnostics::Finding;
use roundelay_base::rational::Rat;
use roundelay_core::schedule::{OpKind, Schedule};
use roundelay_core::verify;

/// The costs of a schedule: steps, messages and data. Data is in shares of S, nccl-tests' size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// The length of the longest chain of messages in which each needs its predecessor: see [`verify::steps`].
    pub steps: u32,
    /// Messages: see [`Schedule::messages`].
    pub messages: Work,
    /// Pieces of messages: at least one each.
    pub pieces: Work,
    /// Data between ranks, where each has one port each way.
    pub volume: Work,
    /// Data that is reduced.
    pub reduced: Work,
    /// Data that is copied within a rank.
    pub copied: Work,
}

/// Work that ranks do side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// The work of the busiest rank; of volume the data through the busiest port, one way.
    pub busiest: f64,
    /// The work of all ranks together.
    pub total: f64,
}

impl Work {
    /// Returns the largest entry and the sum of the ranks' work.
    fn of(ranks: &[f64]) -> Self {
        Self { busiest: ranks.iter().copied().fold(0.0, f64::max), total: ranks.iter().sum() }
    }
}

impl Counts {
    /// Counts all ops of `schedule`.
    ///
    /// # Errors
    /// Those of [`verify::steps`].
    pub fn from_schedule(schedule: &Schedule) -> Result<Self, Vec<Finding>> {
        let steps = verify::steps(schedule)?.into_iter().max().unwrap_or(0);
        let (n, collective) = (schedule.nranks as usize, schedule.collective);
        let nranks = schedule.nranks;
        let units = collective.max_input_units(nranks).max(collective.max_output_units(nranks));
        let share = |width: Rat| width.num() as f64 / width.den() as f64 / f64::from(units);
        let width = |r: &roundelay_core::schedule::Region| r.hi.minus(r.lo).unwrap_or(Rat::ZERO);
        let shares: Vec<f64> = schedule.regions.iter().map(|r| share(width(r))).collect();
        let zero = || vec![0.0_f64; n];
        let [mut sent, mut received, mut reduced, mut copied] = [zero(), zero(), zero(), zero()];
        for stream in &schedule.streams {
            let by = stream.rank.index();
            let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
            for op in ops.iter().filter(|op| op.kind == OpKind::Move) {
                for (from, to, region) in schedule.crossing(stream.rank, op) {
                    sent[from.index()] += shares[region.index()];
                    received[to.index()] += shares[region.index()];
                }
                let share = shares[schedule.dsts(op)[0].region.index()];
                let (folds, copies) = schedule.moved_lengths(op);
                reduced[by] += folds * share;
                copied[by] += copies * share;
            }
        }
        let moved = schedule.messages_by_rank();
        let messages: Vec<f64> = moved.iter().map(|of| of.messages as f64).collect();
        let pieces: Vec<f64> = moved.iter().map(|of| of.pieces as f64).collect();
        let [sent, received] = [Work::of(&sent), Work::of(&received)];
        let volume = Work { busiest: sent.busiest.max(received.busiest), total: sent.total };
        let [messages, pieces] = [Work::of(&messages), Work::of(&pieces)];
        let [reduced, copied] = [Work::of(&reduced), Work::of(&copied)];
        Ok(Self { steps, messages, pieces, volume, reduced, copied })
    }
}
