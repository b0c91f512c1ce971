//! The core that a helper runs on, where its run fixes it.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps the calling thread on one core: number `core` of the cores that it may use, counted from 0 and around.
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
    /// The cores that the thread had before it was kept on one core.
    all: Option<CpuSet>,
}

impl Affinity {
    /// Moves the thread to the `core`-th core that it may use, or back to all of its cores. Where the system refuses,
    /// the thread stays where the system puts it: that is slower at worst.
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
        // Where the system refuses, the thread stays where it is.
        _ = sched_setaffinity(None, &wanted);
    }
}

#[cfg(test)]
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
