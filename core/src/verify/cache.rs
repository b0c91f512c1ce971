//! Proofs by content: the second plan of the same schedule costs a digest.

use std::any::{Any, TypeId};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::{Callers, Finding, Proof, Signals, unmet, verify_called};
use crate::schedule::Schedule;
use crate::schedule::hash::{self, ContentDigest};
use crate::stages;

/// Proofs kept; a program that makes more different schedules than this proves some again.
const KEPT: usize = 1024;

/// The content of a schedule, and who calls.
type ProofKey = (ContentDigest, Callers);

static PROOFS: LazyLock<Mutex<FxHashMap<ProofKey, Arc<Proof>>>> = LazyLock::new(Mutex::default);

/// What stages after this one keep, by its type.
type StageCache = FxHashMap<TypeId, Box<dyn Any + Send>>;

/// A schedule with its proof.
///
/// There is no other way to make one than to prove the schedule, so an engine that takes this may rely on it. Clones
/// share the schedule, the proof, and what the optimizer makes of them. Proofs are kept by the content of the
/// schedule for the whole process, so to prove an equal one again costs a digest.
#[derive(Clone, Debug)]
pub struct Proved {
    schedule: Arc<Schedule>,
    proof: Arc<Proof>,
    callers: Callers,
    /// What later stages make of it. Not by content: source lines are no part of that.
    made: Arc<Mutex<StageCache>>,
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
        Ok(Self { schedule: Arc::new(schedule), proof, callers, made: Arc::default() })
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

    /// A copy that shares nothing of what was made of the schedule so far.
    pub(crate) fn anew(&self) -> Self {
        Self { made: Arc::default(), ..self.clone() }
    }

    /// Changes what a later stage keeps beside the schedule, which all clones share: one value a type.
    pub(crate) fn keep<T: Any + Default + Send, R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = made.entry(TypeId::of::<T>()).or_insert_with(|| Box::<T>::default());
        change(kept.downcast_mut().expect("it is kept under its type"))
    }
}
