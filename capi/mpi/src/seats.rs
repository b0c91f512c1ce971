//! Communicators: the facts about each, and the world of its ranks once a call needs it. A seat hangs on an attribute,
//! and goes when MPI frees the communicator.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use roundelay::{Call, ChosenWay, Rank, World};
use roundelay_interposer::Contests;
use roundelay_kernels::mpi::{Abi, Functions, Handle, Mpi};

use crate::call::MpiCollective;
use crate::choice::Maker;
use crate::mpi_job::MpiJob;

/// A communicator.
pub(crate) struct Seat {
    id: u64,
    pub(crate) comm: Handle,
    pub(crate) size: u32,
    /// The number of this process in it.
    pub(crate) rank: u32,
    /// The ranks on each host, by the numbers of this communicator; the hosts in the order of their first ranks.
    pub(crate) by_host: Vec<Vec<u32>>,
    /// Whether some host has more ranks than cores.
    pub(crate) crowded: bool,
    pub(crate) maker: Maker,
    /// Why all its calls are MPI's, if they are.
    pub(crate) all: Option<String>,
    /// The state after the first call of ours.
    pub(crate) joined: Mutex<Joined>,
    pub(crate) contests: Contests<MpiCollective>,
}

impl Seat {
    pub(crate) fn hosts(&self) -> usize {
        self.by_host.len()
    }

    /// Adds the ways that the world of its ranks has chosen.
    fn add_ways(&self, ways: &mut WorldWays) {
        let joined = self.joined.lock().unwrap_or_else(PoisonError::into_inner);
        if let Joined::World(ready) = &*joined {
            let of_call = |way: ChosenWay| ((self.size, way.call.clone()), way);
            ways.extend(ready.world.ways().into_iter().map(of_call));
        }
    }
}

/// The ways of data that worlds have chosen, by the number of ranks and the call.
pub(crate) type WorldWays = BTreeMap<(u32, String), ChosenWay>;

/// The state of a communicator after its first call of ours.
pub(crate) enum Joined {
    NotYet,
    World(Box<Ready>),
    /// Its ranks could not meet, and all ranks know that.
    Refused(String),
}

/// A world that is ready for calls.
pub(crate) struct Ready {
    // Declared before the world that it borrows, so that it is dropped first.
    pub(crate) rank: Rank<'static>,
    pub(crate) world: Box<World>,
    /// Calls that the algorithm for them cannot run, and why.
    pub(crate) unfit: Vec<(Call, String)>,
}

/// All communicators that have been seen.
static SEATS: Mutex<BTreeMap<Handle, Arc<Seat>>> = Mutex::new(BTreeMap::new());
/// The ways that the worlds of freed communicators had chosen.
static WAYS: Mutex<WorldWays> = Mutex::new(BTreeMap::new());
/// The number of communicators that were freed: a thread's memory of one is valid while this does not change.
static GONE: AtomicU64 = AtomicU64::new(0);
static NEXT: AtomicU64 = AtomicU64::new(1);
/// The attribute; `None` where MPI gives none.
static KEYVAL: OnceLock<Option<c_int>> = OnceLock::new();

thread_local! {
    /// The communicator of the call before, and how many had gone by then.
    static LAST: RefCell<Option<(Handle, u64, Arc<Seat>)>> = const { RefCell::new(None) };
}

/// Returns the seat of a communicator; `None` where MPI knows no such communicator.
pub(crate) fn seat(mpi: &Mpi, job: &MpiJob, comm: Handle) -> Option<Arc<Seat>> {
    let comm = mpi.abi().clean(comm);
    let gone = gone();
    let remembered = LAST.with_borrow(|last| match last {
        Some((known, then, seat)) if *known == comm && *then == gone => Some(seat.clone()),
        _ => None,
    });
    if remembered.is_some() {
        return remembered;
    }
    let known = all().get(&comm).cloned();
    let seat = match known {
        Some(seat) => seat,
        None => first(mpi, job, comm)?,
    };
    LAST.set(Some((comm, gone, seat.clone())));
    Some(seat)
}

/// Returns the number of communicators that were freed: the memory of one is valid while this does not change.
pub(crate) fn gone() -> u64 {
    GONE.load(Ordering::Acquire)
}

/// Returns the ways that the worlds of all communicators have chosen, as far as this rank measures for them.
pub(crate) fn ways() -> WorldWays {
    let mut ways = WAYS.lock().unwrap_or_else(PoisonError::into_inner).clone();
    for seat in all().values() {
        seat.add_ways(&mut ways);
    }
    ways
}

/// Lets go of all communicators, before MPI ends.
pub(crate) fn leave_all() {
    let seats = std::mem::take(&mut *all());
    GONE.fetch_add(1, Ordering::Release);
    LAST.set(None);
    for (_, seat) in seats {
        if seat.hosts() > 1 {
            // Freeing a communicator is for all of its ranks at once, and MPI ends all that are left.
            std::mem::forget(seat);
        }
    }
}

fn all() -> std::sync::MutexGuard<'static, BTreeMap<Handle, Arc<Seat>>> {
    SEATS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes the seat of a communicator that is seen for the first time, without communication.
