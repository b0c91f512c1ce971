//! The record of a run, from which a trace is written: times of calls, steps and waits, in bounded rows of which the
//! last events are kept.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use roundelay_core::ids::{OpId, RankId, SpanId};
use roundelay_core::json::Json;
use roundelay_core::schedule::{OpKind, Schedule};
use roundelay_core::syntax::Source;
use roundelay_core::trace::{Data, OpText, Slice, TraceText, Track, TrackKind};

use crate::sync::{AtomicU64, Mutex, Ordering, lock};

/// The most events that a row keeps.
const ROW: usize = 1 << 16;
/// The most events that a record keeps, unless its rows are very many.
const ALL: usize = 1 << 20;
/// The events that any row keeps.
const LEAST: usize = 256;

/// Returns the nanoseconds of the system's monotonic clock, which all processes of a host share on Linux.
pub fn now() -> u64 {
    #[cfg(target_os = "linux")]
    {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }
    #[cfg(not(target_os = "linux"))]
    {
        static START: std::sync::LazyLock<std::time::Instant> =
            std::sync::LazyLock::new(std::time::Instant::now);
        START.elapsed().as_nanos() as u64
    }
}

/// The rows of a record, beside those of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordRows {
    /// A row for each stream of the schedule.
    Streams,
    /// A row for each worker.
    Workers,
    /// A row for each stream of one rank.
    StreamsOf(RankId),
}

/// The record of a plan, or of a rank in its world.
pub(crate) struct Recorder {
    rows: RecordRows,
    most: usize,
    /// The number of the call under way, for plans that do not number their calls themselves.
    number: AtomicU64,
    shapes: Mutex<Vec<CallRecordShape>>,
    /// A row for the calls of all ranks, or for those of each.
    calls: Box<[Mutex<EventRow>]>,
    others: Box<[Mutex<EventRow>]>,
}

/// The plan of recorded calls.
pub(crate) struct CallRecordShape {
    /// The identity of the call, its count and its other words.
    pub(crate) key: [u64; 3],
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) data: Data,
    /// The call in words.
    pub(crate) name: String,
}

/// A call under way.
#[derive(Clone, Copy)]
pub(crate) struct RecordedCall {
    pub(crate) number: u64,
    pub(crate) shape: u32,
    pub(crate) begin: u64,
}

#[derive(Clone, Copy)]
pub(crate) struct RecordedEvent {
    begin: u64,
    end: u64,
    call: u64,
    shape: u32,
    what: Recorded,
}

#[derive(Clone, Copy)]
#[allow(dead_code, reason = "some events are of ranks as processes, which not every system has")]
pub(crate) enum Recorded {
    Call {
        failed: bool,
    },
    /// Some ops of a stream.
    Ops {
        stream: u32,
        step: u32,
        len: u32,
    },
    /// The work on a statement.
    Statement(SpanId),
    /// A wait for a rank, or for any rank.
    Wait(Option<u32>),
    /// A copy of the rank's input to shared memory.
    CopyIn,
    /// A copy of the rank's output from shared memory.
    CopyOut,
}

#[derive(Default)]
struct EventRow {
    events: VecDeque<RecordedEvent>,
    dropped: u64,
    /// The call in which the stream of this row waits, and since when.
    waits: Option<(u64, u64)>,
}

impl Recorder {
    /// Makes a record with `calls` rows for calls and `others` rows.
    pub(crate) fn new(rows: RecordRows, calls: usize, others: usize) -> Self {
        let row = |_| Mutex::new(EventRow::default());
        Self {
            rows,
            most: match rows {
                // Most of these rows stay empty.
                RecordRows::StreamsOf(_) => ROW,
                _ => (ALL / (calls + others)).clamp(LEAST, ROW),
            },
            number: AtomicU64::new(0),
            shapes: Mutex::default(),
            calls: (0..calls).map(row).collect(),
            others: (0..others).map(row).collect(),
        }
    }

    /// Returns the number of a shape, which is made at its first call.
    pub(crate) fn shape(&self, key: [u64; 3], make: impl FnOnce() -> CallRecordShape) -> u32 {
        let mut shapes = lock(&self.shapes);
        let at = shapes.iter().position(|shape| shape.key == key).unwrap_or(shapes.len());
        if at == shapes.len() {
            shapes.push(make());
        }
        at as u32
    }

    /// Begins the next call of a plan of one shape.
    pub(crate) fn begin_next(&self) -> RecordedCall {
        let number = self.number.fetch_add(1, Ordering::Relaxed) + 1;
        RecordedCall { number, shape: 0, begin: now() }
    }

