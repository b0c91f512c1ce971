//! Events by time. Those of one instant are kept together: ranks that do alike do it at once.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Times that are remembered to find their events by.
const RECENT: usize = 256;
/// No time.
const NEVER: u64 = u64::MAX;

/// A queue of events, earliest first, and as they came within an instant.
pub(super) struct Queue<E> {
    /// Times, none of them negative, which order as their bits do, and where their events are.
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

    /// The earliest time.
    pub(super) fn next(&self) -> Option<f64> {
        self.times.peek().map(|Reverse((bits, _))| f64::from_bits(*bits))
    }

    /// The earliest time, and its events in place of what is in `events`.
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
