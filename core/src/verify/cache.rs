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

/// A schedule with its proof. There is no other way to make one than to prove it, so an engine that takes
/// this may rely on what was proved.
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
    /// Proves `schedule`, or takes the proof of one of equal content from the cache of this process.
    pub fn new(schedule: Schedule) -> Result<Self, Vec<Finding>> {
        Self::called(schedule, Callers::Each)
    }

    /// The same where the ranks are brought in like that.
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

    /// The same schedule, whose optimizer goes wrong: what every pass makes is changed before it is looked at.
    #[doc(hidden)]
    #[must_use]
    pub fn with_broken_passes(&self, breaks: fn(&mut Schedule)) -> Self {
        Self { optimized: Arc::default(), breaks: Some(breaks), ..self.clone() }
    }

    /// What was proved.
    pub fn schedule(&self) -> &Arc<Schedule> {
        &self.schedule
    }

    /// How the ranks must be brought in: what is proved for each by itself holds for one call too.
    pub fn callers(&self) -> Callers {
        self.callers
    }

    /// The proof.
    pub fn proof(&self) -> &Arc<Proof> {
        &self.proof
    }

    /// The schedule as it runs best, with a proof of its own; the second time it is at hand.
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
