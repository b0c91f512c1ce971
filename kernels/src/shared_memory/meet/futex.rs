//! Sleep of threads of several processes on half words, and barriers in all of these processes.

use std::sync::atomic::AtomicU32;

use rustix::thread::{MembarrierCommand, futex, membarrier};

/// Wakes all threads that sleep on `half`. Its sleepers may be gone by now, which does no harm.
#[inline]
pub(crate) fn wake(half: &AtomicU32) {
    // Never private: the sleeper is in another process.
    _ = futex::wake(half, futex::Flags::empty(), i32::MAX as u32);
}

/// Sleeps if `half` has the value `heard`, until a wake-up, for `nanoseconds` at most; or wakes without a reason.
#[inline]
pub(crate) fn wait(half: &AtomicU32, heard: u32, nanoseconds: i64) {
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
