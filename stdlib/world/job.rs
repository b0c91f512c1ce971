//! A world of the ranks of an MPI job on several hosts.

use roundelay_kernels::mpi::MpiJob;
use roundelay_kernels::shared_memory::{self, UniqueId, host_key};

use super::World;
use crate::{Error, Options};

/// The bytes that a rank sends the other ranks: its host, and an id for its world if it is the first rank there.
const RECORD: usize = 32 + UniqueId::BYTES;

impl World {
    /// Joins the world of the MPI job that this process is of.
    ///
    /// # Errors
    /// E0427 where there is no MPI, or the ranks of a host do not meet.
    pub(super) fn over_mpi(options: Options) -> Result<Self, Error> {
        let job = MpiJob::begin()?;
        let mine = [&host_key()[..], UniqueId::new()?.as_bytes()].concat();
        let all = job.allgather(&mine)?;
        let mut hosts: Vec<(&[u8], Vec<u32>)> = Vec::new();
        for (rank, record) in (0..).zip(all.chunks_exact(RECORD)) {
            let key = &record[..32];
            match hosts.iter_mut().find(|(known, _)| *known == key) {
                Some((_, ranks)) => ranks.push(rank),
                None => hosts.push((key, vec![rank])),
            }
        }
        let hosts: Vec<Vec<u32>> = hosts.into_iter().map(|(_, ranks)| ranks).collect();
        let is_here = |ranks: &&Vec<u32>| ranks.contains(&job.rank);
        let here = hosts.iter().find(is_here).expect("each rank is on its host");
        let local = here.iter().take_while(|rank| **rank != job.rank).count();
        let id = &all[here[0] as usize * RECORD + 32..];
        let id = UniqueId::from_bytes(*id.first_chunk().expect("a record has an id"));
        let joined = shared_memory::World::join(&id, here.len() as u32, local as u32, options);
        // The ranks of another host may not have met: then no rank goes on.
        let met = job.allgather(&[u8::from(joined.is_ok())])?;
        let engine = joined?;
        if let Some(rank) = met.iter().position(|met| *met == 0) {
            let what = format!("the ranks on the host of rank {rank} did not meet, as they say");
            return Err(roundelay_kernels::Error::NotJoined { what }.into());
        }
        Self::over_hosts(engine, hosts, job.rank, job.carrier()?)?.measure_link()
    }
}
