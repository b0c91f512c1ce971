//! The error of a stuck run: the choice of the wait to blame among many, and the name of a wait.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use roundelay_core::ids::{ChannelId, RankId, StreamId};
use roundelay_core::schedule::{Schedule, SignalKind};

/// The details of [`Error::Timeout`](crate::Error::Timeout) (E0405): the wait at which a run got stuck.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The rank that waits.
    pub rank: RankId,
    /// The stream of that rank.
    pub stream: StreamId,
    /// The place of the wait on the stream: the number of ops before it.
    pub step: u32,
    /// The signal that the rank waits for, such as `Data from rank 2`.
    pub waiting_on: String,
    /// The number of the awaited post of that signal, counted from 1.
    pub expected: u64,
    /// The number of posts of that signal that had come.
    pub seen: u64,
    /// The file of the algorithm's source; empty if not known.
    pub file: Arc<str>,
    /// The line of the statement in that file; 0 if not known.
    pub line: u32,
    /// The time without any progress; `None` if the run was given up at once because no rank could post any more.
    pub after: Option<Duration>,
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rank, stream, step, waiting_on, expected, seen, file, line, after } = self;
        write!(
            f,
            "rank {rank} stream {stream} step {step} waits for {waiting_on}: post {expected} expected, {seen} seen"
        )?;
        match *line {
            0 => {}
            line if file.is_empty() => write!(f, " (line {line})")?,
            line => write!(f, " ({file}:{line})")?,
        }
        match after {
            Some(after) => write!(
                f,
                "; nothing happened for {after:?}; raise the deadline if the machine is only slow"
            ),
            None => write!(f, "; all others wait or are done, so nobody can post it any more"),
        }
    }
}

/// A stream that waits, and the channel of its wait.
pub(crate) type Waiting = (StreamId, ChannelId);

/// Returns the wait to blame: goes from a rank that waits to the rank that it waits for, as long as that rank waits
/// too; in a cycle, takes the wait whose stream is at the earliest step. `waits` holds one wait of each rank that
/// waits; `step` returns the number of ops that a stream has done.
pub(crate) fn to_blame(
    schedule: &Schedule,
    mut waits: Vec<Option<Waiting>>,
    first: Waiting,
    step: impl Fn(StreamId) -> u32,
) -> Waiting {
    let streams = &schedule.streams;
    let mut rank = streams[first.0.index()].rank;
    let mut path: Vec<Waiting> = Vec::new();
    // The wait is taken out: a rank is visited once.
    while let Some(wait) = waits[rank.index()].take() {
        path.push(wait);
        rank = schedule.channels[wait.1.index()].from;
    }
    let back = path.iter().position(|wait| streams[wait.0.index()].rank == rank);
    let suspects = &path[back.unwrap_or(path.len().saturating_sub(1))..];
    // There is no suspect if a slow op ended, and met all waits, between the verdict and the stop.
    suspects.iter().copied().min_by_key(|wait| step(wait.0)).unwrap_or(first)
}

/// Returns the name of a signal, from the view of its reader.
pub(crate) fn signal_name(schedule: &Schedule, id: ChannelId) -> String {
    let channel = &schedule.channels[id.index()];
    let kind = match channel.kind {
        SignalKind::Ack => "TxAck",
        SignalKind::Data => "TxDataSignal",
        SignalKind::Head => "a free slot of the fifo",
        SignalKind::Tail => "a slot of the fifo with data",
        SignalKind::Fork => "the fork",
        SignalKind::Join => "the join",
        SignalKind::Local => "the word of another stream",
    };
    match schedule.lanes.get(channel.lane.index()) {
        Some(lane) if !lane.is_empty() => {
            format!("{kind} from rank {} in lane {lane:?}", channel.from)
        }
        _ => format!("{kind} from rank {}", channel.from),
    }
}
