//! The decision whether a waiting rank spins, adapted to the results of earlier spins.

use std::sync::atomic::{AtomicU32, Ordering};

/// Spins in vain after which a rank assumes that the other ranks have no core while it spins.
const VAIN: u32 = 4;
/// Waits without a spin before the rank tries again.
const SKIPPED: u32 = 64;

/// Whether spinning pays, by the results of the last waits: each rank may have a core of its own, but other programs
/// may use the cores.
#[derive(Default)]
pub(crate) struct Spinning {
    /// The number of spins in vain in a row, and then of waits without a spin.
    vain: AtomicU32,
}

impl Spinning {
    pub(crate) fn is_worth(&self) -> bool {
        let vain = self.vain.load(Ordering::Relaxed);
        if vain < VAIN {
            return true;
        }
        let next = if vain < VAIN + SKIPPED { vain + 1 } else { VAIN - 1 };
        self.vain.store(next, Ordering::Relaxed);
        false
    }

    pub(crate) fn paid(&self) {
        self.vain.store(0, Ordering::Relaxed);
    }

    pub(crate) fn was_vain(&self) {
        // Two threads of a rank that do this at one time lose a count, which does no harm.
        self.vain.store(self.vain.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_vain_is_tried_again_from_time_to_time() {
        let spinning = Spinning::default();
        let mut tries = Vec::new();
        for wait in 0..200 {
            if spinning.is_worth() {
                tries.push(wait);
                spinning.was_vain();
            }
        }
        assert_eq!(tries, [0, 1, 2, 3, 69, 135]);
        while !spinning.is_worth() {}
        spinning.paid();
        assert!((0..100).all(|_| spinning.is_worth()));
    }
}
