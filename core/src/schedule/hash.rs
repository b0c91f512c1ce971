//! The identity of a schedule: everything but where its statements stand.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Schedule;

/// A 128-bit hash of the schedule's content, stable within a process.
pub fn content(schedule: &Schedule) -> u128 {
    let half = |seed: u64| {
        let mut hasher = DefaultHasher::new();
        seed.hash(&mut hasher);
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
        hasher.finish()
    };
    u128::from(half(0)) << 64 | u128::from(half(1))
}
