//! Events by time. The events of one instant are kept together: ranks with equal work do it at equal times.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The number of recent times that are remembered to find their events.
const RECENT: usize = 256;
/// Marks an empty place.
const NEVER: u64 = u64::MAX;

/// A queue of events, earliest first; within an instant in the order of pushes.
pub(super) struct Queue<E> {
    /// Times, none of them negative, so they order as their bits do, and the place of their events.
    times: BinaryHeap<Reverse<(u64, u32)>>,
    instants: Vec<Vec<E>>,
    free: Vec<u32>,
    recent: [(u64, u32); RECENT],
}

impl<E> Queue<E> {
    pub(super) fn new() -> Self {
        Self {
            times: BinaryHeap::new(),
            instants: Vec::new(),
            free: Vec::new(),
            recent: [(NEVER, 0); RECENT],
        }
    }

    pub(super) fn push(&mut self, time: f64, event: E) {
        let bits = time.to_bits();
        let recent = &mut self.recent[slot(bits)];
        if recent.0 != bits {
            let instant = self.free.pop().unwrap_or_else(|| {
                self.instants.push(Vec::new());
                self.instants.len() as u32 - 1
            });
            *recent = (bits, instant);
            self.times.push(Reverse((bits, instant)));
        }
        self.instants[recent.1 as usize].push(event);
    }

    /// Returns the earliest time.
    pub(super) fn next(&self) -> Option<f64> {
        self.times.peek().map(|Reverse((bits, _))| f64::from_bits(*bits))
    }

    /// Removes the earliest time and returns it, with its events in `events`, whose old content is dropped.
    pub(super) fn pop(&mut self, events: &mut Vec<E>) -> Option<f64> {
        let Reverse((bits, instant)) = self.times.pop()?;
        events.clear();
        std::mem::swap(&mut self.instants[instant as usize], events);
        self.free.push(instant);
        let recent = &mut self.recent[slot(bits)];
        if *recent == (bits, instant) {
            *recent = (NEVER, 0);
        }
        Some(f64::from_bits(bits))
    }
}

fn slot(bits: u64) -> usize {
    (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as usize % RECENT
}
