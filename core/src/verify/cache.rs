//! Proofs by content: a second plan of an equal schedule costs only a digest.

use std::any::{Any, TypeId};
use std::collections::VecDeque;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rustc_hash::FxHashMap;

use super::owners::{Owners, owners};
use super::{
    Callers, Finding, Order, Proof, Signals, in_order, steps_in, unmet_by, verify_in_order,
};
use crate::counts::Counts;
use crate::schedule::hash::{self, ContentDigest};
use crate::schedule::{Schedule, switch};
use crate::stages;

/// The number of proofs kept: beyond it, each new proof takes the place of the oldest.
const KEPT: usize = 4096;

/// The content of a schedule, and its callers.
type ProofKey = (ContentDigest, Callers);

static PROOFS: LazyLock<Mutex<KnownProofs>> = LazyLock::new(Mutex::default);

/// The proofs of this process, in the order in which they were made.
#[derive(Default)]
struct KnownProofs {
    of: FxHashMap<ProofKey, Arc<Proof>>,
    order: VecDeque<ProofKey>,
}

impl KnownProofs {
    fn insert(&mut self, key: ProofKey, proof: Arc<Proof>) {
        if self.of.insert(key, proof).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > KEPT
            && let Some(oldest) = self.order.pop_front()
        {
            self.of.remove(&oldest);
        }
    }
}

/// The values that stages after this one keep, by their type.
type StageCache = FxHashMap<TypeId, Box<dyn Any + Send>>;

/// A schedule with its proof.
///
/// The only way to make a `Proved` is to prove the schedule, so an engine that takes a `Proved` may rely on it. Clones
/// share the schedule, the proof, and the results of the optimizer. Proofs are kept by the content of the schedule for
/// the whole process, so to prove an equal schedule again costs only a digest.
#[derive(Clone, Debug)]
pub struct Proved {
    schedule: Arc<Schedule>,
    proof: Arc<Proof>,
    callers: Callers,
    /// The proof for equal counts that this one was made of, and the vector of counts.
    even: Option<Arc<(Proved, Counts)>>,
    /// The results of later stages. They are not kept by content: source lines are no part of it.
    made: Arc<Mutex<StageCache>>,
}

/// Facts of a schedule that its proof finds by the way, and that stages after the proof need. They are as long as the
/// schedule, so they live with it, and not with its proof, which the process keeps by content.
#[derive(Default)]
struct ScheduleFacts {
    order: Option<Arc<Order>>,
    /// Whether moves keep blocks together, and the blocks.
    owners: Option<Result<Arc<Owners>, Box<Finding>>>,
    /// The schedule with moves of a switch, of which this one has moves by the ranks.
    by_switch: Option<Proved>,
}

impl Proved {
    /// Proves `schedule` for ranks that each call by themselves, or takes the proof of a schedule of equal content from
    /// the cache of this process.
    ///
    /// # Errors
    /// All findings, the worst first: E03xx.
    pub fn new(schedule: Schedule) -> Result<Self, Vec<Finding>> {
        Self::for_callers(schedule, Callers::Each)
    }

    /// Proves `schedule` for ranks that the given `callers` bring in, or takes the proof from the cache of this
    /// process.
    ///
    /// # Errors
    /// All findings, the worst first: E03xx.
    pub fn for_callers(schedule: Schedule, callers: Callers) -> Result<Self, Vec<Finding>> {
        let proved = Self::without_demands(schedule, callers)?;
        // The hash does not cover demands.
        let unmet = unmet_by(&proved.schedule, &proved.proof, || proved.owners().err());
        if !unmet.is_empty() {
            return Err(unmet);
        }
        if !proved.schedule.has_switch() {
            return Ok(proved);
        }
        let moves = Self::without_demands(switch::as_moves(&proved.schedule), callers)?;
        moves.keep(|known: &mut ScheduleFacts| known.by_switch = Some(proved.clone()));
        // The promises are those of the network's switch, whose order of reduction is open.
        let reduction = proved.proof.reduction.clone();
        let proof = Arc::new(Proof { reduction, ..Proof::clone(&moves.proof) });
        Ok(Self { proof, ..moves })
    }

