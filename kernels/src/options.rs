//! The choices of callers for a plan and its runs.

use std::num::NonZeroU32;
use std::sync::OnceLock;
use std::time::Duration;

use roundelay_core::optimize::{Goal, Level};
use roundelay_core::verify::Callers;

use crate::error::Error;

/// The environment variable with the check of all plans of a process whose options name none.
const VARIABLE: &str = "ROUNDELAY_CHECK";
/// The environment variable that says whether worlds keep the sites of calls whose options do not say it.
const SITES: &str = "ROUNDELAY_SITES";

/// The calls of a plan that check themselves.
///
/// [`Self::First`] is for machines whose drivers, memory or kernels may return wrong data. Before the first call of a
/// plan, each rank makes one call of that plan on data that all ranks know, in memory of its own, and compares each
/// element of the output with a plain computation. If an element differs on any rank, the call fails on all ranks with
/// E0433, which names the rank and the element, and is not made. All ranks must have the same check: a rank that checks
/// while another rank does not is in another call (E0414).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Check {
    /// No call.
    #[default]
    Never,
    /// The first call of each plan.
    First,
}

impl Check {
    /// Returns the check that the environment variable `ROUNDELAY_CHECK` names, read once by a process.
    fn of_process() -> Result<Self, Error> {
        static READ: OnceLock<Result<Check, Error>> = OnceLock::new();
        let read =
            || Self::named(&std::env::var_os(VARIABLE).unwrap_or_default().to_string_lossy());
        READ.get_or_init(read).clone()
    }

    /// Returns the check of this name; [`Self::Never`] for an empty name.
    fn named(name: &str) -> Result<Self, Error> {
        match name {
            "" | "never" => Ok(Self::Never),
            "first" => Ok(Self::First),
            _ => Err(Error::BadOption {
                what: format!("the environment variable {VARIABLE} is `{name}`"),
                fix: "give `first` or `never`, or leave it unset",
            }),
        }
    }
}

/// The choices for a plan and its runs: worker threads, deadline, and the freedom of the optimizer.
///
/// The default is as many workers as the machine has cores and the data is worth, a deadline of a minute,
/// [`Level::O2`], threads that the system may move between cores, reductions nested as the author wrote them, and the
/// check that the environment variable `ROUNDELAY_CHECK` names ([`Check`]).
///
/// A [`Plan`](crate::Plan) takes all options. A [`SpmdPlan`](crate::SpmdPlan) has no workers, as each rank runs on its
/// caller's thread: there [`Self::workers`] and [`Self::pin`] mean nothing.
///
/// # Errors
/// Options are checked where a plan is made of them: [`Error::BadOption`] (E0406) for more workers than
/// [`Self::MOST_WORKERS`], and for a value of `ROUNDELAY_CHECK` that is no [`Check`].
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub(super) workers: Option<NonZeroU32>,
    pub(crate) deadline: Duration,
    pub(super) pinned: bool,
    level: Level,
    reassociate: bool,
    choosing: Choosing,
    /// `None` leaves it to the environment variable.
    check: Option<Check>,
    /// `None` leaves it to the environment variable.
    sites: Option<bool>,
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
            check: None,
            sites: None,
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
    pub fn pin(mut self, pinned: bool) -> Self {
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
    /// several ways, and later calls take the fastest of them; a world of several hosts measures the link between them
    /// when it begins, and takes a usual one otherwise. Results have the same bits on every way. The option of
    /// rank 0 holds for all ranks, and the environment variable `ROUNDELAY_WAYS=usual` turns the measurements off, too.
    /// Ranks that are threads of one process have one way.
    #[must_use]
    pub fn measure(mut self, measured: bool) -> Self {
        self.choosing = if measured { Choosing::Measured } else { Choosing::Usual };
        self
    }

    /// Whether worlds of these options measure.
    #[doc(hidden)]
    pub fn measures(&self) -> bool {
        self.choosing != Choosing::Usual
    }

    /// Has a world measure all ways, whatever earlier worlds have found out: for a calibration.
    #[doc(hidden)]
    #[must_use]
    pub fn measured_anew(mut self) -> Self {
        self.choosing = Choosing::Anew;
        self
    }

    pub(crate) fn choosing(&self) -> Choosing {
        self.choosing
    }

    /// Sets the calls that check themselves, whatever the environment variable `ROUNDELAY_CHECK` names.
    #[must_use]
    pub fn check_calls(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    /// Returns the calls that check themselves.
    ///
    /// # Errors
    /// E0406 for a value of the environment variable that is no check.
    pub(crate) fn checks(&self) -> Result<Check, Error> {
        self.check.map_or_else(Check::of_process, Ok)
    }

    /// Sets whether a world of processes keeps, for `roundelay ps`, the places in a program from which its calls come,
    /// whatever the environment variable `ROUNDELAY_SITES` says: for the libraries of other languages, which know these
    /// places.
    #[doc(hidden)]
    #[must_use]
    pub fn sites(mut self, sites: bool) -> Self {
        self.sites = Some(sites);
        self
    }

    /// Whether a world of processes keeps the places from which its calls come.
    ///
    /// # Errors
    /// E0406 for another value of the environment variable than 0 and 1.
    pub(crate) fn keeps_sites(&self) -> Result<bool, Error> {
        static READ: OnceLock<Result<bool, Error>> = OnceLock::new();
        let read = || sites_named(&std::env::var_os(SITES).unwrap_or_default().to_string_lossy());
        self.sites.map_or_else(|| READ.get_or_init(read).clone(), Ok)
    }

    /// Refuses options that no run can have (E0406).
    pub(crate) fn check(&self) -> Result<(), Error> {
        self.checks()?;
        self.keeps_sites()?;
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

/// Returns the meaning of a value of the environment variable about sites; an empty one asks for none.
fn sites_named(value: &str) -> Result<bool, Error> {
    match value {
        "" | "0" => Ok(false),
        "1" => Ok(true),
        _ => Err(Error::BadOption {
            what: format!("the environment variable {SITES} is `{value}`"),
            fix: "give 0 or 1, or leave it unset",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_are_kept_or_not_and_another_value_is_an_error() {
        let named = ["", "0", "1"].map(|value| sites_named(value).expect("a value"));
        assert_eq!(named, [false, false, true]);
        let refused = sites_named("yes").expect_err("no value").to_string();
        assert_eq!(
            refused,
            "the environment variable ROUNDELAY_SITES is `yes`; give 0 or 1, or leave it unset [E0406]"
        );
    }

    #[test]
    fn a_check_has_a_name_and_another_name_is_an_error_that_lists_them() {
        let named = ["", "never", "first"].map(|name| Check::named(name).expect("a check"));
        assert_eq!(named, [Check::Never, Check::Never, Check::First]);
        let refused = Check::named("second").expect_err("no check").to_string();
        assert_eq!(
            refused,
            "the environment variable ROUNDELAY_CHECK is `second`; give `first` or `never`, or leave it unset [E0406]"
        );
    }
}
