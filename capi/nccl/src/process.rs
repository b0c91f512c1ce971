//! The state of the library in a process, and the report at its end.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use roundelay_interposer::{CallReport, REPORT, SaidOnce, at_exit, is_on, tell};

use crate::mode::is_alone;
use crate::name::Name;
use crate::real::{others, real};
use crate::why::Why;

/// The state of the library in a process.
pub(crate) struct Process {
    /// Whether calls are counted.
    reports: AtomicBool,
    calls: Mutex<CallReport<Name, Why>>,
    /// The lines about contests, in the order of their ends.
    decided: Mutex<Vec<String>>,
    /// The rank of this process in its first communicator; -1 before.
    rank: AtomicI32,
    /// Whether a function was called.
    called: AtomicBool,
    /// The line about a library that is not found.
    pub(crate) said: SaidOnce,
}

static PROCESS: Process = Process {
    reports: AtomicBool::new(false),
    calls: Mutex::new(CallReport::new()),
    decided: Mutex::new(Vec::new()),
    rank: AtomicI32::new(-1),
    called: AtomicBool::new(false),
    said: SaidOnce::new(),
};

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// Runs when the library is loaded.
extern "C" fn begin() {
    if is_on(REPORT) {
        PROCESS.reports.store(true, Ordering::Relaxed);
        at_exit(|| PROCESS.end());
    }
}

/// Returns the state of this process.
pub(crate) fn process() -> &'static Process {
    &PROCESS
}

impl Process {
    /// Notes that the program calls NCCL by this library.
    pub(crate) fn is_called(&self) {
        if self.reports.load(Ordering::Relaxed) && !self.called.load(Ordering::Relaxed) {
            self.called.store(true, Ordering::Relaxed);
        }
    }

    /// Notes the rank of this process in a new communicator.
    pub(crate) fn joins(&self, rank: i32) {
        _ = self.rank.compare_exchange(-1, rank, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Counts an operation that is passed on.
    pub(crate) fn passed(&self, name: Name, why: Why) {
        self.counts(|calls| calls.add_pass(name, why));
    }

    /// Counts an operation that was made here, by this algorithm, and the time of the host for it.
    pub(crate) fn took(&self, name: Name, algorithm: &str, time: Duration) {
        self.counts(|calls| calls.add_take(name, algorithm, time));
    }

    /// Counts an operation that is refused.
    pub(crate) fn refused(&self, name: Name) {
        self.counts(|calls| calls.add_failure(name));
    }

    /// Keeps the line about a contest that has ended.
    pub(crate) fn decided(&self, line: String) {
        if self.reports.load(Ordering::Relaxed) {
            self.decided.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    }

    fn counts(&self, count: impl FnOnce(&mut CallReport<Name, Why>)) {
        if self.reports.load(Ordering::Relaxed) {
            count(&mut self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Prints the report: for all ranks by rank 0, and in a process that passes this library by.
    fn end(&self) {
        if !self.called.load(Ordering::Relaxed) {
            if let Some(other) = others().first() {
                let path = other.path().display();
                tell(format_args!(
                    "roundelay: no call of NCCL came through the library: the program opened {path} itself; `roundelay ncclrun --audit` catches that\n"
                ));
            }
            return;
        }
        if self.rank.load(Ordering::Relaxed) > 0 {
            return;
        }
        let calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        let nothing = "roundelay: no operation of NCCL was called\n";
        let nothing = if calls.is_empty() { nothing } else { "" };
        let behind = match real() {
            _ if is_alone() => "no NCCL: its communicators are worlds of their own".to_owned(),
            Ok(real) => real.text(),
            Err(why) => format!("no NCCL: {why}"),
        };
        let decided = self.decided.lock().unwrap_or_else(PoisonError::into_inner).concat();
        tell(format_args!("{nothing}{calls}{decided}roundelay: behind the library is {behind}\n"));
    }
}
