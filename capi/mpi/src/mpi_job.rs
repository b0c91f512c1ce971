//! The job as `MPI_Init` finds it: which ranks are on this host, and whether all ranks have this library. It is found
//! without a call of MPI, which ranks without the library would not join.

use std::fmt;
use std::time::Duration;

use roundelay::{Options, World};
use roundelay_kernels::mpi::{Mpi, MpiArithmetic};

use crate::own;
use crate::refusals::Refusals;
use crate::rendezvous::{self, Known};

/// The time that ranks wait for other ranks of the host, which may lack this library.
const DEADLINE: Duration = Duration::from_secs(10);

/// The job as this process sees it.
pub(crate) struct MpiJob {
    pub(crate) rank: u32,
    /// The places of the ranks, or why all calls are MPI's.
    pub(crate) here: Result<Here, Not>,
}

/// Why all calls are MPI's.
#[derive(Clone, Debug)]
pub(crate) enum Not {
    /// The job has no calls to take.
    Nothing(&'static str),
    /// Ranks did not meet; the user is told.
    Unmet(String),
}

impl fmt::Display for Not {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing(why) => f.write_str(why),
            Self::Unmet(why) => f.write_str(why),
        }
    }
}

/// The places of the ranks.
pub(crate) struct Here {
    pub(crate) known: Known,
    /// Why the places of some ranks are not known.
    pub(crate) elsewhere: String,
    /// The mistakes that MPI refuses.
    pub(crate) refusals: Refusals,
    /// How MPI combines values on all ranks whose places are known.
    pub(crate) arithmetic: MpiArithmetic,
}

impl MpiJob {
    /// Finds the job of a process whose MPI has begun, and whose settings have this digest.
    pub(crate) fn new(mpi: &Mpi, settings: u64) -> Self {
        let functions = mpi.functions();
        let (mut size, mut rank, mut parent) = (0, 0, 0);
        // SAFETY: there is room for the answers.
        let wrong = unsafe {
            [
                (functions.comm_size)(mpi.comm_world(), &raw mut size),
                (functions.comm_rank)(mpi.comm_world(), &raw mut rank),
                (functions.comm_get_parent)(&raw mut parent),
            ]
        };
        let (size, rank) = (size as u32, rank as u32);
        let here = if wrong != [0; 3] {
            Err(Not::Nothing("MPI does not tell its ranks"))
        } else if size == 1 {
            Err(Not::Nothing("one rank"))
        } else if parent != mpi.comm_null() {
            // Their launcher tells them the names of the job that started them.
            Err(Not::Nothing("ranks that were spawned"))
        } else {
            here(mpi, size, rank, settings).map_err(Not::Unmet)
        };
        Self { rank, here }
    }
}

/// Meets the ranks of this host, and then, through `roundelay mpirun`, the ranks of the other hosts.
///
/// # Errors
/// Why all calls are MPI's.
fn here(mpi: &Mpi, size: u32, rank: u32, settings: u64) -> Result<Here, String> {
    let tried = own::begin(mpi, |own| (Refusals::of(mpi, own), MpiArithmetic::probe(mpi, own)));
    let met = tried.ok_or_else(|| "MPI makes no communicator for it".to_owned());
    let met = met.and_then(|(refusals, arithmetic)| {
        meet(size, rank, settings, arithmetic)
            .map(|(world, known, all)| (world, known, all, refusals))
    });
    let (world, mine, arithmetic, refusals) = match met {
        Ok(met) => met,
        Err(why) => {
            // The other hosts need not wait for this one.
            rendezvous::give_up(&why);
            return Err(why);
        }
    };
    if mine.hosts.iter().all(Option::is_some) {
        return Ok(Here { known: mine, elsewhere: String::new(), refusals, arithmetic });
    }
    let told = world.rank().id() == 0;
    let all = if told { rendezvous::of_hosts(&mine, settings) } else { Err(String::new()) };
    Ok(match spread(&world, all)? {
        Ok(known) => {
            // All ranks of the job are here.
            let arithmetic = arithmetic.and_of_all(mpi).map_err(|error| unmet(&error.into()))?;
            Here { known, elsewhere: String::new(), refusals, arithmetic }
        }
        Err(elsewhere) => Here { known: mine, elsewhere, refusals, arithmetic },
    })
}

/// Meets the ranks of this host, which all have this library.
///
/// # Errors
/// Why they do not meet, in equal words on all of them.
fn meet(
    size: u32,
    rank: u32,
    settings: u64,
    arithmetic: MpiArithmetic,
) -> Result<(World, Known, MpiArithmetic), String> {
    /// The words of a rank: its number, its cores, its settings, and its arithmetic.
    const WORDS: usize = 3 + MpiArithmetic::WORDS;
    let world = World::from_env_of_host(Options::new().deadline(DEADLINE))
        .map_err(|error| unmet(&error))?;
    let mut mine = [0; WORDS];
    let cores = u64::from(roundelay_kernels::shared_memory::World::cores());
    mine[..3].copy_from_slice(&[u64::from(rank), cores, settings]);
    mine[3..].copy_from_slice(&arithmetic.words());
    let mut all = vec![0; mine.len() * world.nranks() as usize];
    world.rank().all_gather(&mine, &mut all).map_err(|error| unmet(&error))?;
    let said = || all.chunks_exact(WORDS);
    if said().any(|said| said[2] != settings) {
        return Err(rendezvous::DIFFER.to_owned());
    }
    let mut hosts = vec![None; size as usize];
    for said in said() {
        match hosts.get_mut(said[0] as usize) {
            Some(host @ None) => *host = Some(0),
            _ => return Err("the ranks of this host are of several jobs".to_owned()),
        }
    }
    let cores = said().map(|said| said[1] as u32).min().unwrap_or(1);
    let arithmetic = said().fold(arithmetic, |all, said| all.and(&said[3..]));
    Ok((world, Known { hosts, cores: vec![cores] }, arithmetic))
}

fn unmet(error: &roundelay::Error) -> String {
    format!("the ranks of this host did not meet: {error}")
}

/// Passes the answer that the first rank of a host got to all ranks of the host.
fn spread(world: &World, told: Result<Known, String>) -> Result<Result<Known, String>, String> {
    let mut bytes = match told {
        Ok(known) => known.to_bytes(),
        Err(why) => [&[0], why.as_bytes()].concat(),
    };
    let mut len = [bytes.len() as u64];
    world.rank().broadcast(&mut len, 0).map_err(|error| unmet(&error))?;
    bytes.resize(len[0] as usize, 0);
    world.rank().broadcast(&mut bytes, 0).map_err(|error| unmet(&error))?;
    Ok(Known::from_bytes(&bytes).ok_or_else(|| String::from_utf8_lossy(&bytes[1..]).into_owned()))
}
