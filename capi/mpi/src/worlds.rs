//! The world of a communicator's ranks: made in its first call that is ours, in which all ranks are.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use roundelay::{Options, UniqueId, World};
use roundelay_kernels::mpi::{Mpi, MpiCarrier};
use roundelay_kernels::shared_memory;

use crate::progress;
use crate::seats::{Joined, Ready, Seat};
use crate::settings::{Settings, Take};

/// The time that ranks in one call may take to meet.
const DEADLINE: Duration = Duration::from_secs(60);
/// Descriptors that a process keeps for itself, at the least.
const KEPT: u64 = 64;

/// Brings the ranks of a communicator together, which are all in one call of it.
pub(crate) fn meet(mpi: &'static Mpi, settings: &Settings, seat: &Seat) -> Joined {
    match join(mpi, settings, seat) {
        Ok(world) => {
            let world = Box::new(world);
            let there = std::ptr::from_ref(&*world);
            // SAFETY: the world stays where it is, in its box, and goes after the rank that looks at it.
            let rank = unsafe { &*there }.rank();
            Joined::World(Box::new(Ready { rank, world, unfit: Vec::new() }))
        }
        Err(why) => Joined::Refused(why),
    }
}

/// The bytes that a rank sends the other ranks: whether it can be in another world, and an id for its host.
const RECORD: usize = 8 + UniqueId::BYTES;

fn join(mpi: &'static Mpi, settings: &Settings, seat: &Seat) -> Result<World, String> {
    let unmet = |error: &dyn Display| format!("the ranks did not meet: {error}");
    let id = UniqueId::new();
    let able = id.is_ok() && has_room(seat.size) && progress::begin(mpi).is_ok();
    let mut mine = vec![u8::from(able); RECORD];
    if let Ok(id) = &id {
        mine[8..].copy_from_slice(id.as_bytes());
    }
    let allgather =
        |mine: &[u8]| mpi.allgather(seat.comm, seat.size, mine).map_err(|error| unmet(&error));
    let all = allgather(&mine)?;
    let of = |rank: u32| &all[rank as usize * RECORD..][..RECORD];
    if (0..seat.size).any(|rank| of(rank)[0] == 0) {
        return Err("a rank has no room for another world".to_owned());
    }
    let host = seat.by_host.iter().find(|ranks| ranks.contains(&seat.rank));
    let host = host.ok_or("the host of this rank is not known")?;
    let local = host.iter().position(|rank| *rank == seat.rank).unwrap_or_default();
    let id = UniqueId::from_bytes(*of(host[0])[8..].first_chunk().ok_or("no id")?);
    let options = Options::new().deadline(DEADLINE);
    let joined = shared_memory::World::join(&id, host.len() as u32, local as u32, options);
    if seat.hosts() > 1 {
        // The ranks of another host may not have met.
        let met = allgather(&[u8::from(joined.is_ok())])?;
        if met.contains(&0) {
            let why =
                joined.err().map_or("those of another host".to_owned(), |error| error.to_string());
            return Err(unmet(&why));
        }
    }
    let engine = joined.map_err(|error| unmet(&error))?;
    engine.set_deadline(Duration::MAX);
    engine.set_progress(|| progress::make(mpi));
    let world = if seat.hosts() == 1 {
        World::over_host(engine)
    } else {
        let carrier = MpiCarrier::of_copy(mpi, seat.comm).map_err(|error| unmet(&error))?;
        let hosts = seat.by_host.clone();
        let world = World::over_hosts(engine, hosts, seat.rank, Arc::new(carrier));
        // Without `Take::All` each call has one algorithm, so no link is measured.
        match settings.take {
            Take::All => world.and_then(World::measure_link),
            Take::Faster | Take::Table => world,
        }
        .map_err(|error| unmet(&error))?
    };
    Ok(settings
        .own
        .iter()
        .fold(world, |world, own| world.using_between(&own.bytes, own.algorithm.clone())))
}

/// Whether this process can hold a descriptor for each rank, and the program still some.
fn has_room(ranks: u32) -> bool {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    let most = shared_memory::World::most_descriptors();
    // Half of the descriptors stay the program's.
    open + 2 * u64::from(ranks) + KEPT < most / 2
}
