//! Between the proof and the engines: passes from schedule to schedule. Each gives a schedule that is proved like
//! any other and whose results have the same bits.

pub mod elide;
mod flow;
pub mod fuse;
mod program;
mod share;
mod signals;

pub use fuse::{Fused, fuse};

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::schedule::Schedule;
use crate::stages::stage;
use crate::verify::Proof;

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

/// The passes, one after the other: **fuse -> elide**. A pass that does not fit leaves the schedule to the next one.
pub fn optimize(schedule: &Arc<Schedule>, proof: &Arc<Proof>, goal: Goal) -> Optimized {
    let Goal { level, callers, reassociate } = goal;
    let (schedule, proof) = (schedule.clone(), proof.clone());
    let as_written = Optimized { schedule, proof, level: Level::O0, unfit: None };
    if level == Level::O0 {
        return as_written;
    }
    let fused = (level == Level::O2)
        .then(|| stage("fuse", || fuse(&as_written.schedule, callers, reassociate)));
    match fused {
        Some(Ok(Fused { schedule, finish })) => {
            let proof = Proof { finish, scale_outputs: false, ..Proof::clone(&as_written.proof) };
            let (schedule, proof) = (Arc::new(schedule), Arc::new(proof));
            Optimized { schedule, proof, level: Level::O2, unfit: None }
        }
        Some(Err(unfit)) => Optimized { unfit: Some(unfit), ..as_written },
        None => as_written,
    }
}
