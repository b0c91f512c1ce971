//! The communicators of this process by their handles, and how their ranks meet. Over the real NCCL, a seat stands beside
//! its communicator: its ranks meet once NCCL has made the communicator for all of them, by a name that follows from
//! NCCL's id, or from the communicator that it was split from.

use std::collections::HashMap;
use std::env;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use roundelay::UniqueId as WorldId;
use roundelay_kernels::shared_memory::World as HostWorld;

use crate::call_errors::{Refusal, caught, wrong};
use crate::lanes::{Ends, Lane, Lanes};
use crate::own_comm::{OwnComm, RankPlace};
use crate::process::process;
use crate::types::{Code, Comm, UniqueId};

/// The time in which the ranks of a communicator come together, after NCCL has made it for all of them.
const PATIENCE: Duration = Duration::from_secs(5);
/// The same time after ranks did not come: they are on other hosts, or do not have this library.
const LITTLE_PATIENCE: Duration = Duration::from_secs(1);

/// NCCL's variable with the name of a host: ranks with different names are on different hosts.
const HOST: &str = "NCCL_HOSTID";

/// The world of a communicator, or why it has none.
pub(crate) type Outcome = Result<Arc<OwnComm>, Arc<str>>;

/// A communicator.
pub(crate) struct CommSeat {
    /// The name that all ranks have for it, and no other communicator.
    name: String,
    /// The communicators that were made of this one.
    parts: AtomicU32,
    shrinks: AtomicU32,
    outcome: OnceLock<Outcome>,
    /// Those for sends and receives, in the alone mode.
    pub(crate) lanes: Lanes,
    /// Whether the program has let go of it.
    is_gone: Mutex<bool>,
}

static SEATS: LazyLock<Mutex<HashMap<usize, Arc<CommSeat>>>> = LazyLock::new(Mutex::default);

fn seats() -> MutexGuard<'static, HashMap<usize, Arc<CommSeat>>> {
    SEATS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the seat of a communicator, if it has one.
pub(crate) fn find(comm: Comm) -> Option<Arc<CommSeat>> {
    seats().get(&comm.addr()).cloned()
}

/// Returns the seat and the world of a communicator of the alone mode.
pub(crate) fn seat(comm: Comm) -> Result<(Arc<CommSeat>, Arc<OwnComm>), Refusal> {
    let seat = find(comm);
    let own = seat.as_ref().and_then(|seat| seat.known()?.as_ref().ok().cloned());
    seat.zip(own).ok_or_else(|| wrong("the communicator is null, or was destroyed"))
}

/// Returns the world of a communicator of the alone mode.
pub(crate) fn world(comm: Comm) -> Result<Arc<OwnComm>, Refusal> {
    seat(comm).map(|(_, own)| own)
}

/// Removes the seat of a communicator that goes, and returns it. No call of NCCL about the communicator comes from here then.
pub(crate) fn remove(comm: Comm) -> Option<Arc<CommSeat>> {
    let seat = seats().remove(&comm.addr())?;
    *seat.is_gone.lock().unwrap_or_else(PoisonError::into_inner) = true;
    Some(seat)
}

/// The name of the part of a color that a split makes.
pub(crate) fn name_of_part(split: &str, color: i32) -> String {
    format!("{split} color {color}")
}

/// The name of the communicator of an id.
pub(crate) fn name_of_id(id: &UniqueId) -> String {
    let digits = WorldId::from_bytes(id.bytes()).to_hex();
    format!("nccl {digits} on {}", env::var(HOST).unwrap_or_default())
}

impl CommSeat {
    /// Makes a seat whose ranks have not met.
    pub(crate) fn new(name: String) -> Arc<Self> {
        let (parts, shrinks) = (AtomicU32::new(0), AtomicU32::new(0));
        let (outcome, lanes, is_gone) = (OnceLock::new(), Lanes::default(), Mutex::default());
        Arc::new(Self { name, parts, shrinks, outcome, lanes, is_gone })
    }

