//! Which core a helper runs on, where its run wants that fixed.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps the calling thread on one core: number `core` of those that it may use, counted from 0 and around.
///
/// The threads of ranks that call by themselves do this at their beginning, with their rank, as `mpirun` does with
/// its processes: otherwise two of them may share a core for a while and wait for each other. On Linux only; where
/// the system refuses, the thread stays where the system puts it.
pub fn stay_on_core(core: u32) {
    Affinity::default().go(Some(core));
}

/// The cores that the calling thread may run on.
#[derive(Default)]
pub(super) struct Affinity {
    core: Option<u32>,
    /// The cores that it had before it was put on one.
    all: Option<CpuSet>,
}

impl Affinity {
    /// Goes to the `core`-th core that this process may use, or back to all of them. Where the system refuses, the
    /// thread stays where the system puts it: that is slower at worst.
    pub(super) fn go(&mut self, core: Option<u32>) {
        if self.core != core {
            self.core = core;
            self.set();
        }
    }

    fn set(&mut self) {
        if self.all.is_none() {
            self.all = sched_getaffinity(None).ok();
        }
        let Some(all) = self.all else { return };
        let mut wanted = all;
        if let Some(core) = self.core {
            let mut allowed = (0..CpuSet::MAX_CPU).filter(|cpu| all.is_set(*cpu)).cycle();
            let Some(cpu) = allowed.nth(core as usize) else { return };
            wanted.clear();
            wanted.set(cpu);
        }
        // See above.
        _ = sched_setaffinity(None, &wanted);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use rustix::thread::sched_getaffinity;

    #[test]
    fn there_and_back() {
        let before = sched_getaffinity(None).expect("this thread's cores");
        let mut affinity = super::Affinity::default();
        affinity.go(Some(1));
        assert_eq!(sched_getaffinity(None).expect("one core").count(), 1);
        affinity.go(None);
        assert_eq!(sched_getaffinity(None).expect("all cores"), before);
    }
}
