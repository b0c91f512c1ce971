//! The identity of a schedule: everything but where its statements stand.

use std::hash::{Hash, Hasher};

use super::Schedule;

/// A 128-bit hash of the schedule's content, stable within a process.
pub fn content(schedule: &Schedule) -> u128 {
    let mut hasher = Wide([0x6A09_E667_F3BC_C908, 0xBB67_AE85_84CA_A73B]);
    schedule.algorithm.hash(&mut hasher);
    (schedule.collective, schedule.nranks, schedule.root).hash(&mut hasher);
    schedule.out_of_place.hash(&mut hasher);
    (&schedule.scratch, &schedule.lanes).hash(&mut hasher);
    (&schedule.regions, &schedule.channels).hash(&mut hasher);
    for stream in &schedule.streams {
        let words = [stream.rank.0, stream.index, stream.first.0, stream.len];
        for word in words {
            hasher.write_u32(word);
        }
    }
    for op in &schedule.ops {
        let shape = u32::from_le_bytes([op.kind as u8, op.srcs, op.dsts, op.finish.into()]);
        hasher.write_u64(u64::from(shape) << 32 | u64::from(op.arg));
        hasher.write_u32(op.at.0);
    }
    for operand in &schedule.operands {
        hasher.write_u64(u64::from(operand.rank.0) << 32 | u64::from(operand.region.0));
    }
    u128::from(hasher.0[0]) << 64 | u128::from(hasher.0[1])
}

/// Two chains of 64-bit words in one pass, each folded through a product of 128 bits. There is no secret in
/// it: whoever wants two schedules of his to be taken for each other fools nobody else.
struct Wide([u64; 2]);

impl Hasher for Wide {
    fn finish(&self) -> u64 {
        self.0[0]
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
        self.write_u64(bytes.len() as u64);
    }

    fn write_u64(&mut self, word: u64) {
        let keys = [0x9E37_79B9_7F4A_7C15_u64, 0xD6E8_FEB8_6659_FD93];
        for (chain, key) in self.0.iter_mut().zip(keys) {
            // The sum keeps a word that cancels the chain from erasing what came before.
            let product = u128::from(*chain ^ word) * u128::from(key);
            *chain = chain.rotate_left(29).wrapping_add(product as u64 ^ (product >> 64) as u64);
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(u64::from(word));
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}
