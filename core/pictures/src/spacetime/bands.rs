//! The band of each rank, its rows, and the ops of its streams over time.

use super::drawing::Shown;
use super::scale::Scale;
use roundelay_core::ids::{OpId, RankId};
use roundelay_core::schedule::{Op, Schedule};
use roundelay_simulate::{Timeline, TimelineState};

/// The intended height of all bands together.
const TALL: f64 = 960.0;
/// The least and largest distance from a band to the next.
const PITCH: (f64, f64) = (1.0, 120.0);
/// The largest gap between bands, for arrows.
const GAP: f64 = 32.0;
/// The height of a row in a band of one, two, or more rows.
const ROW: [f64; 3] = [18.0, 11.0, 7.0];
/// The least height of a row; with more streams, several share a row.
const THIN: f64 = 2.0;
/// The least distance from one rank's name to the next.
pub(super) const NAME: f64 = 13.0;
/// The most bars of a picture; with more ops, more of them are merged.
const MOST: usize = 10_000;
/// The distance in pixels below which two bars look like one.
const CLOSE: f64 = 0.5;

/// The places of the bands.
pub(super) struct Bands {
    /// The number of bands.
    pub(super) count: u32,
    /// The most streams of a rank.
    pub(super) streams: u32,
    /// Rows of a band.
    pub(super) rows: u32,
    /// The distance from a band to the next.
    pub(super) pitch: f64,
    /// Height of a band.
    pub(super) tall: f64,
}

impl Bands {
    pub(super) fn new(schedule: &Schedule, shown: &Shown) -> Self {
        let count = shown.ranks.len() as u32;
        let streams = schedule.streams.iter().filter(|s| shown.row(s.rank).is_some());
        let streams = streams.map(|s| s.index + 1).max().unwrap_or(1);
        let room = (TALL / f64::from(count)).clamp(PITCH.0, PITCH.1);
        let gap = GAP.min(room * 0.55);
        let wanted = ROW[(streams as usize - 1).min(2)] * f64::from(streams);
        let tall = wanted.min(room - gap);
        let rows = streams.min((tall / THIN) as u32).max(1);
        Self { count, streams, rows, pitch: tall + gap, tall }
    }

    /// Returns the upper end of a band.
    pub(super) fn y(&self, band: u32) -> f64 {
        f64::from(band) * self.pitch
    }

    /// Returns the row of a stream within its band.
    pub(super) fn row(&self, stream: u32) -> u32 {
        if self.streams <= self.rows { stream } else { stream * self.rows / self.streams }
    }

    /// Returns the upper end and the height of a row.
    pub(super) fn row_y(&self, band: u32, row: u32) -> (f64, f64) {
        let height = self.tall / f64::from(self.rows);
        // Rows are separated if there is room.
        let apart = if height >= 5.0 { 1.0 } else { 0.0 };
        (self.y(band) + height * f64::from(row) + apart / 2.0, height - apart)
    }

    /// Returns the height of all bands.
    pub(super) fn height(&self) -> f64 {
        f64::from(self.count) * self.pitch - (self.pitch - self.tall)
    }
}

/// Returns the distance in rows between rows with names, if a name needs `room` pixels.
pub(super) fn named(pitch: f64, room: f64) -> usize {
    let every = (room / pitch).ceil() as usize;
    [1, 2, 4, 8, 16, 32, 64, 128].into_iter().find(|n| *n >= every).unwrap_or(256)
}

/// The effect of a move on its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Work {
    Copies,
    Reduces,
}

impl Work {
    pub(super) fn of(op: &Op) -> Self {
        if op.srcs > 1 { Self::Reduces } else { Self::Copies }
    }

    /// Returns the class in the style.
    pub(super) fn class(self) -> &'static str {
        match self {
            Self::Copies => "copies",
            Self::Reduces => "reduces",
        }
    }
}

/// An op in a row, or several ops that are too short to tell apart.
#[derive(Clone, Copy)]
pub(super) struct Bar {
    pub(super) rank: RankId,
    pub(super) band: u32,
    pub(super) stream: u32,
    pub(super) row: u32,
    pub(super) state: TimelineState,
    pub(super) work: Work,
    /// The start in seconds.
    pub(super) start: f64,
    /// The end in seconds.
    pub(super) end: f64,
    /// The first op.
    pub(super) op: OpId,
    /// The number of ops.
    pub(super) ops: u32,
}

/// Returns the bars of a run; waits first, since other bars may cover them.
pub(super) fn bars(
    schedule: &Schedule,
    timeline: &Timeline,
    shown: &Shown,
    bands: &Bands,
    scale: &Scale,
) -> Vec<Bar> {
    let mut singles: Vec<Bar> = timeline
        .spans
        .iter()
        .filter(|span| shown.during(span))
        .filter_map(|s| {
            let stream = schedule.streams[s.stream.index()];
            Some(Bar {
                rank: stream.rank,
                band: shown.row(stream.rank)?,
                stream: stream.index,
                row: bands.row(stream.index),
                state: s.state,
                work: Work::of(schedule.op(s.op)),
                start: s.start,
                end: s.end,
                op: s.op,
                ops: 1,
            })
        })
        .collect();
    let key = |bar: &Bar| (layer(bar.state), bar.rank, bar.row, bar.work);
    singles.sort_by(|a, b| key(a).cmp(&key(b)).then(a.start.total_cmp(&b.start)));
    let mut grain = 1.0;
    loop {
        let merged = merged(&singles, scale, grain);
        if merged.len() <= MOST || grain > scale.wide {
            return merged;
        }
        grain *= 2.0;
    }
}

/// Returns the layer of a state: higher layers cover lower ones.
fn layer(state: TimelineState) -> u32 {
    match state {
        TimelineState::Idle => 0,
        TimelineState::Local => 1,
        TimelineState::Transfer => 2,
    }
}

/// Merges neighboring bars if one of them is narrower than `grain` pixels, and drops waits that are too narrow to see.
fn merged(bars: &[Bar], scale: &Scale, grain: f64) -> Vec<Bar> {
    let wide = |bar: &Bar| scale.x(bar.end) - scale.x(bar.start);
    let mut all: Vec<Bar> = Vec::new();
    for bar in bars {
        if let Some(last) = all.last_mut()
            && (last.rank, last.row, last.state, last.work)
                == (bar.rank, bar.row, bar.state, bar.work)
            && (wide(last) < grain || wide(bar) < grain)
            && scale.x(bar.start) - scale.x(last.end) < CLOSE * grain
        {
            last.end = last.end.max(bar.end);
            last.ops += 1;
            continue;
        }
        all.push(*bar);
    }
    all.retain(|bar| bar.state != TimelineState::Idle || wide(bar) >= CLOSE * grain);
    all
}

/// Whether some row is empty for a time that is long enough to see.
pub(super) fn gaps(bars: &[Bar], bands: &Bands, scale: &Scale) -> bool {
    /// The width in pixels of a gap that is visible.
    const SEEN: f64 = 1.5;
    let mut ends = vec![scale.x(f64::MIN); (bands.count * bands.rows) as usize];
    let mut all: Vec<_> = bars.iter().collect();
    all.sort_by(|a, b| a.start.total_cmp(&b.start));
    for bar in all {
        let end = &mut ends[(bar.band * bands.rows + bar.row) as usize];
        if scale.x(bar.start) - *end > SEEN {
            return true;
        }
        *end = end.max(scale.x(bar.end));
    }
    ends.iter().any(|end| scale.x(f64::MAX) - end > SEEN)
}
