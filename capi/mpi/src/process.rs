//! This process: its MPI, its settings, and the job once MPI has begun.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};

use roundelay::Promises;
use roundelay_interposer::{SaidOnce, tell};
use roundelay_kernels::mpi::{Found, Functions, Mpi};

use crate::mpi_job::{MpiJob, Not};
use crate::report::MpiReport;
use crate::settings::{Settings, Take, TakeoverMode};

/// The state of the library in a process.
pub(crate) struct Process {
    found: Found,
    /// The settings; where they make no sense, no call is taken.
    pub(crate) settings: Settings,
    /// Why no call is taken, whatever the job.
    problem: Option<String>,
    job: OnceLock<MpiJob>,
    said: SaidOnce,
    ended: Once,
    report: Mutex<MpiReport>,
}

static PROCESS: OnceLock<Process> = OnceLock::new();

/// Returns the state of this process.
pub(crate) fn process() -> &'static Process {
    PROCESS.get_or_init(|| {
        let found = Mpi::find_loaded();
        let (settings, wrong) = match Settings::of_process() {
            Ok(settings) => (settings, None),
            Err(why) => (
                Settings {
                    mode: TakeoverMode::Off,
                    take: Take::Faster,
                    own: Vec::new(),
                    report: false,
                    promises: Promises::new(),
                },
                Some(why),
            ),
        };
        let problem = match &found {
            Found::Other { what, .. } => Some(format!("this process has {what}")),
            Found::One(_) | Found::None => wrong,
        };
        let report = Mutex::new(MpiReport::default());
        Process {
            found,
            settings,
            problem,
            job: OnceLock::new(),
            said: SaidOnce::new(),
            ended: Once::new(),
            report,
        }
    })
}

/// Returns why no collective of this process, which exits, came through the library: `None` where `MPI_Init` did, or
/// MPI never began.
pub(crate) fn bypassed() -> Option<&'static str> {
    let called = PROCESS.get().is_some();
    let process = process();
    if process.settings.mode == TakeoverMode::Off || process.problem.is_some() {
        return None;
    }
    let functions = match &process.found {
        Found::One(mpi) if process.job().is_none() => mpi.functions(),
        _ => return None,
    };
    if called {
        return Some("all collectives were left to MPI: MPI_Init did not come through the library");
    }
    let mut begun = 0;
    // SAFETY: there is room for the answer, which may be asked for at all times.
    let wrong = unsafe { (functions.initialized)(&raw mut begun) };
    (wrong == 0 && begun != 0).then_some(
        "no collective came through the library: the program opened MPI's library itself, and calls the functions that it found there",
    )
}

impl Process {
    /// Returns the MPI library whose calls can be taken.
    pub(crate) fn mpi(&self) -> Option<&Mpi> {
        match &self.found {
            Found::One(mpi) => Some(mpi),
            Found::Other { .. } | Found::None => None,
        }
    }

    /// Returns the functions that calls are passed on to; where the process has no MPI, it says so and returns `None`.
    pub(crate) fn functions(&self) -> Option<&Functions> {
        match &self.found {
            Found::One(mpi) => Some(mpi.functions()),
            Found::Other { functions, .. } => Some(functions),
            Found::None => {
                self.say_once("an MPI function was called, and this process has no MPI library");
                None
            }
        }
    }

    /// Returns the job, once MPI has begun.
    pub(crate) fn job(&self) -> Option<&MpiJob> {
        self.job.get()
    }

    /// Whether this library has let go of MPI, which is ending.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.is_completed()
    }

    /// Returns the report of this process.
    pub(crate) fn report(&self) -> MutexGuard<'_, MpiReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Finds the job, after MPI has begun.
    pub(crate) fn begin(&self) {
        if let Some(why) = &self.problem {
            self.say_once(&format!("all collectives are left to MPI: {why}"));
        }
        let Some(mpi) = self.mpi() else { return };
        if self.settings.mode == TakeoverMode::Off {
            return;
        }
        let job = self.job.get_or_init(|| MpiJob::new(mpi, self.digest()));
        if let Err(Not::Unmet(why)) = &job.here {
            self.say_once(&format!("all collectives are left to MPI: {why}"));
        }
    }

    /// Returns a digest of the settings that must be equal on all ranks.
    fn digest(&self) -> u64 {
        let Settings { mode, take, own, .. } = &self.settings;
        let mut hasher = DefaultHasher::new();
        (*mode as u8, *take as u8, env!("CARGO_PKG_VERSION"), own).hash(&mut hasher);
        hasher.finish()
    }

    /// Prints a line on standard error, unless this process or another of its launcher on this host has printed one.
    pub(crate) fn say_once(&self, what: &str) {
        self.said.say(what);
    }

    /// Leaves the job, before MPI ends; functions of several languages may call it one after another.
    pub(crate) fn end(&self) {
        self.ended.call_once(|| self.leave());
    }

    fn leave(&self) {
        let first = self.job().is_some_and(|job| job.rank == 0);
        if self.settings.report && first {
            let mut report = self.report();
            report.chosen(crate::seats::ways());
            tell(format_args!("{report}"));
        }
        crate::seats::leave_all();
        if let Some(mpi) = self.mpi() {
            crate::progress::end(mpi);
            crate::own::end(mpi);
        }
    }
}