    /// Returns the call under way of a plan of one shape.
    pub(crate) fn current(&self) -> RecordedCall {
        RecordedCall { number: self.number.load(Ordering::Relaxed), shape: 0, begin: 0 }
    }

    /// Notes an event of the row of calls `row`, which ends now.
    pub(crate) fn in_call(&self, row: usize, call: RecordedCall, begin: u64, what: Recorded) {
        self.push(&self.calls[row], call, begin, what);
    }

    /// Notes an event of another row, which ends now.
    pub(crate) fn in_row(&self, row: usize, call: RecordedCall, begin: u64, what: Recorded) {
        if let Some(row) = self.others.get(row) {
            self.push(row, call, begin, what);
        }
    }

    fn push(
        &self,
        row: &Mutex<EventRow>,
        RecordedCall { number, shape, .. }: RecordedCall,
        begin: u64,
        what: Recorded,
    ) {
        let event = RecordedEvent { begin, end: now(), call: number, shape, what };
        let mut row = lock(row);
        if row.events.len() == self.most {
            row.events.pop_front();
            row.dropped += 1;
        }
        let most = self.most;
        if row.events.capacity() == 0 {
            row.events.reserve_exact(most);
        }
        row.events.push_back(event);
    }

    /// Notes that the stream of a row comes to a wait, unless it is there already.
    pub(crate) fn comes_to_wait(&self, row: usize, call: u64) {
        if let Some(row) = self.others.get(row) {
            let waits = &mut lock(row).waits;
            if waits.is_none_or(|(of, _)| of != call) {
                *waits = Some((call, now()));
            }
        }
    }

    /// Notes that the wait of a row is over, and returns when it began.
    pub(crate) fn goes_on(&self, row: usize) -> Option<u64> {
        lock(self.others.get(row)?).waits.take().map(|(_, since)| since)
    }

    /// Moves the events to a trace. `name` is the rank's in the trace, where the record is of one rank. The record goes on.
    pub(crate) fn write(&self, text: &mut TraceText, source: Option<&Source>, name: RankId) {
        let shapes = lock(&self.shapes);
        let mut arrows = Arrows::default();
        for (nth, row) in self.calls.iter().enumerate() {
            let row = lock(row);
            let ranks = |event: &RecordedEvent| match self.rows {
                RecordRows::StreamsOf(own) => own.0..own.0 + 1,
                _ if self.calls.len() > 1 => nth as u32..nth as u32 + 1,
                _ => 0..shapes[event.shape as usize].schedule.nranks,
            };
            for event in row.ordered() {
                for rank in ranks(event).map(RankId) {
                    let track = self.track(rank, name, TrackKind::Calls);
                    text.slice(track, &slice(&shapes[event.shape as usize], event, rank, source));
                }
            }
            if let Some(first) = row.events.front() {
                let rank = RankId(ranks(first).start);
                row.tell_dropped(text, self.track(rank, name, TrackKind::Calls));
            }
        }
        for (nth, row) in self.others.iter().enumerate() {
            let row = lock(row);
            let mut last = None;
            for event in row.ordered() {
                let shape = &shapes[event.shape as usize];
                let Recorded::Ops { stream, .. } = event.what else { continue };
                let stream = shape.schedule.streams[stream as usize];
                let kind = match self.rows {
                    RecordRows::Workers => TrackKind::Worker(nth as u32),
                    _ => TrackKind::Stream(stream.index),
                };
                let track = self.track(stream.rank, name, kind);
                text.slice(track, &slice(shape, event, stream.rank, source));
                arrows.note(track, shape, event);
                last = Some(track);
            }
            if let (Some(track), Some(first)) = (last, row.events.front()) {
                row.tell_dropped(text, track);
                if row.dropped > 0 {
                    arrows.whole_after = arrows.whole_after.max(first.call);
                }
            }
        }
        arrows.write(text, shapes.first().map_or(0, |shape| shape.schedule.nranks));
        for row in self.calls.iter().chain(&self.others) {
            let mut row = lock(row);
            (row.dropped, row.waits) = (0, None);
            row.events.clear();
        }
    }

    fn track(&self, rank: RankId, name: RankId, kind: TrackKind) -> Track {
        let of_one = matches!(self.rows, RecordRows::StreamsOf(_));
        Track { rank: if of_one { name } else { rank }, simulated: false, kind }
    }
}

impl EventRow {
    /// Returns the events in the order of their beginnings; an event comes before those that lie in it.
    fn ordered(&self) -> Vec<&RecordedEvent> {
        let mut events: Vec<_> = self.events.iter().collect();
        events.sort_by_key(|event| (event.begin, std::cmp::Reverse(event.end)));
        events
    }

