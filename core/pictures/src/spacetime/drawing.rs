//! The options of a picture of a run: ranks and rounds, width, arrows or matrix, and units of sizes.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::rounds::Rounds;
use super::scale::short;
use roundelay_core::ids::RankId;
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_simulate::{Message, Span, Step, Timeline};

/// The options of a picture.
#[derive(Clone, Debug, Default)]
pub struct Drawing<'a> {
    /// The title.
    pub title: &'a str,
    /// The text of the statements; without it, only their lines are named.
    pub source: Option<&'a Source>,
    /// The ranks to draw; empty for all ranks.
    pub ranks: Vec<RankId>,
    /// The rounds to draw, counted from 1; `None` for all rounds.
    pub rounds: Option<RangeInclusive<u32>>,
    /// The width of the picture in pixels; `None` for the width that the rounds need.
    pub width: Option<u32>,
    /// The critical path of the run, which is drawn as a line; empty for none.
    pub critical: &'a [Step],
    /// The form of messages; `None` to choose it by their number.
    pub view: Option<View>,
    /// The units of sizes.
    pub units: Units,
}

/// The form of messages in a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Each message is an arrow from rank to rank.
    Arrows,
    /// The data of each rank over time, and of each pair of ranks, as colors.
    Matrix,
}

/// The base of the units of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Units {
    /// 1024: `64 MiB`.
    #[default]
    Binary,
    /// 1000: `64 MB`.
    Decimal,
}

impl Units {
    /// Returns a size in the largest unit that is not larger, with four digits.
    pub fn text(self, bytes: u64) -> String {
        let (base, names) = match self {
            Self::Binary => (1024.0, ["B", "KiB", "MiB", "GiB", "TiB"]),
            Self::Decimal => (1000.0, ["B", "kB", "MB", "GB", "TB"]),
        };
        let mut value = bytes as f64;
        let mut at = 0;
        while value >= base && at + 1 < names.len() {
            value /= base;
            at += 1;
        }
        format!("{} {}", short(value), names[at])
    }
}

/// Returns the ranks in the order of their ring, if each sends most to one rank, and the way along these ranks is one
/// ring through all.
fn ring(nranks: u32, timeline: &Timeline) -> Option<Vec<RankId>> {
    let mut sent = vec![BTreeMap::<RankId, u64>::new(); nranks as usize];
    for Message { from, to, bytes, .. } in timeline.messages.iter().filter(|m| m.from != m.to) {
        let sum = sent[from.index()].entry(*to).or_default();
        *sum = sum.saturating_add(*bytes);
    }
    // Of equal shares the first wins, so that both ways around a ring are one.
    let most = |to: &BTreeMap<RankId, u64>| {
        to.iter().rev().max_by_key(|(_, bytes)| **bytes).map(|(to, _)| *to)
    };
    let mut ring = vec![RankId(0)];
    while let Some(next) = most(&sent[ring.last()?.index()]) {
        if next == RankId(0) {
            return (ring.len() == nranks as usize).then_some(ring);
        }
        if ring.len() == nranks as usize {
            return None;
        }
        ring.push(next);
    }
    None
}

/// The part of a run that is drawn.
pub(super) struct Shown {
    /// The ranks, from top to bottom.
    pub(super) ranks: Vec<RankId>,
    /// The row of each rank, if it is drawn.
    rows: Vec<Option<u32>>,
    /// The rounds, counted from 0.
    pub(super) rounds: std::ops::Range<u32>,
    /// The ends of the time axis, in seconds.
    pub(super) window: (f64, f64),
}

impl Shown {
    /// Chooses the ranks and rounds of a picture; unknown ones are left out.
    pub(super) fn new(
        schedule: &Schedule,
        timeline: &Timeline,
        rounds: &Rounds,
        drawing: &Drawing,
    ) -> Self {
        let mut rows = vec![None; schedule.nranks as usize];
        let mut ranks: Vec<_> =
            drawing.ranks.iter().copied().filter(|rank| rank.0 < schedule.nranks).collect();
        if ranks.is_empty() {
            ranks = (0..schedule.nranks).map(RankId).collect();
        }
        ranks.sort_unstable();
        ranks.dedup();
        if drawing.ranks.is_empty()
            && let Some(ring) = ring(schedule.nranks, timeline)
        {
            ranks = ring;
        }
        for (row, rank) in (0..).zip(&ranks) {
            rows[rank.index()] = Some(row);
        }
        let count = rounds.all.len() as u32;
        let chosen = drawing.rounds.as_ref().map_or(0..count, |chosen| {
            chosen.start().saturating_sub(1)..(*chosen.end()).min(count)
        });
        let chosen = if chosen.is_empty() { 0..count } else { chosen };
        let of = &rounds.all[chosen.start as usize..chosen.end as usize];
        // Time before the first round is shown with the first round, and time after the last round with the last.
        let from = of.iter().map(|round| round.start).fold(f64::MAX, f64::min);
        let to = of.iter().map(|round| round.end).fold(0.0, f64::max);
        let from = if chosen.start == 0 { 0.0 } else { from };
        let to = if chosen.end == count { timeline.seconds } else { to };
        Self { ranks, rows, rounds: chosen, window: (from, to) }
    }

    /// Whether the ranks are in another order than that of their numbers.
    pub(super) fn reordered(&self) -> bool {
        !self.ranks.is_sorted()
    }

    /// Returns the row of a rank, if it is drawn.
    pub(super) fn row(&self, rank: RankId) -> Option<u32> {
        self.rows[rank.index()]
    }

    /// Returns the number of the message's ends that are drawn.
    pub(super) fn ends(&self, message: &Message) -> usize {
        [message.from, message.to].into_iter().filter(|rank| self.row(*rank).is_some()).count()
    }

    /// Counts the messages of each round whose two ranks are drawn.
    pub(super) fn count(&self, timeline: &Timeline, rounds: &mut Rounds) {
        for (message, round) in timeline.messages.iter().zip(&rounds.of) {
            let Some(round) = round.filter(|_| self.ends(message) == 2) else { continue };
            let round = &mut rounds.all[round as usize];
            round.messages += 1;
            round.bytes = round.bytes.saturating_add(message.bytes);
        }
    }

    /// Whether a part of the span lies within the time axis.
    pub(super) fn during(&self, span: &Span) -> bool {
        span.start < self.window.1 && span.end > self.window.0
    }

    /// Whether all rounds of the run are drawn.
    pub(super) fn whole(&self, rounds: &Rounds) -> bool {
        self.rounds.len() == rounds.all.len()
    }
}
