//! Reads of a peer's chunk into one of another number. The executor's `get` takes the number of each side for the other,
//! so the peer puts the chunk instead: a block of its own waits until it is asked, puts, and says so.

use std::collections::BTreeMap;

use super::plan::{Chunk, Data};

/// What a stream reads of a peer in this way, in its order.
pub(super) struct Pull {
    /// Which of the channels for such reads between the two ranks it asks on, and is told on.
    pub(super) ordinal: u32,
    pub(super) client: u32,
    pub(super) puts: Vec<Data>,
}

/// All such reads, by the stream that reads and the peer that it reads from.
#[derive(Default)]
pub(super) struct Pulls {
    of: BTreeMap<(usize, u32), Pull>,
    counts: BTreeMap<(u32, u32), u32>,
}

/// The source and the destination of a `get` that the executor would mix up.
pub(super) fn mixed_up(data: &Data) -> Option<(Chunk, Chunk)> {
    match (data.name, &data.srcs[..], &data.dsts[..]) {
        ("get", [src], [dst]) if src.index != dst.index => Some((*src, *dst)),
        _ => None,
    }
}

impl Pulls {
    /// One more read by a stream.
    pub(super) fn add(&mut self, stream: usize, (src, dst): (Chunk, Chunk)) {
        let (server, client) = (src.rank, dst.rank);
        let pull = self.of.entry((stream, server)).or_insert_with(|| {
            let count = self.counts.entry(pair(client, server)).or_default();
            *count += 1;
            Pull { ordinal: *count - 1, client, puts: Vec::new() }
        });
        pull.puts.push(Data { name: "put", srcs: vec![src], dsts: vec![dst] });
    }

    /// Channels for such reads between two ranks.
    pub(super) fn between(&self, one: u32, other: u32) -> u32 {
        self.counts.get(&pair(one, other)).copied().unwrap_or(0)
    }

    /// Which of these channels a stream uses for what it reads of a peer.
    pub(super) fn ordinal(&self, stream: usize, server: u32) -> u32 {
        self.of.get(&(stream, server)).map_or(0, |pull| pull.ordinal)
    }

    /// What others read of a rank.
    pub(super) fn served_by(&self, rank: u32) -> impl Iterator<Item = &Pull> {
        self.of.iter().filter(move |((_, server), _)| *server == rank).map(|(_, pull)| pull)
    }
}

fn pair(one: u32, other: u32) -> (u32, u32) {
    (one.min(other), one.max(other))
}
