//! The text of a trace: lines of JSON, an event each.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::ids::RankId;
use crate::json::Json;

/// The line before the events of a file.
pub const HEAD: &str = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";

/// The lines behind the events of a file.
pub const TAIL: &str = "\n]}\n";

/// The id of the first rank's process, which viewers show beside its name: that of rank 12 is 1012. Process 0 would be
/// the idle task of a system.
const FIRST: u32 = 1000;
/// The id of the first simulated rank's process, above all real ranks.
const FIRST_SIMULATED: u32 = 100_000;
/// The ids of threads of one kind begin at a multiple of this number, above all ids of processes.
const KINDS: u64 = 1_000_000;

/// A row of the trace: a part of a rank whose events follow one another, or lie in one another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Track {
    /// The rank.
    pub rank: RankId,
    /// Whether the rank is simulated.
    pub simulated: bool,
    /// The part of the rank.
    pub kind: TrackKind,
}

/// The part of a rank that a row shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrackKind {
    /// The calls of the rank.
    Calls,
    /// A worker thread, where the optimizer left no streams.
    Worker(u32),
    /// A stream, by its number at the rank.
    Stream(u32),
    /// Messages that are on their way from the rank; rows as many as there are messages at a time.
    Messages(u32),
}

/// An event that takes time.
#[derive(Clone, Debug, PartialEq)]
pub struct Slice {
    /// The name.
    pub name: String,
    /// The category: `call`, `step`, `wait`, `post`, `copy` or `message`.
    pub category: &'static str,
    /// Nanoseconds at which it begins and ends.
    pub time: (u64, u64),
    /// The details.
    pub args: Vec<(&'static str, Json)>,
}

/// The events of a trace, as text.
#[derive(Clone, Debug, Default)]
pub struct TraceText {
    lines: String,
    /// The rows whose names are written.
    named: BTreeSet<Track>,
    /// The simulated and real ranks whose names are written.
    ranks: BTreeSet<(RankId, bool)>,
}

impl TraceText {
    /// Adds an event that takes time.
    pub fn slice(&mut self, track: Track, slice: &Slice) {
        self.name(track);
        let (begin, end) = slice.time;
        let (name, category) = (Json::from(&slice.name), slice.category);
        self.begin_line();
        let _ = write!(
            self.lines,
            "{{\"ph\":\"X\",\"name\":{name},\"cat\":\"{category}\",{},\"ts\":{},\"dur\":{},\"args\":{{",
            ids(track),
            micros(begin),
            micros(end.saturating_sub(begin)),
        );
        for (nth, (key, value)) in slice.args.iter().enumerate() {
            let comma = if nth > 0 { "," } else { "" };
            let _ = write!(self.lines, "{comma}\"{key}\":{value}");
        }
        self.lines.push_str("}}");
    }

    /// Adds the beginning or the end of an arrow between two events; the words `id` are of that arrow alone.
    pub fn arrow(&mut self, track: Track, id: [u64; 4], ends: bool, at: u64) {
        let (phase, binds) = if ends { ("f", "\"bp\":\"e\",") } else { ("s", "") };
        let (id, ids) = (hash(id), ids(track));
        self.begin_line();
        let _ = write!(
            self.lines,
            "{{\"ph\":\"{phase}\",{binds}\"name\":\"signal\",\"cat\":\"signal\",\"id\":\"{id:#x}\",{ids},\"ts\":{}}}",
            micros(at)
        );
    }

    /// Adds a remark on a row at a time.
    pub fn remark(&mut self, track: Track, text: &str, at: u64) {
        self.name(track);
        let (text, ids) = (Json::from(text), ids(track));
        self.begin_line();
        let _ = write!(
            self.lines,
            "{{\"ph\":\"i\",\"s\":\"t\",\"name\":{text},\"cat\":\"remark\",{ids},\"ts\":{}}}",
            micros(at)
        );
    }

    /// Adds the events of another text, as [`Self::lines`] returned them.
    pub fn add(&mut self, lines: &str) {
        if !lines.is_empty() {
            self.begin_line();
            self.lines.push_str(lines);
        }
    }

    /// Returns the events, without the lines around them.
    pub fn lines(&self) -> &str {
        &self.lines
    }

    /// Returns the text of a file.
    pub fn file(&self) -> String {
        [HEAD, &self.lines, TAIL].concat()
    }

    fn begin_line(&mut self) {
        if !self.lines.is_empty() {
            self.lines.push_str(",\n");
        }
    }

    /// Names a row and its rank, if their names are not written. A simulated rank comes below the real one.
    fn name(&mut self, track: Track) {
        if !self.named.insert(track) {
            return;
        }
        let Track { rank, simulated, kind } = track;
        if self.ranks.insert((rank, simulated)) {
            let simulated = u32::from(simulated);
            let name = format!("{}rank {rank}", if simulated > 0 { "simulated " } else { "" });
            self.metadata(track, "process_name", &format!("\"name\":\"{name}\""));
            let order = format!("\"sort_index\":{}", 2 * rank.0 + simulated);
            self.metadata(track, "process_sort_index", &order);
        }
        let name = match kind {
            TrackKind::Calls => "calls".to_owned(),
            TrackKind::Worker(nth) => format!("worker {nth}"),
            TrackKind::Stream(nth) => format!("stream {nth}"),
            TrackKind::Messages(0) => "messages sent".to_owned(),
            TrackKind::Messages(nth) => format!("messages sent, row {}", nth + 1),
        };
        self.metadata(track, "thread_name", &format!("\"name\":\"{name}\""));
        let order = format!("\"sort_index\":{}", thread(kind) - KINDS);
        self.metadata(track, "thread_sort_index", &order);
    }

    fn metadata(&mut self, track: Track, what: &str, args: &str) {
        self.begin_line();
        let ids = ids(track);
        let _ = write!(
            self.lines,
            "{{\"ph\":\"M\",\"name\":\"{what}\",{ids},\"ts\":0,\"args\":{{{args}}}}}"
        );
    }
}

/// Returns the members of an event that name its row.
fn ids(track: Track) -> String {
    let first = if track.simulated { FIRST_SIMULATED } else { FIRST };
    format!("\"pid\":{},\"tid\":{}", first + track.rank.0, thread(track.kind))
}

fn thread(kind: TrackKind) -> u64 {
    let (kind, nth) = match kind {
        TrackKind::Calls => (1, 0),
        TrackKind::Worker(nth) => (2, nth),
        TrackKind::Stream(nth) => (3, nth),
        TrackKind::Messages(nth) => (4, nth),
    };
    kind * KINDS + u64::from(nth)
}

/// Returns a number for some words: viewers take ids of 64 bits.
fn hash(words: [u64; 4]) -> u64 {
    let step =
        |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
    words.into_iter().fold(words.len() as u64, step)
}

/// Returns nanoseconds in the unit of the format, microseconds.
fn micros(nanos: u64) -> String {
    format!("{}.{:03}", nanos / 1000, nanos % 1000)
}
