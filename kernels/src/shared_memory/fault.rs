//! What tests of failures have a rank do in the middle of a call, and what they do in a process that is forked off it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

/// What a rank does to itself at a place of a call.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Ends by SIGKILL.
    Kill,
    /// Stops by SIGSTOP, until somebody has it go on.
    Stop,
    /// Exits with code 3, and says nothing to anybody.
    Exit,
    Panic,
    /// Comes so many milliseconds late.
    Late(u64),
}

/// A fault that is to happen, and where.
pub(super) struct Faults {
    /// The call and the place, or 0: the first call is 1.
    at: AtomicU64,
    due: std::sync::Mutex<Option<Due>>,
}

/// What a test wants done first, to know when it was, and what happens then.
#[derive(Clone, Copy)]
struct Due {
    first: fn(),
    what: Fault,
}

const PLACES: u32 = 32;

impl Faults {
    pub(super) fn new() -> Self {
        Self { at: AtomicU64::new(0), due: std::sync::Mutex::new(None) }
    }

    /// Has `what` happen at that place of call `number`, places counted from 0, right after `first`.
    pub(super) fn set(&self, number: u64, place: u32, first: fn(), what: Fault) {
        *self.due.lock().expect("no test panics here") = Some(Due { first, what });
        self.at.store(number << PLACES | u64::from(place), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn happen(&self, number: u64, place: u32) {
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
            Some(Fault::Kill) => _ = kill_process(getpid(), Signal::KILL),
            Some(Fault::Stop) => {
                _ = kill_process(getpid(), Signal::STOP);
                // Another thread may be the one that takes the signal, when it gets a core.
                std::thread::sleep(Duration::from_millis(200));
            }
            Some(Fault::Exit) => std::process::exit(3),
            Some(Fault::Panic) => panic!("an injected fault"),
            Some(Fault::Late(milliseconds)) => {
                std::thread::sleep(Duration::from_millis(milliseconds));
            }
            None => {}
        }
    }
}

/// Forks this process off, and returns what `check` returned in the child, which then ends: for tests.
///
/// # Errors
/// What the system says of a process that does not start, or `check` of what is wrong.
#[doc(hidden)]
pub fn in_a_fork(
    mut check: impl FnMut() -> Result<(), String> + Send + Sync + 'static,
) -> std::io::Result<()> {
    use std::os::unix::process::CommandExt as _;

    let mut command = std::process::Command::new("true");
    // SAFETY: the closure runs in the child between fork and exec; it allocates little, in a process of which no other
    // thread holds the allocator's lock but by chance, which glibc sees to.
    unsafe {
        command.pre_exec(move || {
            check().map_err(|what| {
                // Only a number comes back from there.
                eprintln!("in the child: {what}");
                std::io::Error::from_raw_os_error(1)
            })
        });
    }
    if command.status()?.success() { Ok(()) } else { Err(std::io::Error::other("`true` failed")) }
}
