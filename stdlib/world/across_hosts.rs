//! Worlds whose ranks are on several hosts.

use std::sync::Arc;
use std::time::Instant;

use roundelay_kernels::network::{Carrier, ConnectionFacts, Hosts};
use roundelay_kernels::shared_memory;

use super::World;
use super::refusals::Parting;
use crate::comm::Comm;
use crate::comm::choices::Chosen;
use crate::comm::plan_cache::Kept;
use crate::comm::spread::Spread;
use crate::comm::wire::{LONG, Wire};
use crate::{Error, ReduceOp};

/// The numbers of timed calls of one element and of long calls; the least time counts, as the first call pays for the
/// setup.
const SHORT: u32 = 12;
const FEW: u32 = 4;

impl World {
    /// Makes the world of an engine that has met.
    #[doc(hidden)]
    pub fn over_host(host: shared_memory::World) -> Self {
        Self::of(host)
    }

    /// Makes a world of several hosts, in which this process is rank `rank`: `hosts` has the ranks of each host, equal
    /// on all processes; `host` joins the ranks of this process's host, in the order in which they stand there; and
    /// `carrier` brings messages to ranks of other hosts. The options are those of `host`.
    ///
    /// The calls are those of a world of one host, by algorithms that are converted to sends and receives. Where all
    /// hosts have equally many ranks, the algorithms are by default the library's algorithms on two levels.
    ///
    /// * [`World::alloc`] lends memory of this host.
    /// * [`World::split`] makes worlds whose ranks are on several hosts, and [`World::shrink`] any, if the carrier can
    ///   ([`Carrier::open_place`], [`Carrier::survivors`]); else they are refused (E0427).
    /// * [`World::abort`] ends the calls of all hosts, if the carrier can tell them ([`Carrier::abort`]), as those of TCP
    ///   and UCX can; over MPI it ends this host's, and ranks of other hosts wait until the deadline.
    /// * A call in which ranks of this host differ (E0414) ends the world, for other hosts may be in it already. The
    ///   calls of ranks of different hosts are not compared: ranks whose calls differ wait for each other until the
    ///   deadline.
    ///
    /// # Errors
    /// E0427 where `hosts` does not hold each rank once, or `host` is not the host of this process; E0409 for no ranks
    /// or too many; E0411 for a rank beyond the last.
    #[doc(hidden)]
    pub fn over_hosts(
        host: shared_memory::World,
        hosts: Vec<Vec<u32>>,
        rank: u32,
        carrier: Arc<dyn Carrier>,
    ) -> Result<Self, Error> {
        let hosts = Arc::new(Hosts::new(host, hosts, rank, carrier)?);
        let chosen = Chosen::over(Spread::new(hosts.hosts()));
        Ok(Self {
            progress: Arc::default(),
            turns: Arc::default(),
            parting: Arc::new(Parting::of(hosts.world())),
            engine: hosts.world().clone(),
            hosts: Some(hosts),
            chosen,
            plans: Kept::in_common(Comm::PLANS),
            blocks: Kept::in_common(Comm::PLANS),
        })
    }

    /// Measures the link between hosts, by which the library's algorithms are chosen from now on; does nothing on one
    /// host. All ranks call it at once, as any call: it consists of some calls, which take as long as 3 MB between
    /// hosts.
    ///
    /// # Errors
    /// The errors of a call.
    #[doc(hidden)]
    pub fn measure_link(self) -> Result<Self, Error> {
        let Some(hosts) = self.hosts.as_ref().map(|hosts| hosts.hosts().len()) else {
            return Ok(self);
        };
        if hosts > 1 {
            let mut times = [self.seconds(1, SHORT)?, self.seconds(LONG / size_of::<f32>(), FEW)?];
            // The slowest link, equal on all ranks.
            self.rank().all_reduce(&mut times, ReduceOp::Max)?;
            self.chosen.joined_by(Wire::of(times, hosts));
        }
        Ok(self)
    }

    /// Returns the ranks of each host.
    #[doc(hidden)]
    pub fn hosts(&self) -> Vec<Vec<u32>> {
        match &self.hosts {
            Some(hosts) => hosts.hosts().to_vec(),
            None => vec![(0..self.nranks()).collect()],
        }
    }

    /// Returns the name of the carrier that brings messages to ranks of other hosts, with what it goes over, such as `TCP
    /// over eth0, 10.0.0.1`, `UCX 1.22.0 over tcp (eth0)` or `MPI, Open MPI v5.0.11`; `None` in a world that was made for
    /// one host. The environment variable `ROUNDELAY_CARRIER` chooses it ([`World::from_env`]).
    pub fn carrier(&self) -> Option<String> {
        Some(self.hosts.as_ref()?.carrier().name())
    }

    /// Returns the facts of the connection by which messages go to rank `to` of another host, where its carrier tells them.
    #[doc(hidden)]
    pub fn connection(&self, to: u32) -> Option<ConnectionFacts> {
        self.hosts.as_ref()?.carrier().connection(to)
    }

    /// Makes some calls, and returns the least time.
    fn seconds(&self, count: usize, calls: u32) -> Result<f64, Error> {
        let (mut rank, mut buffer) = (self.rank(), vec![0.0_f32; count]);
        let mut least = f64::INFINITY;
        for _ in 0..calls {
            let begun = Instant::now();
            rank.all_reduce(&mut buffer, ReduceOp::Sum)?;
            least = least.min(begun.elapsed().as_secs_f64());
        }
        Ok(least)
    }

    /// Whether members of a part, each behind its key, are on several hosts.
    pub(super) fn are_apart(&self, members: &[(i64, u32)]) -> bool {
        let Some(hosts) = &self.hosts else { return false };
        let host =
            |(_, rank): &(i64, u32)| hosts.hosts().iter().position(|ranks| ranks.contains(rank));
        members.iter().any(|member| host(member) != host(&members[0]))
    }
}
