//! Passes from schedule to schedule, between the proof and the engines. The result of a pass is proved like an
//! author's schedule, and compared with the author's: the same ranks must be summed, in the same order. A wrong pass
//! ends in an error, not in wrong sums.

mod cache;
pub mod elide;
mod flow;
pub mod fuse;
pub mod join;
mod piece;
mod share;
mod signals;
mod statements;
mod writer;

pub use fuse::fuse;
pub use join::join;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::schedule::Schedule;
use crate::stages::stage;
use crate::verify::{Callers, Proof, Proved};

/// The reason why a pass leaves a schedule as it is, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit(pub String);

/// A level of the optimizer: how much of a schedule may be rewritten before it runs.
///
/// Results have the same bits at every level. The result of a pass is proved again; where a pass does not fit a
/// schedule, a lower level is taken. The text form is `O0`, `O1` or `O2`, with or without the `O`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Nothing is rewritten: every op runs as the author wrote it.
    O0,
    /// Signals that other signals imply are dropped, and moves between two signals whose regions lie side by side are
    /// joined.
    O1,
    /// The data takes the shortest path; each input is read once and each output is written once: see [`fuse()`].
    #[default]
    O2,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::O0 => "O0",
            Self::O1 => "O1",
            Self::O2 => "O2",
        })
    }
}

impl FromStr for Level {
    type Err = String;

    /// Reads `0`, `1` or `2`, with or without an `O` before it; the error names the levels.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix('O').unwrap_or(text) {
            "0" => Ok(Self::O0),
            "1" => Ok(Self::O1),
            "2" => Ok(Self::O2),
            _ => Err(format!("`{text}` is no level: they are O0, O1 and O2")),
        }
    }
}

/// The task of [`optimize`]: the level, the callers, and whether reductions may nest otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Goal {
    /// The level to reach, if it can be reached.
    pub level: Level,
    /// The callers that bring the ranks in when the schedule runs.
    pub callers: Callers,
    /// Whether reductions may nest otherwise than the author wrote them; results of floats may then differ in the
    /// last bits. It has no effect on a schedule whose demands have promises about the order of reductions.
    pub reassociate: bool,
}

/// The schedule that the optimizer made, with its proof: it is run.
#[derive(Clone, Debug)]
pub struct Optimized {
    /// The schedule that runs.
    pub schedule: Arc<Schedule>,
    /// The proof of that schedule.
    pub proof: Arc<Proof>,
    /// The level that was reached. At [`Level::O2`] all scratch is partials, which live for a few moves only.
    pub level: Level,
    /// The reason why the level is lower than the goal's, where it is.
    pub unfit: Option<Unfit>,
}

/// E0425: the result of an optimizer pass is not proved, or does not compute the same as the author's schedule. This
/// is a fault of the compiler, and the result does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unproved {
    /// The name of the pass, and the fault of its result.
    pub what: String,
}

impl fmt::Display for Unproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; this is a fault of the compiler, not of the program", self.what)
    }
}

impl std::error::Error for Unproved {}

/// Optimizes a proved schedule: by the pass **fuse**, or where that does not fit by **elide** and **join**. A fused
/// schedule has no needless signals.
///
/// The result is not trusted. It is proved for the goal's callers, in place too if the author's schedule is, in any
/// mixture of modes if the author's is, and compared with the author's schedule: the same ranks must be summed in the
/// same order.
///
/// # Errors
/// [`Unproved`] (E0425) where the result of a pass is not right.
pub fn optimize(proved: &Proved, goal: Goal) -> Result<Optimized, Unproved> {
    optimize_with(proved, goal, |_| ())
}

/// [`optimize`] with a pass that goes wrong, for tests: every change that `breaks` makes to a result is found, or
/// does no harm.
#[doc(hidden)]
pub fn optimize_with(
    proved: &Proved,
    goal: Goal,
    breaks: impl Fn(&mut Schedule),
) -> Result<Optimized, Unproved> {
    let may = goal.reassociate && !proved.schedule().demands.of_reductions();
    let (goal, mut unfit) = (Goal { reassociate: may, ..goal }, None);
    if goal.level == Level::O2 {
        match fusion(proved, goal) {
            Ok(mut made) => {
                breaks(&mut made);
                return Optimized::checked(proved, made, goal, Level::O2, None);
            }
            Err(why) => unfit = Some(why),
        }
    }
    if goal.level >= Level::O1 {
        match elision(proved, goal.callers) {
            Ok(mut made) => {
                breaks(&mut made);
                return Optimized::checked(proved, made, goal, Level::O1, unfit);
            }
            Err(why) => _ = unfit.get_or_insert(why),
        }
    }
    let (schedule, proof) = (proved.schedule().clone(), proved.proof().clone());
    Ok(Optimized { schedule, proof, level: Level::O0, unfit })
}

fn fusion(proved: &Proved, goal: Goal) -> Result<Schedule, Unfit> {
    if proved.proof().one_mode.is_some() {
        return Err(Unfit("in place it computes something else than out of place".into()));
    }
    let order = proved.order();
    stage("fuse", || fuse::fuse_in(proved.schedule(), &order, goal.callers, goal.reassociate))
}

fn elision(proved: &Proved, callers: Callers) -> Result<Schedule, Unfit> {
    // Budgets are the author's: they are about the schedule as it was written, and were checked against that.
    let demands = proved.schedule().demands.of_calls();
    let schedule = Schedule { demands, ..Schedule::clone(proved.schedule()) };
    let elided = elide::elide_in(&schedule, &proved.order(), callers)
        .map_err(|_| Unfit("it is not proved".into()))?;
    match elided.unchanged {
        Some(why) => Err(Unfit(why.to_string())),
        None => Ok(stage("join", || join(&elided.schedule))),
    }
}

impl Optimized {
    /// Proves the result of a pass on its own: it is right for the goal's callers, in place too if the author's
    /// schedule is, in any mixture of modes if the author's is, and reduces every piece of every output in the
    /// author's order, unless `goal` lets it nest otherwise.
    fn checked(
        author: &Proved,
        made: Schedule,
        goal: Goal,
        level: Level,
        unfit: Option<Unfit>,
    ) -> Result<Self, Unproved> {
        let pass = if level == Level::O2 { "fusion" } else { "elision" };
        let name = made.algorithm.clone();
        let wrong = |what: String| Unproved { what: format!("{pass} of {name}: {what}") };
        let (schedule, theirs) = (author.schedule(), author.proof());
        let promises = |s: &Schedule| (s.collective, s.nranks, s.root, s.out_of_place);
        if promises(&made) != promises(schedule) {
            return Err(wrong("it promises something else".into()));
        }
        let proved = stage("prove again", || Proved::for_callers(made, goal.callers));
        let proved = proved.map_err(|findings| match findings.first() {
            Some(first) => wrong(format!("{} [{}]", first.title, first.code)),
            None => wrong("it is refused".into()),
        })?;
        let proved = proved.dividing_as(theirs);
        let ours = proved.proof();
        if ours.one_mode.is_some() && theirs.one_mode.is_none() {
            return Err(wrong("ranks may no longer choose whether they run in place".into()));
        }
        if !goal.reassociate
            && let Some((rank, end)) = theirs.orders.differs(&ours.orders)
        {
            return Err(wrong(format!(
                "what ends at {end} of the output of rank {rank} is reduced in another order"
            )));
        }
        Ok(Self { schedule: proved.schedule().clone(), proof: ours.clone(), level, unfit })
    }
}
