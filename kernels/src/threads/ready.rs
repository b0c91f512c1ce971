//! The streams that can go on: a stack for each worker, all linked through one table. A stream is in at most one stack,
//! so pushing never allocates and never fails; a worker whose own stack is empty takes from other stacks.

use crate::sync::{AtomicU32, AtomicU64, Ordering, Padded};

/// Treiber stacks of stream numbers. The high half of a head counts the changes of the head: so a head that was changed
/// and changed back is not mistaken for an unchanged head.
pub(super) struct Ready {
    heads: Box<[Padded<AtomicU64>]>,
    /// For each stream: one more than the number of the stream below it, or 0.
    below: Box<[AtomicU32]>,
}

const ONE_CHANGE: u64 = 1 << 32;

fn changed(head: u64, top: u32) -> u64 {
    (head & !(ONE_CHANGE - 1)).wrapping_add(ONE_CHANGE) | u64::from(top)
}

impl Ready {
    pub(super) fn new(workers: u32, streams: u32) -> Self {
        Self {
            heads: (0..workers).map(|_| Padded(AtomicU64::new(0))).collect(),
            below: (0..streams).map(|_| AtomicU32::new(0)).collect(),
        }
    }

    /// Adds a stream, which the caller owns, to the stack of `worker`.
    pub(super) fn push(&self, worker: u32, stream: u32) {
        let head = &self.heads[worker as usize].0;
        let mut now = head.load(Ordering::Relaxed);
        loop {
            self.below[stream as usize].store(now as u32, Ordering::Relaxed);
            let next = changed(now, stream + 1);
            match head.compare_exchange_weak(now, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => return,
                Err(seen) => now = seen,
            }
        }
    }

    /// Takes a stream, from the stack of `worker` if it has one; the stream then belongs to the caller.
    pub(super) fn take(&self, worker: u32) -> Option<u32> {
        let workers = self.heads.len();
        (0..workers).find_map(|i| self.pop((worker as usize + i) % workers))
    }

    fn pop(&self, worker: usize) -> Option<u32> {
        let head = &self.heads[worker].0;
        let mut now = head.load(Ordering::Acquire);
        loop {
            let top = (now as u32).checked_sub(1)?;
            // Another worker may take `top` and push it elsewhere meanwhile; then the exchange fails.
            let below = self.below[top as usize].load(Ordering::Relaxed);
            match head.compare_exchange_weak(
                now,
                changed(now, below),
                Ordering::AcqRel,
                Ordering::Acquire,
            ) {
                Ok(_) => return Some(top),
                Err(seen) => now = seen,
            }
        }
    }

    /// Whether any stream is ready.
    pub(super) fn any(&self) -> bool {
        self.heads.iter().any(|head| head.0.load(Ordering::Relaxed) as u32 != 0)
    }

    /// Whether a stream of this worker is ready.
    pub(super) fn has(&self, worker: u32) -> bool {
        self.heads[worker as usize].0.load(Ordering::Relaxed) as u32 != 0
    }

    /// Makes all streams ready, a block of neighbors for each of the first `workers` workers; only while no run is
    /// under way.
    pub(super) fn deal(&self, workers: u32) {
        for head in &self.heads {
            head.0.store(0, Ordering::Relaxed);
        }
        let streams = self.below.len() as u64;
        for stream in (0..self.below.len() as u32).rev() {
            let worker = u64::from(stream) * u64::from(workers) / streams;
            self.push(worker as u32, stream);
        }
    }
}
