//! A rank of a world of several hosts: the host of each rank, and the transports of its messages.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, TryLockError};

use roundelay_core::ids::RankId;
use roundelay_core::schedule::RANK_LIMIT;

use super::carrier::Carrier;
use crate::shared_memory::{UniqueId, World};
use crate::{Error, Options};

/// The rank of this process in a world of several hosts.
///
/// The ranks of each host are the ranks of a [`World`] of that host, in an order that is the same for all processes.
pub struct Hosts {
    pub(super) world: Arc<World>,
    pub(super) carrier: Arc<dyn Carrier>,
    lists: Box<[Vec<u32>]>,
    /// For each rank: its host, and its place among the ranks of that host.
    places: Box<[(u32, u32)]>,
    rank: u32,
    /// The carrier's number for each rank.
    pub(super) numbers: Box<[u32]>,
    /// Held during a call.
    calling: Mutex<()>,
    /// The world of the first ranks of all hosts, made when it is needed, if this rank is one of them.
    leaders: OnceLock<Result<Arc<Hosts>, Error>>,
    /// Held, for each rank, by the thread that sends to it beside calls, or that receives from it.
    pub(super) sending: Box<[Mutex<()>]>,
    pub(super) receiving: Box<[Mutex<()>]>,
}

impl fmt::Debug for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hosts")
            .field("hosts", &self.lists)
            .field("rank", &self.rank)
            .finish_non_exhaustive()
    }
}

impl Hosts {
    /// Makes this process rank `rank`: `hosts` has the ranks of each host, the same for all processes, `world` joins
    /// the ranks of this process's host, in the order in which `hosts` has them, and `carrier` brings messages to the
    /// ranks of other hosts.
    ///
    /// # Errors
    /// E0427 where `hosts` does not hold each rank once, or its list for this host does not fit `world`; E0409 for no
    /// ranks or too many.
    pub fn new(
        mut world: World,
        mut hosts: Vec<Vec<u32>>,
        rank: u32,
        carrier: Arc<dyn Carrier>,
    ) -> Result<Self, Error> {
        let wrong = |what: String| Err(Error::NotJoined { what });
        hosts.retain(|ranks| !ranks.is_empty());
        let nranks: usize = hosts.iter().map(Vec::len).sum();
        if nranks == 0 || nranks > RANK_LIMIT as usize {
            return Err(Error::NoRanks { nranks: nranks.min(u32::MAX as usize) as u32 });
        }
        let mut places = vec![(u32::MAX, 0); nranks];
        for (host, ranks) in (0..).zip(&hosts) {
            for (at, member) in (0..).zip(ranks) {
                match places.get_mut(*member as usize) {
                    Some(place @ (u32::MAX, _)) => *place = (host, at),
                    Some(_) => {
                        return wrong(format!("rank {member} is named twice among the hosts"));
                    }
                    None => {
                        return wrong(format!(
                            "the hosts have {nranks} ranks together, and one of them is rank {member}; name each of 0..{nranks} once"
                        ));
                    }
                }
            }
        }
        let Some(&(host, at)) = places.get(rank as usize) else {
            return Err(Error::NoSuchRank { rank: RankId(rank), nranks: nranks as u32 });
        };
        let here = &hosts[host as usize];
        if (world.nranks() as usize, world.rank()) != (here.len(), at) {
            return wrong(format!(
                "rank {rank} stands at place {at} of {} ranks of its host, and is rank {} of {} in the world of that host; bring them together in the order in which they stand",
                here.len(),
                world.rank(),
                world.nranks()
            ));
        }
        world.call_ranks(here.iter().copied());
        let locks = || (0..nranks).map(|_| Mutex::default()).collect();
        Ok(Self {
            world: Arc::new(world),
            carrier,
            lists: hosts.into(),
            places: places.into(),
            rank,
            numbers: (0..nranks as u32).collect(),
            calling: Mutex::default(),
            leaders: OnceLock::new(),
            sending: locks(),
            receiving: locks(),
        })
    }

    /// Returns the number of ranks of all hosts.
    pub fn nranks(&self) -> u32 {
        self.places.len() as u32
    }

    /// Returns the rank of this process, counted from 0.
    pub fn rank(&self) -> u32 {
        self.rank
    }

    /// Returns the ranks of each host.
    pub fn hosts(&self) -> &[Vec<u32>] {
        &self.lists
    }

    /// Returns the world of this host.
    pub fn world(&self) -> &Arc<World> {
        &self.world
    }

    /// Returns the options of calls and waits.
    pub fn options(&self) -> Options {
        self.world.options()
    }

    /// Returns the world of the first ranks of all hosts, in which each host has one rank, if this rank is one of them.
    ///
    /// # Errors
    /// E0429 where the system refuses the resources of a world of one rank.
    pub(super) fn leaders(&self) -> Result<Option<Arc<Self>>, Error> {
        let (host, place) = self.places[self.rank as usize];
        if place != 0 {
            return Ok(None);
        }
        let leaders = self.leaders.get_or_init(|| {
            let alone = World::join(&UniqueId::new()?, 1, 0, self.options())?;
            let lists = (0..self.lists.len() as u32).map(|host| vec![host]).collect();
            let mut leaders = Self::new(alone, lists, host, self.carrier.clone())?;
            leaders.numbers = self.lists.iter().map(|ranks| ranks[0]).collect();
            Ok(Arc::new(leaders))
        });
        leaders.clone().map(Some)
    }

    /// Takes the turn of a call.
    ///
    /// # Errors
    /// E0412 where another thread is in a call.
    pub(super) fn call(&self) -> Result<MutexGuard<'_, ()>, Error> {
        match self.calling.try_lock() {
            Ok(turn) => Ok(turn),
            Err(TryLockError::Poisoned(turn)) => Ok(turn.into_inner()),
            Err(TryLockError::WouldBlock) => Err(Error::RankBusy { rank: RankId(self.rank) }),
        }
    }

    /// Returns the transport of messages between hosts.
    pub fn carrier(&self) -> &dyn Carrier {
        &*self.carrier
    }

    /// Whether any rank is on another host.
    pub(super) fn are_several(&self) -> bool {
        self.world.nranks() < self.nranks()
    }

    /// Returns the number of a rank in this host's world, if the rank is on this host.
    pub(super) fn nearby(&self, rank: u32) -> Option<usize> {
        let (host, at) = self.places[rank as usize];
        (host == self.places[self.rank as usize].0).then_some(at as usize)
    }
}
