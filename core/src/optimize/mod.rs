//! Between the proof and the engines: passes from schedule to schedule. What a pass makes is proved like what an
//! author wrote, and compared with the author's: who is summed, in which order. A pass that is wrong ends in an
//! error, not in wrong sums.

pub mod elide;
mod flow;
pub mod fuse;
mod program;
mod share;
mod signals;

pub use fuse::fuse;

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::schedule::Schedule;
use crate::schedule::demands::Demands;
use crate::stages::stage;
use crate::verify::{Proof, Proved};

/// Who brings the ranks in.
///
/// It decides what a run's ends order: with one caller for all of them, every rank has entered before the first
/// op and none leaves before the last; ranks that call by themselves are ordered by signals alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Callers {
    /// One call runs all ranks.
    One,
    /// Each rank is a call of its own, as in MPI.
    Each,
    /// The same, and no rank touches another's buffers or takes its signals before that one has entered the same
    /// call: its runtime sees to that.
    Announced,
}

/// Why a pass leaves a schedule as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit(pub String);

/// How much of a schedule may be written otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Nothing: every op as the author wrote it.
    O0,
    /// Signals that others imply are dropped.
    O1,
    /// The data takes the shortest way: see [`fuse()`].
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

    /// `0`, `1` or `2`, with or without an `O` before it.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.strip_prefix('O').unwrap_or(text) {
            "0" => Ok(Self::O0),
            "1" => Ok(Self::O1),
            "2" => Ok(Self::O2),
            _ => Err(format!("`{text}` is no level: they are O0, O1 and O2")),
        }
    }
}

/// What is wanted of [`optimize`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Goal {
    /// How far to go.
    pub level: Level,
    /// Who will call.
    pub callers: Callers,
    /// Reductions may nest otherwise than the author says; results may differ in the last bits.
    pub reassociate: bool,
}

/// A schedule as it will run.
#[derive(Clone, Debug)]
pub struct Optimized {
    /// Its ops.
    pub schedule: Arc<Schedule>,
    /// What holds of them.
    pub proof: Arc<Proof>,
    /// What was reached: all scratch of a schedule at [`Level::O2`] is partials.
    pub level: Level,
    /// Why that is less than was wanted.
    pub unfit: Option<Unfit>,
}

/// What a pass made is not what was proved: a fault of the pass, and no schedule to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unproved {
    /// The pass, and what is wrong with what it made.
    pub what: String,
}

impl fmt::Display for Unproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; this is a fault of the compiler, not of the program", self.what)
    }
}

impl std::error::Error for Unproved {}

/// The passes: **fuse**, or where that does not fit **elide**. A fused schedule has no needless signals.
///
/// Nothing that they make is believed. It is proved for those callers, in place too if the author's schedule is, in any
/// mixture of modes if that is, and compared with it: who is summed in which order.
pub fn optimize(proved: &Proved, goal: Goal) -> Result<Optimized, Unproved> {
    optimize_with(proved, goal, |_| ())
}

/// The same with a pass that goes wrong: whatever `breaks` does to what was made is found, or does no harm.
#[doc(hidden)]
pub fn optimize_with(
    proved: &Proved,
    goal: Goal,
    breaks: impl Fn(&mut Schedule),
) -> Result<Optimized, Unproved> {
    let mut unfit = None;
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
    stage("fuse", || fuse(proved.schedule(), goal.callers, goal.reassociate))
}

fn elision(proved: &Proved, callers: Callers) -> Result<Schedule, Unfit> {
    // Budgets are the author's, about the schedule as it was written, and were held against that.
    let schedule = Schedule { demands: Demands::default(), ..Schedule::clone(proved.schedule()) };
    let elided = elide::elide(&schedule, callers).map_err(|_| Unfit("it is not proved".into()))?;
    match elided.unchanged {
        Some(why) => Err(Unfit(why.to_string())),
        None => Ok(elided.schedule),
    }
}

impl Optimized {
    /// What a pass made of what was proved, with a proof of its own: it is right for those callers, in place too
    /// if the author's is, in any mixture of modes if the author's is, and reduces every piece of every output in
    /// the author's order, unless `goal` lets it nest otherwise.
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
        let proved = stage("prove again", || Proved::called(made, goal.callers));
        let proved = proved.map_err(|findings| match findings.first() {
            Some(first) => wrong(format!("{} [{}]", first.title, first.code)),
            None => wrong("it is refused".into()),
        })?;
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
