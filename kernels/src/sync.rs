//! The primitives under the signals and the parking: those of the standard library, or of loom when the protocols are
//! model-checked.

#[cfg(all(test, loom))]
pub(crate) use loom::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
};
#[cfg(not(all(test, loom)))]
pub(crate) use std::sync::{
    Condvar, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence},
};

/// Whether loom checks the protocols in all interleavings: then windows and tiles are small, so that a few calls use
/// each place again, time does not pass, and no process looks from outside.
pub(crate) const MODELLED: bool = cfg!(all(test, loom));

/// A value alone in its cache line.
#[repr(align(64))]
pub(crate) struct Padded<T>(pub(crate) T);

/// Locks a mutex, also after a panic: the data under these mutexes is valid at every step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Lets other threads run for a while, where a wakeup is not worth its cost.
pub(crate) fn pause() {
    #[cfg(not(all(test, loom)))]
    std::thread::sleep(std::time::Duration::from_micros(50));
    #[cfg(all(test, loom))]
    loom::thread::yield_now();
}

/// Spins for a moment, no longer than falling asleep and being woken takes; returns whether `done` came true.
#[cfg(not(all(test, loom)))]
pub(crate) fn spin(done: impl Fn() -> bool) -> bool {
    /// Checks of `done` between two looks at the clock.
    const LOOKS: u32 = 64;
    let mut since = None;
    loop {
        for _ in 0..LOOKS {
            if done() {
                return true;
            }
            std::hint::spin_loop();
        }
        if since.get_or_insert_with(std::time::Instant::now).elapsed() > SPIN {
            return false;
        }
    }
}

/// Yields to other threads for as long as that is cheaper than to sleep and be woken; returns whether `done` came true.
/// With more threads than cores, the awaited thread may need a turn.
#[cfg(not(all(test, loom)))]
pub(crate) fn take_turns(done: impl Fn() -> bool) -> bool {
    /// Turns between two looks at the clock.
    const TURNS: u32 = 32;
    let since = std::time::Instant::now();
    loop {
        for _ in 0..TURNS {
            if done() {
                return true;
            }
            std::thread::yield_now();
        }
        if since.elapsed() > AWAKE {
            return false;
        }
    }
}

/// The time for which turns are cheaper than sleep.
#[cfg(not(all(test, loom)))]
const AWAKE: std::time::Duration = std::time::Duration::from_millis(2);

#[cfg(all(test, loom))]
pub(crate) fn take_turns(done: impl Fn() -> bool) -> bool {
    done()
}

/// The time that a futex takes to put a thread to sleep and to wake it, several times over.
#[cfg(not(all(test, loom)))]
const SPIN: std::time::Duration = std::time::Duration::from_micros(50);

/// Checks `done` once: the model checker tries all interleavings anyway.
#[cfg(all(test, loom))]
pub(crate) fn spin(done: impl Fn() -> bool) -> bool {
    done()
}
