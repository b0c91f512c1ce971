//! Faults that tests of failures inject into a rank in the middle of a call, and checks in a forked child of a rank.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::shared_memory::meet::system;

/// A fault that a rank suffers at a place of a call.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The process ends by SIGKILL.
    Kill,
    /// The process stops by SIGSTOP, until another process continues it.
    Stop,
    /// The process exits with code 3, without a word to other ranks.
    Exit,
    Panic,
    /// The rank sleeps for the given milliseconds.
    Late(u64),
    /// The byte at this place of the rank's output has another bit when the call ends, whatever the place in the call.
    Flip(usize),
}

/// A fault that is to happen, and its place.
pub(crate) struct Faults {
    /// The number of the call and the place, or 0 for no fault: the first call is 1.
    at: AtomicU64,
    due: std::sync::Mutex<Option<Due>>,
}

/// A function that runs first, so that the test knows the time, and the fault that follows.
#[derive(Clone, Copy)]
struct Due {
    first: fn(),
    what: Fault,
}

const PLACES: u32 = 32;

/// The place of a fault at the end of a call.
const FLIPS: u64 = (1 << PLACES) - 1;

impl Faults {
    pub(crate) fn new() -> Self {
        Self { at: AtomicU64::new(0), due: std::sync::Mutex::new(None) }
    }

    /// Sets the fault `what` at place `place` of call `number`, right after `first`. Places are counted from 0.
    pub(crate) fn set(&self, number: u64, place: u32, first: fn(), what: Fault) {
        *self.due.lock().expect("no test panics here") = Some(Due { first, what });
        let place = if matches!(what, Fault::Flip(_)) { FLIPS } else { u64::from(place) };
        self.at.store(number << PLACES | place, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn happen(&self, number: u64, place: u32) {
        let at = self.at.load(Ordering::Relaxed);
        if at != 0 && at == number << PLACES | u64::from(place) {
            self.now();
        }
    }

    #[cold]
    fn now(&self) {
        self.at.store(0, Ordering::Relaxed);
        let due = *self.due.lock().expect("no test panics here");
        let what = due.map(|Due { first, what }| {
            first();
            what
        });
        match what {
            Some(Fault::Kill) => system::kill(),
            Some(Fault::Stop) => system::stop(),
            Some(Fault::Exit) => std::process::exit(3),
            Some(Fault::Panic) => panic!("an injected fault"),
            Some(Fault::Late(milliseconds)) => {
                std::thread::sleep(Duration::from_millis(milliseconds));
            }
            Some(Fault::Flip(_)) | None => {}
        }
    }

    /// Changes a bit of the output of call `number` if that fault is due.
    ///
    /// # Safety
    /// The output has `len` bytes, which only this thread uses.
    #[inline]
    pub(crate) unsafe fn flip(&self, number: u64, output: *mut u8, len: usize) {
        if self.at.load(Ordering::Relaxed) == number << PLACES | FLIPS {
            let due = self.due.lock().expect("no test panics here").take();
            if let Some(Due { what: Fault::Flip(byte), .. }) = due
                && byte < len
            {
                // SAFETY: the caller's promise.
                unsafe { *output.add(byte) ^= 1 };
            }
        }
    }
}

/// Runs `check` in a forked child of this process, which then ends: for tests.
///
/// # Errors
/// The system's error if the child does not start, or an error if `check` fails.
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub fn in_a_fork(
    mut check: impl FnMut() -> Result<(), String> + Send + Sync + 'static,
) -> std::io::Result<()> {
    use std::os::unix::process::CommandExt as _;

    let mut command = std::process::Command::new("true");
    // SAFETY: the closure runs in the child between fork and exec. It allocates little; another thread can hold the
    // allocator's lock at the fork only by chance, and glibc handles that case.
    unsafe {
        command.pre_exec(move || {
            check().map_err(|what| {
                // Only an error number comes back from the child.
                eprintln!("in the child: {what}");
                std::io::Error::from_raw_os_error(1)
            })
        });
    }
    if command.status()?.success() { Ok(()) } else { Err(std::io::Error::other("`true` failed")) }
}
