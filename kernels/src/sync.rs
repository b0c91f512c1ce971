//! The primitives under the signals and the parking: the standard library's, or loom's when the protocols
//! are model-checked.

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

/// A value alone in its cache line.
#[repr(align(64))]
pub(crate) struct Padded<T>(pub(crate) T);

/// Locks, also after a panic: what these locks guard is valid at every step.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Lets others run for a while, where it is not worth a bell.
pub(crate) fn pause() {
    #[cfg(not(all(test, loom)))]
    std::thread::sleep(std::time::Duration::from_micros(50));
    #[cfg(all(test, loom))]
    loom::thread::yield_now();
}

/// Waits for a moment, no longer than falling asleep and being woken takes; whether `done` came true.
#[cfg(not(all(test, loom)))]
pub(crate) fn spin(done: impl Fn() -> bool) -> bool {
    /// Looks at a time without a look at the clock.
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

/// Gives others their turns for as long as that is cheaper than to sleep and be woken; whether `done` came true. With more
/// threads than cores, the one that is waited for may need a turn.
#[cfg(not(all(test, loom)))]
pub(crate) fn take_turns(done: impl Fn() -> bool) -> bool {
    /// Turns without a look at the clock.
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

/// For so long turns are cheaper than sleep.
#[cfg(not(all(test, loom)))]
const AWAKE: std::time::Duration = std::time::Duration::from_millis(2);

#[cfg(all(test, loom))]
pub(crate) fn take_turns(done: impl Fn() -> bool) -> bool {
    done()
}

/// As long as a futex takes to put a thread to sleep and to wake it, several times over.
#[cfg(not(all(test, loom)))]
const SPIN: std::time::Duration = std::time::Duration::from_micros(50);

/// The model checker tries all interleavings anyway.
#[cfg(all(test, loom))]
pub(crate) fn spin(done: impl Fn() -> bool) -> bool {
    done()
}
