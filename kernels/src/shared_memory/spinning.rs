//! Whether a rank that waits spins: adapted to what came of it.

use std::sync::atomic::{AtomicU32, Ordering};

/// Spins in vain after which a rank takes it that the others have no core while it spins.
const VAIN: u32 = 4;
/// Waits until it tries again.
const SKIPPED: u32 = 64;

/// Whether spinning pays, as far as the last waits tell: ranks may have a core each, and other programs may be there.
#[derive(Default)]
pub(super) struct Spinning {
    /// Spins in vain one after the other, and then waits without.
    vain: AtomicU32,
}

impl Spinning {
    pub(super) fn is_worth(&self) -> bool {
        let vain = self.vain.load(Ordering::Relaxed);
        if vain < VAIN {
            return true;
        }
        let next = if vain < VAIN + SKIPPED { vain + 1 } else { VAIN - 1 };
        self.vain.store(next, Ordering::Relaxed);
        false
    }

    pub(super) fn paid(&self) {
        self.vain.store(0, Ordering::Relaxed);
    }

    pub(super) fn was_vain(&self) {
        // Threads of a rank that do this at once lose a count, which is no harm.
        self.vain.store(self.vain.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(loom)))]
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
