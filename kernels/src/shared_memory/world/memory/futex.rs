//! Half words on which threads of several processes sleep, and barriers in all of these processes: those of the system,
//! or in a model those of the module `loom`.

#[cfg(all(test, loom))]
pub(crate) use crate::shared_memory::loom::{Half, barrier, register, wait, wake};
#[cfg(not(all(test, loom)))]
pub(crate) use system::{Half, barrier, register, wait, wake};

#[cfg(not(all(test, loom)))]
mod system {
    use rustix::thread::{MembarrierCommand, futex, membarrier};

    use crate::sync::AtomicU32;

    pub(crate) type Half = AtomicU32;

    /// Wakes all threads that sleep on `half`. Its sleepers may be gone by now, which does no harm.
    #[inline]
    pub(crate) fn wake(half: &Half) {
        // Never private: the sleeper is in another process.
        _ = futex::wake(half, futex::Flags::empty(), i32::MAX as u32);
    }

    /// Sleeps if `half` has the value `heard`, until a wake-up, for `nanoseconds` at most; or wakes without a reason.
    #[inline]
    pub(crate) fn wait(half: &Half, heard: u32, nanoseconds: i64) {
        let limit = futex::Timespec { tv_sec: 0, tv_nsec: nanoseconds };
        // The caller checks its condition again after every kind of wake-up.
        _ = futex::wait(half, futex::Flags::empty(), heard, Some(&limit));
    }

    /// Has the threads of this process take part in the barriers of all other processes; returns whether the system
    /// allows it.
    pub(crate) fn register() -> bool {
        membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
    }

    /// Makes a barrier in every running thread of every registered process; no barrier where the system refuses it, as
    /// it then also refuses [`register`].
    pub(crate) fn barrier() {
        _ = membarrier(MembarrierCommand::GlobalExpedited);
    }
}