    /// Proves `schedule` without regard to the demands of its author.
    fn without_demands(schedule: Schedule, callers: Callers) -> Result<Self, Vec<Finding>> {
        let key = (stages::stage("hash", || hash::content(&schedule)), callers);
        let proofs = || PROOFS.lock().unwrap_or_else(PoisonError::into_inner);
        let known = proofs().of.get(&key).cloned();
        let (proof, order) = match known {
            Some(proof) => (proof, None),
            None => {
                let (proof, order) = verify_in_order(&schedule, Signals::default(), callers)?;
                let proof = Arc::new(proof);
                proofs().insert(key, proof.clone());
                (proof, Some(Arc::new(order)))
            }
        };
        let schedule = Arc::new(schedule);
        let proved = Self { schedule, proof, callers, even: None, made: Arc::default() };
        proved.keep(|known: &mut ScheduleFacts| known.order = order);
        Ok(proved)
    }

    /// Returns the proved schedule, as its author wrote it, but for moves of a switch: ranks make them, so that the schedule
    /// runs on any network.
    pub fn schedule(&self) -> &Arc<Schedule> {
        &self.schedule
    }

    /// Returns the proof of the schedule with the moves of a switch, of which [`Self::schedule`] has moves by the ranks;
    /// `None` where no switch moves data.
    pub fn by_switch(&self) -> Option<Self> {
        self.keep(|known: &mut ScheduleFacts| known.by_switch.clone())
    }

    /// Returns the callers for which the proof holds. A proof for ranks that each call by themselves holds for one call
    /// of all ranks too.
    pub fn callers(&self) -> Callers {
        self.callers
    }

    /// Returns the proof of [`Self::schedule`].
    pub fn proof(&self) -> &Arc<Proof> {
        &self.proof
    }

    /// Returns the order of events of [`Self::schedule`]. It is found once, most often by the proof; all clones share it.
    pub fn order(&self) -> Arc<Order> {
        let known = self.keep(|known: &mut ScheduleFacts| known.order.clone());
        known.unwrap_or_else(|| {
            let order = in_order(&self.schedule).expect("a proved schedule has an order of events");
            self.keep(|known: &mut ScheduleFacts| known.order.insert(Arc::new(order)).clone())
        })
    }

    /// Returns the block of each part of each move, if moves keep blocks together: then the proof holds for every vector
    /// of counts. It is found once; all clones share it.
    ///
    /// # Errors
    /// E0319 at the first move that is right for equal counts alone.
    pub fn owners(&self) -> Result<Arc<Owners>, Box<Finding>> {
        let known = self.keep(|known: &mut ScheduleFacts| known.owners.clone());
        known.unwrap_or_else(|| {
            let order = self.order();
            let found = stages::stage("blocks", || owners(&self.schedule, &order)).map(Arc::new);
            self.keep(|known: &mut ScheduleFacts| known.owners.insert(found).clone())
        })
    }

    /// Returns the step of each op, as [`super::steps`] does.
    ///
    /// # Errors
    /// More pieces than can be numbered.
    pub fn steps(&self) -> Result<Vec<u32>, Vec<Finding>> {
        steps_in(&self.schedule, &self.order())
    }

    /// Returns the schedule and proof of a vector of counts that were made of this proof.
    pub(crate) fn of_counts(&self, counts: Counts, schedule: Schedule, proof: Proof) -> Self {
        Self {
            schedule: Arc::new(schedule),
            proof: Arc::new(proof),
            callers: self.callers,
            even: Some(Arc::new((self.clone(), counts))),
            made: Arc::default(),
        }
    }

    /// Returns the proof with averages divided as the `author`'s, so that they have equal bits: at the end, where the
    /// author's schedule divides there.
    pub(crate) fn dividing_as(self, author: &Proof) -> Self {
        if self.proof.scale_outputs || !author.scale_outputs {
            return self;
        }
        Self { proof: Arc::new(Proof::clone(&self.proof).divided_at_end()), ..self }
    }

    /// Returns the proof for equal counts that this one was made of, and the vector of counts.
    pub fn even(&self) -> Option<&(Self, Counts)> {
        self.even.as_deref()
    }

    /// Returns a copy that shares no results of later stages.
    pub(crate) fn anew(&self) -> Self {
        Self { made: Arc::default(), ..self.clone() }
    }

    /// Changes the value that a later stage keeps beside the schedule, one value a type; all clones share it.
    pub(crate) fn keep<T: Any + Default + Send, R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = made.entry(TypeId::of::<T>()).or_insert_with(|| Box::<T>::default());
        change(kept.downcast_mut().expect("a value is kept under its type"))
    }
}
