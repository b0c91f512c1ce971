//! A run of many messages, as colors: the data that each rank sends and receives over time, and the data between each
//! two ranks. With very many ranks, a row represents several.

use std::collections::BTreeMap;

use super::bands::Work;
use super::drawing::Shown;
use super::rounds::Rounds;
use super::scale::Scale;
use super::shares::{level, shares};
use roundelay_core::schedule::Schedule;
use roundelay_simulate::{Timeline, TimelineState};

/// The intended height of all rows together.
const TALL: f64 = 640.0;
/// The least and largest height of a row.
const PITCH: (f64, f64) = (4.0, 36.0);
/// The most rows.
const ROWS: u32 = 128;
/// The width of a moment in pixels; shorter events are averaged.
const MOMENT: f64 = 2.0;
/// The share of the largest rate below which a rate is drawn as none.
const NOTHING: f64 = 0.01;
/// The most cells of all rounds together that are kept separately.
const CELLS: usize = 200_000;

/// The bytes by sender and receiver, both as rows.
pub(super) type Flow = BTreeMap<(u32, u32), u64>;

/// The drawing in place of arrows.
pub(super) struct Matrix {
    /// The ranks of a row; the last row may have fewer.
    pub(super) each: u32,
    pub(super) rows: u32,
    /// The height of a row, and the width of a column of the flow.
    pub(super) pitch: f64,
    /// The moments, by row and then by time.
    pub(super) moments: Vec<Moment>,
    /// The number of moments in a row.
    pub(super) columns: usize,
    /// The largest rate at which a rank sends, or receives, in any moment, in bytes per second.
    pub(super) fastest: f64,
    /// The sums of each row.
    pub(super) sums: Vec<Sum>,
    /// The data between ranks in all rounds that are drawn.
    pub(super) flow: Flow,
    /// The data between ranks in each round; empty if there are too many cells.
    pub(super) flows: Vec<Flow>,
}

/// The activity of a row's ranks in a moment, which is two pixels wide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    /// They send or receive data that is mostly copied, or mostly reduced, at a rate from 1 (low) to [`LEVELS`], the
    /// largest in the run.
    Travels(Work, u8),
    /// They copy or reduce within a rank.
    Works,
    /// They wait for signals.
    Waits,
    Nothing,
}

/// The total activity of a row's ranks.
#[derive(Clone, Copy, Default)]
pub(super) struct Sum {
    pub(super) sent: u64,
    pub(super) received: u64,
    /// The seconds in which its streams wait.
    pub(super) waits: f64,
    pub(super) works: f64,
}

/// The amount of each activity in one moment.
#[derive(Clone, Copy, Default)]
struct Amount {
    sent: f64,
    received: f64,
    /// The part of both that is reduced.
    reduced: f64,
    works: f64,
    waits: f64,
}

impl Matrix {
    pub(super) fn new(
        schedule: &Schedule,
        timeline: &Timeline,
        shown: &Shown,
        rounds: &Rounds,
        wide: f64,
    ) -> Self {
        let ranks = shown.ranks.len() as u32;
        let (each, rows, pitch) = shape(ranks);
        let columns = ((wide / MOMENT) as usize).max(1);
        let mut matrix = Self {
            each,
            rows,
            pitch,
            moments: Vec::new(),
            columns,
            fastest: 0.0,
            sums: vec![Sum::default(); rows as usize],
            flow: Flow::new(),
            flows: vec![Flow::new(); shown.rounds.len()],
        };
        let mut amounts = vec![Amount::default(); rows as usize * columns];
        matrix.messages(schedule, timeline, shown, rounds, &mut amounts);
        matrix.spans(schedule, timeline, shown, &mut amounts);
        let seconds = (shown.window.1 - shown.window.0) / columns as f64;
        let rate = |amount: &Amount, row: usize| {
            let ranks = matrix.ranks(row as u32, ranks);
            amount.sent.max(amount.received) / seconds.max(f64::MIN_POSITIVE) / f64::from(ranks)
        };
        let rates: Vec<_> =
            amounts.iter().enumerate().map(|(at, amount)| rate(amount, at / columns)).collect();
        matrix.fastest = rates.iter().copied().fold(0.0, f64::max);
        let moment = |(amount, rate): (&Amount, &f64)| {
            let share = rate / matrix.fastest.max(f64::MIN_POSITIVE);
            match amount {
                a if share > NOTHING => {
                    let reduces = 2.0 * a.reduced > a.sent + a.received;
                    Moment::Travels(
                        if reduces { Work::Reduces } else { Work::Copies },
                        level(share),
                    )
                }
                a if a.works > seconds / 2.0 && a.works >= a.waits => Moment::Works,
                a if a.waits > seconds / 2.0 => Moment::Waits,
                _ => Moment::Nothing,
            }
        };
        matrix.moments = amounts.iter().zip(&rates).map(moment).collect();
        matrix
    }