    fn tell_dropped(&self, text: &mut TraceText, track: Track) {
        if self.dropped > 0 {
            let kept = self.events.len();
            let what =
                format!("{} earlier events were dropped: the last {kept} are kept", self.dropped);
            text.remark(track, &what, self.events.front().map_or(0, |event| event.begin));
        }
    }
}

/// The posts and the waits of a record, from which arrows are made: the k-th post of a channel in a call meets its
/// k-th wait.
#[derive(Default)]
struct Arrows {
    /// The call up to which some events are gone.
    whole_after: u64,
    /// The call, the channel, whether it is a wait, the time, and the row.
    ends: Vec<(u64, u32, bool, u64, Track)>,
}

impl Arrows {
    fn note(&mut self, track: Track, shape: &CallRecordShape, event: &RecordedEvent) {
        for id in event.ops(shape) {
            let op = shape.schedule.op(id);
            let (waits, at) = match op.kind {
                OpKind::Move => continue,
                OpKind::Post => (false, event.begin),
                // Within the event, as its end is a part of what follows.
                OpKind::Wait => (true, event.end.saturating_sub(1).max(event.begin)),
            };
            self.ends.push((event.call, op.arg, waits, at, track));
        }
    }

    fn write(mut self, text: &mut TraceText, nranks: u32) {
        self.ends.sort_by_key(|(.., at, _)| *at);
        let mut seen: BTreeMap<(u64, u32, bool), u64> = BTreeMap::new();
        for (call, channel, waits, at, track) in self.ends {
            if call <= self.whole_after {
                continue;
            }
            let nth = seen.entry((call, channel, waits)).or_default();
            *nth += 1;
            text.arrow(track, [nranks.into(), call, channel.into(), *nth], waits, at);
        }
    }
}

impl RecordedEvent {
    fn ops(&self, shape: &CallRecordShape) -> impl Iterator<Item = OpId> + use<> {
        let ops = match self.what {
            Recorded::Ops { stream, step, len } => {
                let of = shape.schedule.streams[stream as usize];
                let end = step.saturating_add(len).min(of.len);
                of.first.0 + step.min(end)..of.first.0 + end
            }
            _ => 0..0,
        };
        ops.map(OpId)
    }
}

/// Describes an event of a rank.
fn slice(
    shape: &CallRecordShape,
    event: &RecordedEvent,
    rank: RankId,
    source: Option<&Source>,
) -> Slice {
    let time = (event.begin, event.end.max(event.begin));
    let text = |text: &str| Json::Text(text.to_owned());
    let CallRecordShape { schedule, data, name, .. } = shape;
    let plain = |name: String, category, args| Slice { name, category, time, args };
    match event.what {
        Recorded::Call { failed } => {
            let mut args = vec![
                ("call", text(name)),
                ("number", Json::Whole(event.call)),
                ("ranks", Json::Whole(schedule.nranks.into())),
            ];
            let bytes =
                schedule.collective.bytes(data.count, schedule.nranks, data.dtype.size() as u64);
            if data.count > 0 && schedule.elements.is_none() {
                args.push(("bytes", Json::Whole(bytes)));
            }
            if failed {
                args.push(("failed", text("yes")));
            }
            plain(schedule.algorithm.clone(), "call", args)
        }
        Recorded::Ops { .. } => {
            let all = event.ops(shape).map(|op| OpText::of_op(schedule, op, *data, source));
            let all: Vec<OpText> = all.collect();
            let names: Vec<&str> = all.iter().map(|op| &*op.name).collect();
            match &all[..] {
                [] => plain("divide by the number of ranks".to_owned(), "step", Vec::new()),
                [one] => plain(one.name.clone(), one.category, one.args.clone()),
                [first, more @ ..] => {
                    let name = format!("{} and {} more", first.name, more.len());
                    let mut args = first.args.clone();
                    args.push(("all", text(&names.join("; "))));
                    plain(name, first.category, args)
                }
            }
        }
        Recorded::Statement(at) => {
            let OpText { name, category, args } = OpText::of_statement(schedule, rank, at, source);
            plain(name, category, args)
        }
        Recorded::Wait(Some(on)) => {
            let args = vec![("peer", Json::Whole(on.into()))];
            plain(format!("waits for rank {on}"), "wait", args)
        }
        Recorded::Wait(None) => plain("waits for other ranks".to_owned(), "wait", Vec::new()),
        Recorded::CopyIn => plain("copy in".to_owned(), "copy", Vec::new()),
        Recorded::CopyOut => plain("copy out".to_owned(), "copy", Vec::new()),
    }
}
