//! Messages as arrows, from the band of the sender to the band of the receiver.

use std::collections::BTreeMap;

use super::bands::{Bands, Work};
use super::drawing::Shown;
use super::rounds::{Rounds, is_signal};
use super::scale::Scale;
use crate::picture::px;
use roundelay_core::ids::OpId;
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{Buffer, Region, Schedule};
use roundelay_simulate::{Message, Timeline};

/// The most arrows of data; with more messages only bars are drawn.
const MOST: usize = 12_000;
/// The most arrows of signals; more would hide the data.
const SIGNALS: usize = 600;

/// A transfer of data.
pub(super) struct Arrow {
    pub(super) ends: Ends,
    /// The number of its round.
    pub(super) round: u32,
    /// The receiver's use of the data.
    pub(super) work: Work,
    /// The number of its slice: the place of its data in input or output, which is the same on its whole way.
    pub(super) slice: usize,
    /// Whether it goes to a rank of a higher number.
    pub(super) down: bool,
    pub(super) message: Message,
    /// The number of messages with the same round and ranks at the same place.
    pub(super) times: u32,
}

/// The two ends of an arrow, in pixels.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Ends {
    pub(super) from: (f64, f64),
    pub(super) to: (f64, f64),
}

/// All arrows of a picture, and the numbers of those left out.
pub(super) struct Arrows {
    /// By round.
    pub(super) data: Vec<Arrow>,
    pub(super) signals: Vec<(Ends, Message)>,
    /// The total length of the data's arrows, in pixels.
    pub(super) length: f64,
    /// Messages from rank to rank that are not drawn because there are too many.
    pub(super) data_missing: usize,
    /// Signals from rank to rank that are not drawn because there are too many.
    pub(super) signals_missing: usize,
}

impl Arrows {
    pub(super) fn new(
        schedule: &Schedule,
        timeline: &Timeline,
        shown: &Shown,
        rounds: &Rounds,
        bands: &Bands,
        scale: &Scale,
    ) -> Self {
        let rows = |message: &Message| Some((shown.row(message.from)?, shown.row(message.to)?));
        let ends =
            |message: &Message, rows: (u32, u32)| ends(schedule, message, rows, bands, scale);
        let mut data: Vec<Arrow> = Vec::new();
        let in_rounds = timeline.messages.iter().zip(&rounds.of);
        let drawn = |round: &u32| shown.rounds.contains(round);
        let mut in_rounds: Vec<_> = in_rounds
            .filter_map(|(message, round)| Some((message, round.filter(drawn)?, rows(message)?)))
            .collect();
        let count = in_rounds.len();
        in_rounds.sort_by_key(|(message, round, _)| (*round, message.from, message.to));
        let mut slices = Slices::default();
        for (message, round, rows) in in_rounds {
            let ends = ends(message, rows);
            let work = Work::of(schedule.op(message.op));
            if let Some(last) = data.last_mut()
                && (last.round, last.work, last.message.from, last.message.to)
                    == (round, work, message.from, message.to)
                && last.ends.near(ends)
            {
                last.times += 1;
                last.message.bytes = last.message.bytes.saturating_add(message.bytes);
                last.message.end = last.message.end.max(message.end);
                continue;
            }
            let down = rows.1 > rows.0;
            let slice = slices.of(schedule, message.op);
            data.push(Arrow { ends, round, work, slice, down, message: *message, times: 1 });
        }
        let length = data.iter().map(|arrow| arrow.ends.length()).sum();
        let data_missing = if data.len() > MOST { count } else { 0 };
        if data_missing > 0 {
            data.clear();
        }
        let (from, to) = shown.window;
        let during = |m: &Message| m.start >= from && m.end <= to;
        let signals = timeline.messages.iter().filter(|m| is_signal(schedule, m) && during(m));
        let mut signals: Vec<_> = signals.filter_map(|m| Some((ends(m, rows(m)?), *m))).collect();
        let signals_missing = if signals.len() > SIGNALS { signals.len() } else { 0 };
        if signals_missing > 0 {
            signals.clear();
        }
        Self { data, signals, length, data_missing, signals_missing }
    }
}

/// The numbers of slices, by where their data lies.
#[derive(Default)]
struct Slices(BTreeMap<(Buffer, Rat, Rat), usize>);

impl Slices {
    /// Returns the number of the slice that an op moves: by its first operand outside of scratch, else by its first.
    fn of(&mut self, schedule: &Schedule, op: OpId) -> usize {
        let op = schedule.op(op);
        let regions =
            || schedule.dsts(op).iter().chain(schedule.srcs(op)).map(|o| schedule.region(*o));
        let kept = regions().find(|region| !matches!(region.buffer, Buffer::Scratch(_)));
        let Region { buffer, lo, hi, .. } =
            *kept.or_else(|| regions().next()).expect("a move has operands");
        let count = self.0.len();
        *self.0.entry((buffer, lo, hi)).or_insert(count)
    }
}

impl Ends {
    /// Returns the line in a path's syntax.
    pub(super) fn line(self) -> String {
        let (from, to) = (self.from, self.to);
        format!("M{} {}L{} {}", px(from.0), px(from.1), px(to.0), px(to.1))
    }

    fn length(self) -> f64 {
        (self.to.0 - self.from.0).hypot(self.to.1 - self.from.1)
    }

    /// Whether the two look the same.
    fn near(self, other: Self) -> bool {
        let near =
            |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() < 0.5 && (a.1 - b.1).abs() < 0.5;
        near(self.from, other.from) && near(self.to, other.to)
    }
}

/// Returns the ends of a message: on the sides of the two bands that face each other, or in the row of the moving
/// stream if bands have rows.
fn ends(
    schedule: &Schedule,
    message: &Message,
    rows: (u32, u32),
    bands: &Bands,
    scale: &Scale,
) -> Ends {
    let Message { op, from, to, flows, end, .. } = *message;
    let down = rows.1 > rows.0;
    let side = |row, lower| bands.y(row) + if lower { bands.tall } else { 0.0 };
    let mut at = [side(rows.0, down), side(rows.1, !down)];
    let stream = schedule.streams[schedule.stream_of(op).index()];
    let within = |row| bands.row_y(row, bands.row(stream.index));
    if bands.rows > 1 && stream.rank == from {
        let (y, height) = within(rows.0);
        at[0] = y + if down { height } else { 0.0 };
    } else if bands.rows > 1 && stream.rank == to {
        let (y, height) = within(rows.1);
        at[1] = y + if down { 0.0 } else { height };
    }
    Ends { from: (scale.x(flows), at[0]), to: (scale.x(end), at[1]) }
}