fn first(mpi: &Mpi, job: &MpiJob, comm: Handle) -> Option<Arc<Seat>> {
    if !mpi.may_be_comm(comm) {
        return None;
    }
    let functions = mpi.functions();
    let (mut inter, mut size, mut rank): (c_int, c_int, c_int) = (0, 0, 0);
    // SAFETY: there is room for the answers; MPI refuses a handle that is invalid.
    let known = unsafe {
        (functions.comm_test_inter)(comm, &raw mut inter) == 0
            && (functions.comm_size)(comm, &raw mut size) == 0
            && (functions.comm_rank)(comm, &raw mut rank) == 0
    };
    if !known {
        return None;
    }
    let size = u32::try_from(size).ok()?;
    let mut seat = Seat {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        comm,
        size,
        rank: u32::try_from(rank).ok()?,
        by_host: Vec::new(),
        crowded: false,
        maker: Maker::of(mpi.version()),
        all: None,
        joined: Mutex::new(Joined::NotYet),
        contests: Contests::default(),
    };
    seat.all = if inter != 0 {
        Some("an intercommunicator".to_owned())
    } else if size == 1 {
        Some("one rank".to_owned())
    } else if size > roundelay_core::schedule::RANK_LIMIT {
        Some("too many ranks".to_owned())
    } else {
        place(mpi, job, &mut seat).err()
    };
    // Without an attribute MPI does not tell when the communicator is freed, and its handle may then be another's.
    if !hang(functions, &seat) {
        seat.all = Some("MPI gives no attribute".to_owned());
        return Some(Arc::new(seat));
    }
    let seat = Arc::new(seat);
    all().insert(comm, seat.clone());
    Some(seat)
}

/// Finds on which hosts the ranks of a communicator are.
///
/// # Errors
/// Why that cannot be found, or its calls are not ours.
fn place(mpi: &Mpi, job: &MpiJob, seat: &mut Seat) -> Result<(), String> {
    let here = job.here.as_ref().map_err(ToString::to_string)?;
    let members = members(mpi, seat).ok_or("MPI does not tell its ranks")?;
    let mut hosts: Vec<(usize, Vec<u32>)> = Vec::new();
    for (rank, member) in (0..).zip(members) {
        let member = u32::try_from(member).map_err(|_| "ranks of another job")?;
        let host = here.known.host_of(member).ok_or_else(|| here.elsewhere.clone())?;
        match hosts.iter_mut().find(|(known, _)| *known == host) {
            Some((_, ranks)) => ranks.push(rank),
            None => hosts.push((host, vec![rank])),
        }
    }
    seat.crowded = hosts.iter().any(|(host, ranks)| ranks.len() as u32 > here.known.cores[*host]);
    seat.by_host = hosts.into_iter().map(|(_, ranks)| ranks).collect();
    Ok(())
}

/// Returns the ranks of a communicator, by their numbers among all.
fn members(mpi: &Mpi, seat: &Seat) -> Option<Vec<c_int>> {
    let functions = mpi.functions();
    let ranks: Vec<c_int> = (0..seat.size as c_int).collect();
    let mut members: Vec<c_int> = vec![Abi::UNDEFINED; ranks.len()];
    let (mut group, mut world): (Handle, Handle) = (0, 0);
    // SAFETY: there is room for the answers, and the groups are freed as they were made.
    unsafe {
        if (functions.comm_group)(seat.comm, &raw mut group) != 0 {
            return None;
        }
        let mut wrong = (functions.comm_group)(mpi.comm_world(), &raw mut world);
        if wrong == 0 {
            let (from, to) = (ranks.as_ptr(), members.as_mut_ptr());
            let size = seat.size as c_int;
            wrong = (functions.group_translate_ranks)(group, size, from, world, to);
            (functions.group_free)(&raw mut world);
        }
        (functions.group_free)(&raw mut group);
        (wrong == 0).then_some(members)
    }
}

/// Has MPI tell when the communicator goes.
fn hang(functions: &Functions, seat: &Seat) -> bool {
    let keyval = *KEYVAL.get_or_init(|| {
        let copies = is_not_copied as unsafe extern "C" fn(_, _, _, _, _, _) -> _;
        let goes = goes as unsafe extern "C" fn(_, _, _, _) -> _;
        let mut keyval = 0;
        let nothing = std::ptr::null_mut();
        // SAFETY: the two functions have the arguments that MPI says, and stay.
        let wrong = unsafe {
            let (copies, goes) = (copies as *mut c_void, goes as *mut c_void);
            (functions.comm_create_keyval)(copies, goes, &raw mut keyval, nothing)
        };
        (wrong == 0).then_some(keyval)
    });
    let Some(keyval) = keyval else { return false };
    let value = std::ptr::without_provenance_mut(seat.id as usize);
    // SAFETY: the value is a number that only `goes` reads.
    unsafe { (functions.comm_set_attr)(seat.comm, keyval, value) == 0 }
}

/// Does not copy the attribute to a communicator that is made of another: it gets a seat of its own.
unsafe extern "C" fn is_not_copied(
    _comm: Handle,
    _keyval: c_int,
    _extra: *mut c_void,
    _value: *mut c_void,
    _copy: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: MPI gives room for the answer.
    unsafe { flag.write(0) };
    0
}

/// Removes the seat of a communicator that MPI frees.
unsafe extern "C" fn goes(
    _comm: Handle,
    _keyval: c_int,
    value: *mut c_void,
    _extra: *mut c_void,
) -> c_int {
    let id = value.addr() as u64;
    let mut seats = all();
    let found = seats.iter().find(|(_, seat)| seat.id == id).map(|(comm, _)| *comm);
    let seat = found.and_then(|comm| seats.remove(&comm));
    GONE.fetch_add(1, Ordering::Release);
    LAST.set(None);
    // Other threads need not wait while this one leaves a world.
    drop(seats);
    if let Some(seat) = &seat {
        seat.add_ways(&mut WAYS.lock().unwrap_or_else(PoisonError::into_inner));
    }
    drop(seat);
    0
}
