//! What tests of failures have a rank do in the middle of a call.

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
    what: std::sync::Mutex<Option<Fault>>,
}

const PLACES: u32 = 32;

impl Faults {
    pub(super) fn new() -> Self {
        Self { at: AtomicU64::new(0), what: std::sync::Mutex::new(None) }
    }

    /// Has `what` happen at that place of call `number`, places counted from 0.
    pub(super) fn set(&self, number: u64, place: u32, what: Fault) {
        *self.what.lock().expect("no test panics here") = Some(what);
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
        let what = *self.what.lock().expect("no test panics here");
        match what {
            Some(Fault::Kill) => _ = kill_process(getpid(), Signal::KILL),
            Some(Fault::Stop) => _ = kill_process(getpid(), Signal::STOP),
            Some(Fault::Exit) => std::process::exit(3),
            Some(Fault::Panic) => panic!("an injected fault"),
            Some(Fault::Late(milliseconds)) => {
                std::thread::sleep(Duration::from_millis(milliseconds));
            }
            None => {}
        }
    }
}