    /// Gives the seat to the communicator of that handle.
    pub(crate) fn sit(self: &Arc<Self>, comm: Comm) {
        seats().insert(comm.addr(), self.clone());
    }

    /// The name of the next split of this communicator, in which all ranks take part.
    pub(crate) fn name_of_split(&self) -> String {
        let part = self.parts.fetch_add(1, Ordering::Relaxed);
        format!("{} part {part}", self.name)
    }

    /// The name of the next communicator without some ranks.
    pub(crate) fn name_without(&self, ranks: &[i32]) -> String {
        let mut ranks = ranks.to_vec();
        ranks.sort_unstable();
        let shrink = self.shrinks.fetch_add(1, Ordering::Relaxed);
        format!("{} shrink {shrink} without {ranks:?}", self.name)
    }

    /// Opens a lane of this communicator.
    ///
    /// # Errors
    /// Those of [`Lanes::open`].
    pub(crate) fn open_lane(&self, own: &OwnComm, ends: Ends) -> Result<Arc<Lane>, Refusal> {
        self.lanes.open(&self.name, own, ends)
    }

    /// Returns the world, and waits for it where the ranks are about to meet.
    pub(crate) fn own(&self) -> &Outcome {
        self.outcome.wait()
    }

    /// Returns the world, if the ranks have met or will not.
    pub(crate) fn known(&self) -> Option<&Outcome> {
        self.outcome.get()
    }

    /// Returns the world of a seat that goes.
    pub(crate) fn into_outcome(self) -> Option<Outcome> {
        self.outcome.into_inner()
    }

    /// Calls NCCL about the communicator, unless the program has let go of it.
    pub(crate) fn while_there<R>(&self, call: impl FnOnce() -> R) -> Option<R> {
        let is_gone = self.is_gone.lock().unwrap_or_else(PoisonError::into_inner);
        (!*is_gone).then(call)
    }

    /// Sets the world of a communicator of the alone mode.
    pub(crate) fn set_world(&self, own: OwnComm) {
        _ = self.outcome.set(Ok(Arc::new(own)));
    }

    /// Sets what became of the ranks' meeting.
    pub(crate) fn set(&self, outcome: Result<OwnComm, Refusal>) {
        let outcome = outcome.map(Arc::new).map_err(|Refusal(_, why)| {
            let first = why.lines().next().unwrap_or_default();
            let why = format!("a communicator's operations are left to NCCL: {first}");
            process().said.say(&why);
            first.into()
        });
        _ = self.outcome.set(outcome);
    }

    /// Meets the other ranks over the real NCCL, where they are on this host; `several` says that other ranks are of this
    /// process.
    pub(crate) fn meet(&self, place: &RankPlace, several: bool) {
        static IMPATIENT: AtomicBool = AtomicBool::new(false);
        self.set(caught(|| {
            let here = HostWorld::ranks_of_host().filter(|_| !several);
            if let Some(here) = here.filter(|here| *here < place.nranks) {
                let all = place.nranks;
                let why = format!("of its {all} ranks, the launcher started {here} on this host");
                return Err(Refusal(Code::INVALID_USAGE, why));
            }
            let impatient = IMPATIENT.load(Ordering::Relaxed);
            let patience = if impatient { LITTLE_PATIENCE } else { PATIENCE };
            let joined = OwnComm::join(&WorldId::of_job(&self.name), place, patience);
            let is_unmet =
                matches!(&joined, Err(error) if error.code() == roundelay::Code::NotJoined);
            IMPATIENT.store(is_unmet, Ordering::Relaxed);
            if is_unmet {
                let why = format!(
                    "not all of its {} ranks came within {patience:?}: others are on another host, or do without this library or its settings",
                    place.nranks
                );
                return Err(Refusal(Code::INVALID_USAGE, why));
            }
            OwnComm::on_device(joined?, &place.device)
        }));
    }
}
