//! Reads of a peer's chunk into a chunk of another number. The executor's `get` swaps the numbers of the two sides, so
//! the peer puts the chunk instead: a block of the peer waits for a request, puts the chunk, and signals.

use std::collections::BTreeMap;

use super::execution_plan::{Chunk, Data};

/// The reads of one stream from one peer, in order.
pub(super) struct Pull {
    /// The number of the channel for request and answer, among the channels for pulls between the two ranks.
    pub(super) ordinal: u32,
    pub(super) client: u32,
    pub(super) puts: Vec<Data>,
}

/// All pulls, by the reading stream and the peer.
#[derive(Default)]
pub(super) struct Pulls {
    of: BTreeMap<(usize, u32), Pull>,
    counts: BTreeMap<(u32, u32), u32>,
}

/// Returns the source and the destination of a `get` whose chunk numbers the executor would swap.
pub(super) fn mixed_up(data: &Data) -> Option<(Chunk, Chunk)> {
    match (data.name, &data.srcs[..], &data.dsts[..]) {
        ("get", [src], [dst]) if src.index != dst.index => Some((*src, *dst)),
        _ => None,
    }
}

impl Pulls {
    /// Adds a read of a stream.
    pub(super) fn add(&mut self, stream: usize, (src, dst): (Chunk, Chunk)) {
        let (server, client) = (src.rank, dst.rank);
        let pull = self.of.entry((stream, server)).or_insert_with(|| {
            let count = self.counts.entry(pair(client, server)).or_default();
            *count += 1;
            Pull { ordinal: *count - 1, client, puts: Vec::new() }
        });
        pull.puts.push(Data { name: "put", srcs: vec![src], dsts: vec![dst] });
    }

    /// Returns the number of channels for pulls between two ranks.
    pub(super) fn between(&self, one: u32, other: u32) -> u32 {
        self.counts.get(&pair(one, other)).copied().unwrap_or(0)
    }

    /// Returns the number of the channel for a stream's pulls from a peer.
    pub(super) fn ordinal(&self, stream: usize, server: u32) -> u32 {
        self.of.get(&(stream, server)).map_or(0, |pull| pull.ordinal)
    }

    /// Returns the pulls from a rank.
    pub(super) fn served_by(&self, rank: u32) -> impl Iterator<Item = &Pull> {
        self.of.iter().filter(move |((_, server), _)| *server == rank).map(|(_, pull)| pull)
    }
}

fn pair(one: u32, other: u32) -> (u32, u32) {
    (one.min(other), one.max(other))
}
