//! Which of many waits is to blame for a run that got stuck, and how a wait is named.

use roundelay_core::ids::{ChannelId, StreamId};
use roundelay_core::schedule::{Schedule, SignalKind};

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
    };
    match schedule.lanes.get(channel.lane.index()) {
        Some(lane) if !lane.is_empty() => {
            format!("{kind} from rank {} in lane {lane:?}", channel.from)
        }
        _ => format!("{kind} from rank {}", channel.from),
    }
}
