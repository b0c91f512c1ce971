//! The resources that a schedule uses of a framework of streams, notifies and links, by its ops.

use std::collections::BTreeSet;

use crate::ids::RankId;
use crate::schedule::{Buffer, OpKind, Schedule};
use crate::topology::Topology;
use roundelay_topology::NodeId;

/// The resources that an executor uses of a framework. Each number is the most that any rank uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Streams beside the main one.
    pub slave_streams: u32,
    /// Notifies between the streams of a rank: one each way for every slave.
    pub notifies: u32,
    /// Signals from one rank to another that a link must keep apart.
    pub link_notifies: u32,
    /// Links that data or signals use, in order.
    pub links: BTreeSet<ExecutorLink>,
    /// Memory that peers touch.
    pub exposed: Exposed,
}

/// A use of the connection between two ranks, in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExecutorLink {
    /// 0 within an island (a machine, a leaf), 1 between islands.
    pub level: u32,
    /// The rank that touches the other's memory, or signals it.
    pub from: RankId,
    /// The rank whose memory is touched, or that is signalled.
    pub to: RankId,
}

/// The memory of a rank that is exposed to its peers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exposed {
    /// Whether peers touch the input, or the CCL buffer in its place.
    pub input: bool,
    /// Whether peers touch the output, or the CCL buffer in its place.
    pub output: bool,
    /// Whether peers touch scratch.
    pub scratch: bool,
}

impl Needs {
    /// Returns the resources that a run of `schedule` uses on `topology`.
    pub fn new(schedule: &Schedule, topology: &Topology) -> Self {
        let taken = schedule.needs();
        let mut needs = Self {
            slave_streams: taken.streams - 1,
            notifies: taken.joins,
            link_notifies: taken.notifies,
            ..Self::default()
        };
        let group = |rank: RankId| topology.nodes()[NodeId::from(rank).index()].group;
        for stream in &schedule.streams {
            let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
            for op in ops {
                let mut touch = |peer: RankId| {
                    if peer != stream.rank {
                        let level = u32::from(group(stream.rank) != group(peer));
                        needs.links.insert(ExecutorLink { level, from: stream.rank, to: peer });
                    }
                };
                if op.kind != OpKind::Move {
                    let channel = schedule.channel(op);
                    touch(if op.kind == OpKind::Post { channel.to } else { channel.from });
                    continue;
                }
                for operand in schedule.operands_of(op) {
                    touch(operand.rank);
                    if operand.rank != stream.rank {
                        match schedule.region(*operand).buffer {
                            Buffer::Input => needs.exposed.input = true,
                            Buffer::Output => needs.exposed.output = true,
                            Buffer::Scratch(_) => needs.exposed.scratch = true,
                        }
                    }
                }
            }
        }
        needs
    }

    /// Returns the resources that are enough for both classes.
    pub(super) fn with(mut self, other: Self) -> Self {
        self.slave_streams = self.slave_streams.max(other.slave_streams);
        self.notifies = self.notifies.max(other.notifies);
        self.link_notifies = self.link_notifies.max(other.link_notifies);
        self.links.extend(other.links);
        self.exposed.input |= other.exposed.input;
        self.exposed.output |= other.exposed.output;
        self.exposed.scratch |= other.exposed.scratch;
        self
    }

    /// The largest number of peers of a rank.
    pub fn links_of_a_rank(&self) -> u32 {
        let last = self.links.iter().map(|link| link.from.index()).max();
        let mut peers = vec![0; last.map_or(0, |last| last + 1)];
        for link in &self.links {
            peers[link.from.index()] += 1;
        }
        peers.into_iter().max().unwrap_or(0)
    }

    /// The number of levels that the links are on.
    pub fn levels(&self) -> u32 {
        self.links.iter().map(|link| link.level + 1).max().unwrap_or(0)
    }
}