    /// Adds the messages; data is spread evenly over the time of its transfer.
    fn messages(
        &mut self,
        schedule: &Schedule,
        timeline: &Timeline,
        shown: &Shown,
        rounds: &Rounds,
        amounts: &mut [Amount],
    ) {
        let mut cells = 0;
        for (message, round) in timeline.messages.iter().zip(&rounds.of) {
            let Some(round) = round.filter(|round| shown.rounds.contains(round)) else { continue };
            let [from, to] =
                [message.from, message.to].map(|rank| Some(shown.row(rank)? / self.each));
            if let Some(row) = from {
                let sum = &mut self.sums[row as usize].sent;
                *sum = sum.saturating_add(message.bytes);
            }
            if let Some(row) = to {
                let sum = &mut self.sums[row as usize].received;
                *sum = sum.saturating_add(message.bytes);
            }
            let work = Work::of(schedule.op(message.op));
            for (column, share) in shares(shown.window, self.columns, message.flows, message.end) {
                let bytes = message.bytes as f64 * share;
                let reduced = if work == Work::Reduces { bytes } else { 0.0 };
                let at = |row: u32| row as usize * self.columns + column;
                if let Some(row) = from {
                    amounts[at(row)].sent += bytes;
                    amounts[at(row)].reduced += reduced;
                }
                if let Some(row) = to {
                    amounts[at(row)].received += bytes;
                    amounts[at(row)].reduced += reduced;
                }
            }
            let Some(ends) = from.zip(to) else { continue };
            let sum = self.flow.entry(ends).or_default();
            *sum = sum.saturating_add(message.bytes);
            if let Some(flow) = self.flows.get_mut((round - shown.rounds.start) as usize) {
                let before = flow.len();
                let sum = flow.entry(ends).or_default();
                *sum = sum.saturating_add(message.bytes);
                cells += flow.len() - before;
            }
            if cells > CELLS {
                self.flows = Vec::new();
                cells = 0;
            }
        }
    }

    fn spans(
        &mut self,
        schedule: &Schedule,
        timeline: &Timeline,
        shown: &Shown,
        amounts: &mut [Amount],
    ) {
        for span in timeline.spans.iter().filter(|span| shown.during(span)) {
            let Some(row) = shown.row(schedule.streams[span.stream.index()].rank) else { continue };
            let row = (row / self.each) as usize;
            for (column, share) in shares(shown.window, self.columns, span.start, span.end) {
                let seconds = (span.end - span.start) * share;
                let (at, sum) = (&mut amounts[row * self.columns + column], &mut self.sums[row]);
                let (at, sum) = match span.state {
                    TimelineState::Local => (&mut at.works, &mut sum.works),
                    TimelineState::Idle => (&mut at.waits, &mut sum.waits),
                    TimelineState::Transfer => continue,
                };
                *at += seconds;
                *sum += seconds;
            }
        }
    }

    /// Returns the number of ranks of a row, of `all` ranks.
    pub(super) fn ranks(&self, row: u32, all: u32) -> u32 {
        self.each.min(all - row * self.each)
    }

    /// Returns the [`Matrix::side`] of a matrix for `ranks` ranks.
    pub(super) fn side_of(ranks: u32) -> f64 {
        let (_, rows, pitch) = shape(ranks);
        f64::from(rows) * pitch
    }

    /// Returns the height of all rows, which is also the width of the flow.
    pub(super) fn side(&self) -> f64 {
        f64::from(self.rows) * self.pitch
    }

    /// Returns stretches of equal moments in a row: the moment, the first column, and the column after the last.
    pub(super) fn runs(&self, row: u32) -> Vec<(Moment, usize, usize)> {
        let first = row as usize * self.columns;
        let mut runs: Vec<(Moment, usize, usize)> = Vec::new();
        for (at, moment) in self.moments[first..first + self.columns].iter().enumerate() {
            match runs.last_mut() {
                Some(last) if last.0 == *moment => last.2 = at + 1,
                _ => runs.push((*moment, at, at + 1)),
            }
        }
        runs
    }

    /// Whether the matrix has a moment like that.
    pub(super) fn any(&self, like: impl Fn(Moment) -> bool) -> bool {
        self.moments.iter().copied().any(like)
    }

    /// Returns the width of a moment.
    pub(super) fn moment(&self, scale: &Scale) -> f64 {
        scale.wide / self.columns as f64
    }
}

/// Returns the ranks of a row, the number of rows, and the height of a row.
fn shape(ranks: u32) -> (u32, u32, f64) {
    let each = ranks.div_ceil(ROWS).max(1);
    let rows = ranks.div_ceil(each);
    (each, rows, (TALL / f64::from(rows)).clamp(PITCH.0, PITCH.1))
}
