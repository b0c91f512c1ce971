//! The results of the optimizer for a proved schedule, kept beside it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::{Goal, Optimized, Unproved, optimize, optimize_with};
use crate::schedule::Schedule;
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
    pub fn optimized(&self, goal: Goal) -> Result<Arc<Optimized>, Unproved> {
        let known = |made: &mut OptimizerCache| (made.by_goal.get(&goal).cloned(), made.breaks);
        let made = match self.keep(known) {
            (Some(known), _) => return Ok(known),
            (None, None) => optimize(self, goal)?,
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
