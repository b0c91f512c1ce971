//! What is drawn of a run, and how: which ranks and rounds, how wide, as arrows or as a matrix, sizes in which units.

use std::ops::RangeInclusive;

use super::rounds::Rounds;
use super::scale::short;
use roundelay_core::ids::RankId;
use roundelay_core::schedule::Schedule;
use roundelay_core::simulate::{Message, Span, Timeline};
use roundelay_core::syntax::Source;

/// What is wanted of a picture.
#[derive(Clone, Debug, Default)]
pub struct Drawing<'a> {
    /// What it is called.
    pub title: &'a str,
    /// Where the statements are written; without it, their lines alone are named.
    pub source: Option<&'a Source>,
    /// Only these ranks; all of them if it is empty.
    pub ranks: Vec<RankId>,
    /// Only these rounds, counted from 1; all of them if there is no range.
    pub rounds: Option<RangeInclusive<u32>>,
    /// Pixels from edge to edge; as many as the rounds need if there is no number.
    pub width: Option<u32>,
    /// How messages are drawn; by how many there are if nothing is said.
    pub view: Option<View>,
    /// How sizes are written.
    pub units: Units,
}

/// How messages are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Each as an arrow from rank to rank.
    Arrows,
    /// What each rank sends over time, and what goes from each rank to each, as colors.
    Matrix,
}

/// Which powers sizes are multiples of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Units {
    /// 1024: `64 MiB`.
    #[default]
    Binary,
    /// 1000: `64 MB`.
    Decimal,
}

impl Units {
    /// A size in the largest unit that it reaches, with four digits.
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

/// What of a run is in the picture.
pub(super) struct Shown {
    /// From top to bottom.
    pub(super) ranks: Vec<RankId>,
    /// The row of each rank that is drawn, by rank.
    rows: Vec<Option<u32>>,
    /// Counted from 0.
    pub(super) rounds: std::ops::Range<u32>,
    /// Seconds: what stands at the left end of the time axis, and at its right end.
    pub(super) window: (f64, f64),
}

impl Shown {
    /// Ranks and rounds that are not there are left out.
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
        for (row, rank) in (0..).zip(&ranks) {
            rows[rank.index()] = Some(row);
        }
        let count = rounds.all.len() as u32;
        let chosen = drawing.rounds.as_ref().map_or(0..count, |chosen| {
            chosen.start().saturating_sub(1)..(*chosen.end()).min(count)
        });
        let chosen = if chosen.is_empty() { 0..count } else { chosen };
        let of = &rounds.all[chosen.start as usize..chosen.end as usize];
        // What is before the first round belongs to it, and what is behind the last to that.
        let from = of.iter().map(|round| round.start).fold(f64::MAX, f64::min);
        let to = of.iter().map(|round| round.end).fold(0.0, f64::max);
        let from = if chosen.start == 0 { 0.0 } else { from };
        let to = if chosen.end == count { timeline.seconds } else { to };
        Self { ranks, rows, rounds: chosen, window: (from, to) }
    }

    /// Where the rank is drawn.
    pub(super) fn row(&self, rank: RankId) -> Option<u32> {
        self.rows[rank.index()]
    }

    /// How many ends of the message are drawn.
    pub(super) fn ends(&self, message: &Message) -> usize {
        [message.from, message.to].into_iter().filter(|rank| self.row(*rank).is_some()).count()
    }

    /// Counts the messages between ranks that are drawn, round by round.
    pub(super) fn count(&self, timeline: &Timeline, rounds: &mut Rounds) {
        for (message, round) in timeline.messages.iter().zip(&rounds.of) {
            let Some(round) = round.filter(|_| self.ends(message) == 2) else { continue };
            let round = &mut rounds.all[round as usize];
            round.messages += 1;
            round.bytes = round.bytes.saturating_add(message.bytes);
        }
    }

    /// Whether any of it lies between the ends of the time axis.
    pub(super) fn during(&self, span: &Span) -> bool {
        span.start < self.window.1 && span.end > self.window.0
    }

    /// Whether the rounds of the run are all drawn.
    pub(super) fn whole(&self, rounds: &Rounds) -> bool {
        self.rounds.len() == rounds.all.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Units;

    #[test]
    fn sizes_have_the_units_of_their_kind() {
        for (bytes, binary, decimal) in [
            (0, "0 B", "0 B"),
            (999, "999 B", "999 B"),
            (64 << 20, "64 MiB", "67.11 MB"),
            (64_000_000, "61.04 MiB", "64 MB"),
            ((64 << 20) / 7, "9.143 MiB", "9.587 MB"),
            (3 << 50, "3072 TiB", "3378 TB"),
        ] {
            assert_eq!(Units::Binary.text(bytes), binary);
            assert_eq!(Units::Decimal.text(bytes), decimal);
        }
    }
}
