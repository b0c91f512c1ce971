//! The choices of callers for a plan and its runs.

use std::num::NonZeroU32;
use std::time::Duration;

use roundelay_core::optimize::{Goal, Level};
use roundelay_core::verify::Callers;

use crate::error::Error;

/// The choices for a plan and its runs: worker threads, deadline, and the freedom of the optimizer.
///
/// The default is as many workers as the machine has cores and the data is worth, a deadline of a minute,
/// [`Level::O2`], threads that the system may move between cores, and reductions nested as the author wrote them.
///
/// A [`Plan`](crate::Plan) takes all options. A [`SpmdPlan`](crate::SpmdPlan) has no workers, as each rank runs on its
/// caller's thread: there [`Self::workers`] and [`Self::pinned`] mean nothing.
///
/// # Errors
/// Options are checked where a plan is made of them: [`Error::BadOption`] (E0406) for more workers than
/// [`Self::MOST_WORKERS`].
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub(super) workers: Option<NonZeroU32>,
    pub(crate) deadline: Duration,
    pub(super) pinned: bool,
    level: Level,
    reassociate: bool,
    choosing: Choosing,
}

/// How a world of processes chooses the ways of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choosing {
    /// It takes the usual ways.
    Usual,
    /// It measures the ways that the host's file does not have.
    Measured,
    /// It measures all ways, for as long as it takes.
    Anew,
}

impl Default for Options {
    fn default() -> Self {
        let deadline = Duration::from_secs(60);
        Self {
            workers: None,
            deadline,
            pinned: false,
            level: Level::default(),
            reassociate: false,
            choosing: Choosing::Measured,
        }
    }
}

impl Options {
    /// Returns the default options: workers as the machine and the data suggest, a deadline of a minute, level O2.
    pub fn new() -> Self {
        Self::default()
    }

    /// The most worker threads that a run may ask for.
    pub const MOST_WORKERS: u32 = 1024;

    /// Sets the number of worker threads, the calling thread among them; 0 leaves the choice to the engine. More than
    /// [`Self::MOST_WORKERS`] are refused when a plan is made.
    #[must_use]
    pub fn workers(mut self, workers: u32) -> Self {
        self.workers = NonZeroU32::new(workers);
        self
    }

    /// Sets the time for which nothing may happen in a run while a rank waits, before the run is given up with
    /// [`Error::Timeout`]. A move of any size that is under way counts as progress.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Keeps each helping thread on a core of its own during runs; the owner of the calling thread places it. On Linux
    /// only.
    #[must_use]
    pub fn pinned(mut self, pinned: bool) -> Self {
        self.pinned = pinned;
        self
    }

    /// Sets the level of the optimizer: how much of the schedule may be rewritten before it runs. Results have the same
    /// bits at every level.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Lets reductions nest otherwise than the author wrote them, so that a value that several ranks need is computed
    /// once. Results of floats may then differ in their last bits from results without it.
    #[must_use]
    pub fn reassociate(mut self, reassociate: bool) -> Self {
        self.reassociate = reassociate;
        self
    }

    /// Sets whether a world of processes chooses the ways of its data by measurement: its first calls of a shape then take
    /// several ways, and later calls take the fastest of them. Results have the same bits on every way. The option of
    /// rank 0 holds for all ranks, and the environment variable `ROUNDELAY_WAYS=usual` turns the measurements off, too.
    /// Ranks that are threads of one process have one way.
    #[must_use]
    pub fn measured(mut self, measured: bool) -> Self {
        self.choosing = if measured { Choosing::Measured } else { Choosing::Usual };
        self
    }

    /// Has a world measure all ways, whatever earlier worlds have found out: for a calibration.
    #[doc(hidden)]
    #[must_use]
    pub fn measured_anew(mut self) -> Self {
        self.choosing = Choosing::Anew;
        self
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn choosing(&self) -> Choosing {
        self.choosing
    }

    /// Refuses options that no run can have (E0406).
    pub(crate) fn check(&self) -> Result<(), Error> {
        match self.workers {
            Some(workers) if workers.get() > Self::MOST_WORKERS => Err(Error::BadOption {
                what: format!("{workers} workers for a run"),
                fix: "ask for 1024 at most; more than there are cores help nobody",
            }),
            _ => Ok(()),
        }
    }

    /// Returns the goal of these options for the optimizer, for ranks with these callers.
    pub(crate) fn goal(&self, callers: Callers) -> Goal {
        Goal { level: self.level, callers, reassociate: self.reassociate }
    }
}
