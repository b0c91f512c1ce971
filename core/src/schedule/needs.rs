//! The resources that a schedule takes from a machine: scratch, streams and signal counters, as an executor must
//! provide them.

use std::collections::BTreeMap;

use super::{OpKind, Schedule};
use crate::ids::{ChannelId, OpId, RankId};
use crate::rational::Rat;

/// The most of each resource that any rank, or any pair of ranks, needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Scratch of a rank, in units of the count; `None` beyond 64 bits.
    pub scratch: Option<Rat>,
    /// Streams of a rank, including its main stream.
    pub streams: u32,
    /// The first op of a rank's last stream, where some rank has more than its main stream.
    pub last_stream: Option<OpId>,
    /// Counters for the signals from one rank to another.
    pub notifies: u32,
    /// The first post on the last of these counters, with its two ranks.
    pub last_notify: Option<(OpId, RankId, RankId)>,
    /// Counters between the streams of a rank: for each stream but the main one, a counter for its start and one for
    /// its end.
    pub joins: u32,
}

impl Schedule {
    /// Returns the amount of each resource that this schedule takes.
    pub fn needs(&self) -> Needs {
        let mut sizes = self
            .scratch
            .iter()
            .map(|s| Rat::new(s.width.num().checked_mul(u64::from(s.slots))?, s.width.den()));
        let scratch = sizes.try_fold(Rat::ZERO, |sum, size| sum.plus(size?));
        let widest = self.streams.iter().max_by_key(|s| s.index);
        let mut pairs: BTreeMap<(RankId, RankId), Vec<ChannelId>> = BTreeMap::new();
        for (id, channel) in self.channels.iter().enumerate() {
            if channel.from != channel.to {
                let pair = pairs.entry((channel.from, channel.to)).or_default();
                pair.push(ChannelId(id as u32));
            }
        }
        // The first of the busiest pairs, so that every run reports one pair.
        let busiest = pairs.iter().rev().max_by_key(|(_, channels)| channels.len());
        let last_notify = busiest.and_then(|((from, to), channels)| {
            let last = channels.last()?;
            let post = |op: &super::Op| op.kind == OpKind::Post && op.arg == last.0;
            let op = self.ops.iter().position(post)?;
            Some((OpId(op as u32), *from, *to))
        });
        let streams = widest.map_or(1, |s| s.index + 1);
        Needs {
            scratch,
            streams,
            last_stream: widest.filter(|s| s.index > 0 && s.len > 0).map(|s| s.first),
            notifies: busiest.map_or(0, |(_, channels)| channels.len() as u32),
            last_notify,
            joins: 2 * (streams - 1),
        }
    }
}
