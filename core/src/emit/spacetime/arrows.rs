//! Messages as arrows, from the band of the sender to the band of the receiver.

use super::bands::Bands;
use super::rounds::{Rounds, is_signal};
use super::scale::Scale;
use crate::schedule::Schedule;
use crate::simulate::{Message, Timeline};

/// Arrows of data; beyond, the bars must do.
const MOST: usize = 12_000;
/// Arrows of signals; beyond, they hide the data.
const SIGNALS: usize = 600;

/// Data that travels.
pub(super) struct Arrow {
    pub(super) ends: Ends,
    /// The number of its round.
    pub(super) round: u32,
    /// Towards a rank of a higher number.
    pub(super) down: bool,
    /// It passes behind the bands between.
    pub(super) far: bool,
    pub(super) message: Message,
    /// Messages of the same round between the same ranks that lie on one another.
    pub(super) times: u32,
}

/// Where it begins and where it ends.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Ends {
    pub(super) from: (f64, f64),
    pub(super) to: (f64, f64),
}

/// All arrows of a picture, and how many there would be.
pub(super) struct Arrows {
    /// By round.
    pub(super) data: Vec<Arrow>,
    pub(super) signals: Vec<(Ends, Message)>,
    /// Messages from rank to rank that are not drawn.
    pub(super) data_missing: usize,
    /// Signals from rank to rank that are not drawn.
    pub(super) signals_missing: usize,
}

impl Arrows {
    pub(super) fn new(
        schedule: &Schedule,
        timeline: &Timeline,
        rounds: &Rounds,
        bands: &Bands,
        scale: &Scale,
    ) -> Self {
        let ends = |message: &Message| ends(schedule, message, bands, scale);
        let mut data: Vec<Arrow> = Vec::new();
        let in_rounds = timeline.messages.iter().zip(&rounds.of);
        let mut in_rounds: Vec<_> =
            in_rounds.filter_map(|(message, round)| Some((message, (*round)?))).collect();
        let count = in_rounds.len();
        in_rounds.sort_by_key(|(message, round)| (*round, message.from, message.to));
        for (message, round) in in_rounds {
            let ends = ends(message);
            if let Some(last) = data.last_mut()
                && (last.round, last.message.from, last.message.to)
                    == (round, message.from, message.to)
                && last.ends.near(ends)
            {
                last.times += 1;
                last.message.bytes = last.message.bytes.saturating_add(message.bytes);
                last.message.end = last.message.end.max(message.end);
                continue;
            }
            let (down, far) = (message.to > message.from, is_far(message));
            data.push(Arrow { ends, round, down, far, message: *message, times: 1 });
        }
        let data_missing = if data.len() > MOST { count } else { 0 };
        if data_missing > 0 {
            data.clear();
        }
        let signals = timeline.messages.iter().filter(|m| is_signal(schedule, m));
        let mut signals: Vec<_> = signals.map(|m| (ends(m), *m)).collect();
        let signals_missing = if signals.len() > SIGNALS { signals.len() } else { 0 };
        if signals_missing > 0 {
            signals.clear();
        }
        Self { data, signals, data_missing, signals_missing }
    }
}

impl Ends {
    /// Nobody sees a difference.
    fn near(self, other: Self) -> bool {
        let near =
            |a: (f64, f64), b: (f64, f64)| (a.0 - b.0).abs() < 0.5 && (a.1 - b.1).abs() < 0.5;
        near(self.from, other.from) && near(self.to, other.to)
    }
}

/// From the side of one band that faces the other band to the side of that; between neighbours, where nothing covers
/// the arrow, to the row of the stream that moves.
fn ends(schedule: &Schedule, message: &Message, bands: &Bands, scale: &Scale) -> Ends {
    let Message { op, from, to, start, end, .. } = *message;
    let down = to > from;
    let side = |rank, lower| bands.y(rank) + if lower { bands.tall } else { 0.0 };
    let mut at = [side(from, down), side(to, !down)];
    let stream = schedule.streams[schedule.stream_of(op).index()];
    let (y, height) = bands.row_y(stream.rank, bands.row(stream.index));
    if bands.rows > 1 && !is_far(message) && stream.rank == from {
        at[0] = y + if down { height } else { 0.0 };
    } else if bands.rows > 1 && !is_far(message) && stream.rank == to {
        at[1] = y + if down { 0.0 } else { height };
    }
    Ends { from: (scale.x(start), at[0]), to: (scale.x(end), at[1]) }
}

/// Whether there are bands in between.
fn is_far(message: &Message) -> bool {
    message.to.0.abs_diff(message.from.0) > 1
}
