//! A run that got stuck: which of many waits is to blame, and how a wait is named.

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
    /// The signal that it waits for, such as `Data from rank 2`.
    pub waiting_on: String,
    /// Which post of that signal it waits for, counted from 1.
    pub expected: u64,
    /// How many posts of that signal had come.
    pub seen: u64,
    /// The file of the algorithm's source; empty if not known.
    pub file: Arc<str>,
    /// The line of the statement in that file; 0 if not known.
    pub line: u32,
    /// How long nothing happened; `None` if the run was given up at once because no rank could post any more.
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

/// A stream that waits, and what for.
pub(crate) type Waiting = (StreamId, ChannelId);

/// The wait to blame: from a rank that waits, on to the rank it waits for, as long as that one waits too;
/// in a cycle the one that came least far. `waits` holds one wait of each rank that waits; `step` tells how far a
/// stream came.
pub(crate) fn to_blame(
    schedule: &Schedule,
    mut waits: Vec<Option<Waiting>>,
    first: Waiting,
    step: impl Fn(StreamId) -> u32,
) -> Waiting {
    let streams = &schedule.streams;
    let mut rank = streams[first.0.index()].rank;
    let mut path: Vec<Waiting> = Vec::new();
    // Taken: a rank is visited once.
    while let Some(wait) = waits[rank.index()].take() {
        path.push(wait);
        rank = schedule.channels[wait.1.index()].from;
    }
    let back = path.iter().position(|wait| streams[wait.0.index()].rank == rank);
    let suspects = &path[back.unwrap_or(path.len().saturating_sub(1))..];
    // None if a slow op ended, and met all waits, between the verdict and the stop.
    suspects.iter().copied().min_by_key(|wait| step(wait.0)).unwrap_or(first)
}

/// A signal, as its reader waits for it.
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
