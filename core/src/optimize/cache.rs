//! The results of the optimizer for a proved schedule, kept beside it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Goal, Level, Optimized, Unfit, Unproved, optimize, optimize_with};
use crate::counts::Counts;
use crate::schedule::Schedule;
use crate::uneven;
use crate::verify::Proved;

/// The results for one schedule so far.
#[derive(Default)]
struct OptimizerCache {
    by_goal: FxHashMap<Goal, Arc<Optimized>>,
    /// The change that a test makes to the result of every pass.
    breaks: Option<fn(&mut Schedule)>,
}

impl Proved {
    /// Returns the optimizer's result for `goal`, with a proof of its own. The result is kept for the next call.
    ///
    /// # Errors
    /// [`Unproved`] (E0425) where the result of a pass is not proved: a fault of the compiler.
    pub fn optimize(&self, goal: Goal) -> Result<Arc<Optimized>, Unproved> {
        let known = |made: &mut OptimizerCache| (made.by_goal.get(&goal).cloned(), made.breaks);
        let made = match self.keep(known) {
            (Some(known), _) => return Ok(known),
            (None, None) => match self.even() {
                Some((even, counts)) => for_counts(even, counts, goal)?,
                None => optimize(self, goal)?,
            },
            (None, Some(breaks)) => optimize_with(self, goal, breaks)?,
        };
        let made = Arc::new(made);
        self.keep(|all: &mut OptimizerCache| all.by_goal.insert(goal, made.clone()));
        Ok(made)
    }

    /// A copy whose optimizer goes wrong, for tests: `breaks` changes the result of every pass before it is checked.
    #[doc(hidden)]
    #[must_use]
    pub fn with_broken_passes(&self, breaks: fn(&mut Schedule)) -> Self {
        let broken = self.anew();
        broken.keep(|made: &mut OptimizerCache| made.breaks = Some(breaks));
        broken
    }
}

/// Optimizes a schedule for equal counts, and turns the result into that of a vector of counts: at the highest level up to
/// the goal's at which blocks stay together.
fn for_counts(even: &Proved, counts: &Counts, goal: Goal) -> Result<Optimized, Unproved> {
    let mut unfit = None;
    for level in [Level::O2, Level::O1, Level::O0] {
        if level > goal.level {
            continue;
        }
        let made = even.optimize(Goal { level, ..goal })?;
        if made.level == Level::O2 && !uneven::keeps_partials(&made.schedule) {
            unfit = Some(Unfit("a partial would be of several blocks".to_owned()));
            continue;
        }
        let owners = || uneven::blocks(&made.schedule).map(Arc::new);
        match uneven::at(&made.schedule, &made.proof, counts, owners) {
            Ok((schedule, proof)) => {
                let (schedule, proof) = (Arc::new(schedule), Arc::new(proof));
                let unfit = unfit.or_else(|| made.unfit.clone());
                return Ok(Optimized { schedule, proof, level: made.level, unfit });
            }
            Err(found) => unfit = found.into_iter().next().map(|finding| Unfit(finding.title)),
        }
    }
    let why = unfit.map_or_else(String::new, |unfit| unfit.0);
    Err(Unproved { what: format!("no level keeps blocks together: {why}") })
}
