//! Half words on which threads of several processes sleep, and barriers in all of these: the system's, or in a model what
//! stands in for them there.

#[cfg(all(test, loom))]
pub(super) use super::loom::{Half, barrier, register, wait, wake};
#[cfg(not(all(test, loom)))]
pub(super) use system::{Half, barrier, register, wait, wake};

#[cfg(not(all(test, loom)))]
mod system {
    use rustix::thread::{MembarrierCommand, futex, membarrier};

    use crate::sync::AtomicU32;

    pub(in crate::shared_memory) type Half = AtomicU32;

    /// Wakes all that sleep on it. They may be gone by now, which is no harm.
    #[inline]
    pub(in crate::shared_memory) fn wake(half: &Half) {
        // Never private: the sleeper is another process.
        _ = futex::wake(half, futex::Flags::empty(), i32::MAX as u32);
    }

    /// Sleeps if it is what was heard, until it is woken or after so many nanoseconds; or it wakes for nothing.
    #[inline]
    pub(in crate::shared_memory) fn wait(half: &Half, heard: u32, nanoseconds: i64) {
        let limit = futex::Timespec { tv_sec: 0, tv_nsec: nanoseconds };
        // Whatever ends it, the caller looks again.
        _ = futex::wait(half, futex::Flags::empty(), heard, Some(&limit));
    }

    /// Has this process's threads meet the barriers of all others; whether it can.
    pub(in crate::shared_memory) fn register() -> bool {
        membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok()
    }

    /// A barrier in every running thread of every process that is registered; none where that is refused, as it is to
    /// [`register`] there.
    pub(in crate::shared_memory) fn barrier() {
        _ = membarrier(MembarrierCommand::GlobalExpedited);
    }
}
