//! The identity of a schedule: everything except the places of its statements and the demands on it.

use sha2::{Digest as _, Sha256};

use super::{Buffer, Schedule};
use crate::rational::Rat;

/// The SHA-256 digest of a schedule's content. No known method makes two different schedules with one digest, so a
/// proof may be looked up by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ContentDigest([u8; 32]);

impl ContentDigest {
    /// Returns the digest's bytes.
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The number of words that are handed to the digest at once.
const BLOCK: usize = 1 << 10;

/// Returns the digest of everything that a proof of `schedule` depends on.
pub fn content(schedule: &Schedule) -> ContentDigest {
    let Schedule {
        algorithm,
        collective,
        nranks,
        root,
        out_of_place,
        multiple,
        scratch,
        streams,
        ops,
        operands,
        regions,
        channels,
        lanes,
        elements,
        file: _,
        locations: _,
        origins: _,
        demands: _,
    } = schedule;
    let mut words = HashWords { digest: Sha256::new(), block: Vec::with_capacity(8 * BLOCK) };
    words.text(algorithm);
    words.text(collective.name());
    words.all([u64::from(*nranks), u64::from(root.0), u64::from(*out_of_place), *multiple]);
    // Each table begins with its length, so no table can be taken for the end of its predecessor.
    words.one(scratch.len() as u64);
    for scratch in scratch {
        words.text(&scratch.name);
        words.one(u64::from(scratch.slots));
        words.rat(scratch.width);
        words.one(u64::from(scratch.wide));
    }
    if let Some(lengths) = elements {
        words.all(lengths.input.iter().chain(&lengths.output).copied());
        words.all(lengths.in_place.iter().flat_map(|(input, output)| [*input, *output]));
    }
    words.one(streams.len() as u64);
    for stream in streams {
        words.all([stream.rank.0, stream.index, stream.first.0, stream.len].map(u64::from));
    }
    words.one(ops.len() as u64);
    for op in ops {
        let flags = u8::from(op.finish) | u8::from(op.chain) << 1 | u8::from(op.switch) << 2;
        let shape = u32::from_le_bytes([op.kind as u8, op.srcs, op.dsts, flags]);
        words.all([u64::from(shape) << 32 | u64::from(op.arg), u64::from(op.at.0)]);
    }
    words.one(operands.len() as u64);
    for operand in operands {
        words.one(u64::from(operand.rank.0) << 32 | u64::from(operand.region.0));
    }
    words.one(regions.len() as u64);
    for region in regions {
        let buffer = match region.buffer {
            Buffer::Input => 0,
            Buffer::Output => 1,
            Buffer::Scratch(id) => 2 + id.index() as u64,
        };
        words.all([buffer, u64::from(region.slot)]);
        for at in [region.base, region.lo, region.hi] {
            words.rat(at);
        }
    }
    words.one(channels.len() as u64);
    for channel in channels {
        words.one(u64::from(channel.from.0) << 32 | u64::from(channel.to.0));
        words.one((channel.kind as u64) << 32 | u64::from(channel.lane.0));
    }
    words.one(lanes.len() as u64);
    for lane in lanes {
        words.one(lane.len() as u64);
        words.all(lane.iter().map(|value| *value as u64));
    }
    words.digest.update(&words.block);
    ContentDigest(words.digest.finalize().into())
}

/// A digest of words, which takes them in blocks.
struct HashWords {
    digest: Sha256,
    block: Vec<u8>,
}

impl HashWords {
    fn one(&mut self, word: u64) {
        if self.block.len() == 8 * BLOCK {
            self.digest.update(&self.block);
            self.block.clear();
        }
        self.block.extend_from_slice(&word.to_le_bytes());
    }

    fn all(&mut self, words: impl IntoIterator<Item = u64>) {
        words.into_iter().for_each(|word| self.one(word));
    }

    fn rat(&mut self, rat: Rat) {
        self.all([rat.num(), rat.den()]);
    }

    fn text(&mut self, text: &str) {
        self.one(text.len() as u64);
        self.all(text.bytes().map(u64::from));
    }
}
