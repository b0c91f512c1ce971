//! The ranks of a communicator as a world of processes with a GPU each.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use roundelay::cuda::DeviceCalls;
use roundelay::tools::ALGORITHM;
use roundelay::{Call, Error, Options, UniqueId as WorldId, World, selection};

use crate::call_errors::Refusal;
use crate::own_operators::Operators;
use crate::settings::{AVERAGE, TAKE, settings};
use crate::stream_order::StreamOrder;
use crate::trial::Trials;
use crate::types::Code;

/// NCCL waits for ever, and frameworks end a job after ten minutes: a rank may prepare its data for long.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30 * 60);

/// The place of a rank among those that meet.
#[derive(Clone, Debug)]
pub(crate) struct RankPlace {
    pub(crate) nranks: u32,
    pub(crate) rank: u32,
    /// The rank's GPU, or why it has none.
    pub(crate) device: Result<usize, Refusal>,
}

/// A communicator that runs operations here.
pub(crate) struct OwnComm {
    pub(crate) world: World,
    pub(crate) calls: DeviceCalls,
    pub(crate) device: usize,
    pub(crate) order: StreamOrder,
    /// The first failure, after which every call fails alike.
    failure: Mutex<Option<Refusal>>,
    pub(crate) operators: Operators,
    pub(crate) trials: Trials,
    /// Calls that the algorithm for them cannot run, and why.
    unfit: Mutex<HashMap<Call, String>>,
}

impl OwnComm {
    /// Meets the other ranks, which come within `patience`. Where one of them cannot be in the world, or has other settings,
    /// none is.
    ///
    /// # Errors
    /// Why they do not meet, alike on all ranks that come.
    pub(crate) fn meet(
        id: &WorldId,
        place: &RankPlace,
        patience: Duration,
    ) -> Result<Self, Refusal> {
        Self::on_device(Self::join(id, place, patience)?, &place.device)
    }

    /// Joins the world of the other ranks, which come within `patience`.
    ///
    /// # Errors
    /// E0427 where not all come; E0429 where the system refuses a resource.
    pub(crate) fn join(
        id: &WorldId,
        place: &RankPlace,
        patience: Duration,
    ) -> Result<World, Error> {
        let options = Options::new().deadline(patience);
        Ok(World::join_with(id, place.nranks, place.rank, options)?.deadline(DEADLINE))
    }

    /// Makes the ranks of a world those of a communicator, on the device of each.
    ///
    /// # Errors
    /// Why one of them cannot, alike on all.
    pub(crate) fn on_device(
        world: World,
        device: &Result<usize, Refusal>,
    ) -> Result<Self, Refusal> {
        agree(&world, device)?;
        let device = device.clone()?;
        let world = settings()
            .own
            .iter()
            .fold(world, |world, own| world.using_between(&own.bytes, own.algorithm.clone()));
        let calls = world.device_calls(device)?;
        let order = StreamOrder::new(calls.rank().context())?;
        let (failure, unfit) = (Mutex::default(), Mutex::default());
        let (operators, trials) = (Operators::default(), Trials::default());
        Ok(Self { world, calls, device, order, failure, operators, trials, unfit })
    }

    /// Sets the number of CTAs that plans have for each stream of a rank.
    pub(crate) fn with_parts(self, parts: u32) -> Self {
        Self { calls: self.calls.parts(parts), ..self }
    }

    pub(crate) fn nranks(&self) -> u32 {
        self.calls.rank().nranks()
    }

    pub(crate) fn failure(&self) -> MutexGuard<'_, Option<Refusal>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calls that no algorithm runs.
    pub(crate) fn unfit(&self) -> MutexGuard<'_, HashMap<Call, String>> {
        self.unfit.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a failure after which the communicator is of no use.
    pub(crate) fn keep(&self, refusal: Refusal) -> Refusal {
        if matches!(refusal.0, Code::REMOTE | Code::CUDA | Code::INTERNAL) {
            self.failure().get_or_insert_with(|| refusal.clone());
        }
        refusal
    }

    /// Whether the program has revoked the communicator.
    pub(crate) fn is_revoked(&self) -> bool {
        self.failure().as_ref().is_some_and(|Refusal(code, _)| *code == Code::INVALID_USAGE)
    }

    /// Returns the failure of the communicator, if it has failed.
    pub(crate) fn state(&self) -> Option<Refusal> {
        if let Err(ended) = self.calls.check() {
            self.keep(ended.into());
        }
        self.failure().clone()
    }

    /// Ends all calls of all ranks.
    pub(crate) fn abort(&self, code: Code, why: &str) {
        self.failure().get_or_insert_with(|| Refusal(code, why.to_owned()));
        // A world that has failed before needs no end.
        _ = self.calls.abort(why);
        _ = self.world.abort(why);
    }

    /// Leaves the world, unless another thread is in a call, with which the rank leaves.
    ///
    /// # Errors
    /// A call that was void.
    pub(crate) fn leave(own: Arc<Self>) -> Result<(), Refusal> {
        let Ok(Self { world, calls, order, failure, .. }) = Arc::try_unwrap(own) else {
            return Ok(());
        };
        let failed = failure.into_inner().unwrap_or_else(PoisonError::into_inner);
        drop((calls, order));
        // A world that failed is left without a word.
        if failed.is_none() { Ok(world.leave()?) } else { Ok(()) }
    }
}

/// Has the ranks agree that all of them have a device, and equal settings.
fn agree(world: &World, device: &Result<usize, Refusal>) -> Result<(), Refusal> {
    let settings = settings();
    let mine = [u64::from(device.is_ok()), u64::from(settings.wrong.is_none()), settings.digest()];
    let mut all = vec![0; mine.len() * world.nranks() as usize];
    world.rank().all_gather(&mine, &mut all)?;
    let find = |is: &dyn Fn(&[u64]) -> bool| all.chunks_exact(mine.len()).position(is);
    let is_this = |rank: usize| rank == world.rank().id() as usize;
    let usage = |why: String| Err(Refusal(Code::INVALID_USAGE, why));
    if let Some(rank) = find(&|said| said[1] == 0) {
        return usage(match &settings.wrong {
            Some(why) if is_this(rank) => why.clone(),
            _ => format!("the settings of rank {rank} make no sense, as it says"),
        });
    }
    if let Some(rank) = find(&|said| said[2] != all[2]) {
        let variables =
            [ALGORITHM, selection::VARIABLE, "ROUNDELAY_ORDER", TAKE, AVERAGE].join(", ");
        return usage(format!(
            "rank {rank} has other settings than rank 0; {variables} must be equal on all ranks"
        ));
    }
    match (find(&|said| said[0] == 0), device) {
        (Some(rank), Err(why)) if is_this(rank) => Err(why.clone()),
        (Some(rank), _) => Err(Refusal(Code::SYSTEM, format!("rank {rank} has no GPU"))),
        (None, _) => Ok(()),
    }
}
