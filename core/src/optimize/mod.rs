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

use crate::ids::OpId;
use crate::schedule::demands::Demands;
use crate::schedule::{OpKind, Schedule};
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

/// The passes: **fuse**, or where that does not fit **elide**. A fused schedule has no needless signals.
pub fn optimize(schedule: &Arc<Schedule>, proof: &Arc<Proof>, goal: Goal) -> Optimized {
    let (schedule, proof) = (schedule.clone(), proof.clone());
    let mut unfit = None;
    if goal.level == Level::O2 {
        match stage("fuse", || fuse(&schedule, goal.callers, goal.reassociate)) {
            Ok(Fused { schedule, finish }) => {
                let proof =
                    Arc::new(Proof { finish, scale_outputs: false, ..Proof::clone(&proof) });
                let schedule = Arc::new(schedule);
                return Optimized { schedule, proof, level: Level::O2, unfit };
            }
            Err(why) => unfit = Some(why),
        }
    }
    if goal.level >= Level::O1 {
        match with_few_signals(&schedule, &proof, goal.callers) {
            Ok((schedule, proof)) => {
                return Optimized { schedule, proof, level: Level::O1, unfit };
            }
            Err(why) => _ = unfit.get_or_insert(why),
        }
    }
    Optimized { schedule, proof, level: Level::O0, unfit }
}

fn with_few_signals(
    schedule: &Schedule,
    proof: &Proof,
    callers: Callers,
) -> Result<(Arc<Schedule>, Arc<Proof>), Unfit> {
    // Budgets are the author's, about the schedule as it was written, and were held against that.
    let elided =
        elide::elide(&Schedule { demands: Demands::default(), ..schedule.clone() }, callers);
    let elided = elided.map_err(|_| Unfit("it is not proved".into()))?;
    if let Some(why) = elided.unchanged {
        return Err(Unfit(why.to_string()));
    }
    // Moves stay, in the same order.
    let moves = |schedule: &Schedule| {
        let is_move = |at: &OpId| schedule.op(*at).kind == OpKind::Move;
        (0..schedule.ops.len() as u32).map(OpId).filter(is_move).collect::<Vec<_>>()
    };
    let (before, after) = (moves(schedule), moves(&elided.schedule));
    let renumber = |at: &OpId| before.binary_search(at).ok().map(|index| after[index]);
    let finish = proof.finish.iter().filter_map(renumber).collect();
    let proof = Proof { finish, ..proof.clone() };
    Ok((Arc::new(elided.schedule), Arc::new(proof)))
}
