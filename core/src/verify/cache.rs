//! Proofs by content: the second plan of the same schedule costs a digest.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use super::{Finding, Proof, Signals, unmet, verify_called};
use crate::optimize::{Callers, Goal, Optimized, Unproved, optimize, optimize_with};
use crate::schedule::Schedule;
use crate::schedule::hash::{self, ContentDigest};
use crate::stages;

/// Proofs kept; a program that makes more different schedules than this proves some again.
const KEPT: usize = 1024;

/// The content of a schedule, and who calls.
type Key = (ContentDigest, Callers);

static PROOFS: LazyLock<Mutex<HashMap<Key, Arc<Proof>>>> = LazyLock::new(Mutex::default);

/// A schedule with its proof.
///
/// There is no other way to make one than to prove the schedule, so an engine that takes this may rely on it. Clones
/// share the schedule, the proof, and what the optimizer makes of them. Proofs are kept by the content of the
/// schedule for the whole process, so to prove an equal one again costs a digest.
#[derive(Clone, Debug)]
pub struct Proved {
    schedule: Arc<Schedule>,
    proof: Arc<Proof>,
    /// Not by content: source lines are no part of that.
    optimized: Arc<Mutex<HashMap<Goal, Arc<Optimized>>>>,
    callers: Callers,
    /// What a test does to all that passes make of it.
    breaks: Option<fn(&mut Schedule)>,
}

impl Proved {
    /// Proves `schedule` for ranks that each call by themselves, or takes the proof of one of equal content from the
    /// cache of this process.
    ///
    /// # Errors
    /// All that is wrong, the worst first: E03xx.
    pub fn new(schedule: Schedule) -> Result<Self, Vec<Finding>> {
        Self::called(schedule, Callers::Each)
    }

    /// Proves `schedule` for ranks that are brought in by such `callers`, or takes the proof from the cache of this
    /// process.
    ///
    /// # Errors
    /// All that is wrong, the worst first: E03xx.
    pub fn called(schedule: Schedule, callers: Callers) -> Result<Self, Vec<Finding>> {
        let key = (stages::stage("hash", || hash::content(&schedule)), callers);
        let proofs = || PROOFS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = proofs().get(&key).cloned();
        let proof = match known {
            Some(proof) => proof,
            None => {
                let proof = Arc::new(verify_called(&schedule, Signals::default(), callers)?);
                let mut proofs = proofs();
                if proofs.len() >= KEPT {
                    proofs.clear();
                }
                proofs.insert(key, proof.clone());
                proof
            }
        };
        // Demands are no part of what the hash is of.
        let unmet = unmet(&schedule, &proof);
        if !unmet.is_empty() {
            return Err(unmet);
        }
        Ok(Self {
            schedule: Arc::new(schedule),
            proof,
            callers,
            optimized: Arc::default(),
            breaks: None,
        })
    }

    /// A copy whose optimizer goes wrong, for tests: `breaks` changes what every pass makes before it is looked at.
    #[doc(hidden)]
    #[must_use]
    pub fn with_broken_passes(&self, breaks: fn(&mut Schedule)) -> Self {
        Self { optimized: Arc::default(), breaks: Some(breaks), ..self.clone() }
    }

    /// The schedule that was proved, as its author wrote it.
    pub fn schedule(&self) -> &Arc<Schedule> {
        &self.schedule
    }

    /// How the ranks must be brought in for the proof to hold. What is proved for ranks that each call by themselves
    /// holds for one call of all of them too.
    pub fn callers(&self) -> Callers {
        self.callers
    }

    /// The proof of [`Self::schedule`].
    pub fn proof(&self) -> &Arc<Proof> {
        &self.proof
    }

    /// What the optimizer makes of the schedule for `goal`, with a proof of its own. It is kept for the next time.
    ///
    /// # Errors
    /// [`Unproved`] (E0425) where a pass made something that is not proved: a fault of the compiler.
    pub fn optimized(&self, goal: Goal) -> Result<Arc<Optimized>, Unproved> {
        let optimized = || self.optimized.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = optimized().get(&goal) {
            return Ok(known.clone());
        }
        let made = match self.breaks {
            None => optimize(self, goal)?,
            Some(breaks) => optimize_with(self, goal, breaks)?,
        };
        let made = Arc::new(made);
        optimized().insert(goal, made.clone());
        Ok(made)
    }
}
