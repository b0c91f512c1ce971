//! Sends and receives without an NCCL. Each direction between two ranks is a lane: a world of the two, in which a message is
//! a broadcast, and a stream, on which messages follow each other. So the messages of a group are under way at once, as
//! NCCL demands, and no order of sends and receives among several ranks makes one of them wait for itself.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use roundelay::UniqueId as WorldId;
use roundelay::cuda::cudarc::driver::CudaStream;

use crate::call_errors::Refusal;
use crate::own_comm::{DEADLINE, OwnComm, RankPlace};
use crate::types::Code;

/// The time after which a rank that waits for the other rank of a lane looks whether its communicator is still good.
const LOOK: Duration = Duration::from_secs(2);
/// The CTAs of a message: lanes hold the device at once, and one that found no room would wait for ever.
const PARTS: u32 = 2;

/// The ranks of a lane: that which sends, and that which receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ends {
    pub(crate) from: u32,
    pub(crate) to: u32,
}

/// A direction between two ranks.
pub(crate) struct Lane {
    /// The world of the two, whose rank 0 sends.
    pub(crate) own: Arc<OwnComm>,
    pub(crate) stream: Arc<CudaStream>,
}

/// The lanes of a communicator, by their ends.
#[derive(Default)]
pub(crate) struct Lanes(Mutex<HashMap<Ends, Arc<Lane>>>);

impl Lanes {
    fn all(&self) -> MutexGuard<'_, HashMap<Ends, Arc<Lane>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the lane of these ends, if they have met.
    pub(crate) fn find(&self, ends: Ends) -> Option<Arc<Lane>> {
        self.all().get(&ends).cloned()
    }

    /// Meets the other end of a new lane of a communicator with this name, and returns the lane.
    ///
    /// # Errors
    /// The failure of the communicator; the other end does not come.
    pub(crate) fn open(&self, name: &str, own: &OwnComm, ends: Ends) -> Result<Arc<Lane>, Refusal> {
        let Ends { from, to } = ends;
        let id = WorldId::of_job(&format!("{name} lane from {from} to {to}"));
        let rank = u32::from(own.calls.rank().rank().0 == to);
        let place = RankPlace { nranks: 2, rank, device: Ok(own.device) };
        let begun = Instant::now();
        let met = loop {
            let tried = Instant::now();
            match OwnComm::meet(&id, &place, LOOK) {
                Ok(met) => break met,
                Err(refusal) if tried.elapsed() < LOOK || begun.elapsed() > DEADLINE => {
                    return Err(refusal);
                }
                Err(_) => own.state().map_or(Ok(()), Err)?,
            }
        };
        let met = met.with_parts(PARTS);
        let stream = met.calls.rank().context().new_stream()?;
        let lane = Arc::new(Lane { own: Arc::new(met), stream });
        self.all().insert(ends, lane.clone());
        Ok(lane)
    }

    /// Ends the messages that are under way.
    pub(crate) fn abort(&self, code: Code, why: &str) {
        for lane in self.all().values() {
            lane.own.abort(code, why);
        }
    }

    /// Waits until the messages are over.
    ///
    /// # Errors
    /// A message failed.
    pub(crate) fn wait(&self) -> Result<(), Refusal> {
        let lanes: Vec<_> = self.all().values().cloned().collect();
        lanes.iter().try_for_each(|lane| Ok(lane.own.calls.wait()?))
    }

    /// Returns the failure of a lane, if one has failed.
    pub(crate) fn state(&self) -> Option<Refusal> {
        let lanes: Vec<_> = self.all().values().cloned().collect();
        lanes.iter().find_map(|lane| lane.own.state())
    }
}
