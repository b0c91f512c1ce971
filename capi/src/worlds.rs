//! Worlds by their handles.

use std::ffi::{c_int, c_void};
use std::ops::RangeInclusive;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

#[cfg(target_os = "linux")]
use roundelay::cuda::DeviceCalls;
use roundelay::{Check, Level, NotPromises, Promises, UniqueId, World};
use roundelay_core::diagnostics::Code;
use roundelay_core::layout::Configured;
use roundelay_kernels::shared_memory::at_site;

use crate::Allgather;
use crate::status::{Outcome, bad};
use crate::table::HandleTable;

/// The options of a world; the header describes them.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Options {
    /// Bytes of the structure as the caller knows it.
    pub size: u64,
    /// The deadline of every wait, in milliseconds; 0 for the default.
    pub timeout_ms: u64,
    /// The level of the optimizer: 0, 1 or 2.
    pub level: u32,
    /// Any of the flags of the header, added up.
    pub flags: u32,
}

/// The first call of each shape checks itself.
pub(crate) const CHECK_FIRST: u32 = 1;
/// No call checks itself.
pub(crate) const CHECK_NEVER: u32 = 2;
/// No ways are measured.
pub(crate) const USUAL_WAYS: u32 = 4;
/// The places are kept from which calls come.
pub(crate) const SITES: u32 = 8;

static WORLDS: HandleTable<Arc<Seat>> = HandleTable::new("world");

/// A world, which calls share, and which is taken out to be given an algorithm.
struct Seat {
    world: RwLock<Option<World>>,
    /// The calls on the rank's GPU, if one was opened.
    #[cfg(target_os = "linux")]
    device: RwLock<Option<Arc<DeviceCalls>>>,
}

impl Seat {
    /// Changes the algorithms of the world, and of the calls on its GPU.
    fn choose(&self, change: impl FnOnce(World) -> World) {
        let mut world = self.world.write().unwrap_or_else(PoisonError::into_inner);
        *world = world.take().map(change);
        #[cfg(target_os = "linux")]
        if let (Some(world), Some(calls)) =
            (&*world, &*self.device.read().unwrap_or_else(PoisonError::into_inner))
        {
            world.update(calls);
        }
    }
}

/// The way in which processes meet.
pub(crate) enum Bootstrap {
    Environment,
    Id { id: UniqueId, nranks: u32, rank: u32 },
    Allgather { nranks: u32, rank: u32, allgather: Option<Allgather>, context: *mut c_void },
}

/// Joins a world.
///
/// # Safety
/// `options` is null or points to the structure, whose `size` is right; the callback may be called until this returns.
pub(crate) unsafe fn join(way: Bootstrap, options: *const Options) -> Outcome<u64> {
    // SAFETY: the caller's promise.
    let options = unsafe { read(options) }?;
    let world = match way {
        Bootstrap::Environment => World::from_env_with(options)?,
        Bootstrap::Id { id, nranks, rank } => World::join_with(&id, nranks, rank, options)?,
        Bootstrap::Allgather { nranks, rank, allgather, context } => {
            let Some(allgather) = allgather else { return Err(crate::status::null("allgather")) };
            World::bootstrap_with(nranks, rank, options, |mine| {
                let mut all = vec![0_u8; mine.len() * nranks as usize];
                let (from, to) = (mine.as_ptr().cast(), all.as_mut_ptr().cast());
                // SAFETY: as long as it says, and the caller's promise.
                let status: c_int = unsafe { allgather(from, to, mine.len() as u64, context) };
                if status == 0 { Ok(all) } else { Err(format!("it returned {status}")) }
            })?
        }
    };
    Ok(held(world))
}

/// Reads the options of a caller.
///
/// # Safety
/// `options` is null or points to the structure, whose `size` is right.
unsafe fn read(options: *const Options) -> Outcome<roundelay::Options> {
    let read = roundelay::Options::new();
    if options.is_null() {
        return Ok(read);
    }
    // SAFETY: the caller's promise: each has at least the size.
    let size = unsafe { options.cast::<u64>().read_unaligned() };
    if size < size_of::<Options>() as u64 {
        let what = format!("options of {size} bytes");
        return Err(bad(what, "begin with ROUNDELAY_OPTIONS_INIT, which sets their size"));
    }
    // SAFETY: it is as large as this.
    let Options { timeout_ms, level, flags, .. } = unsafe { options.read_unaligned() };
    let level = match level {
        0 => Level::O0,
        1 => Level::O1,
        2 => Level::O2,
        _ => return Err(bad(format!("level {level}"), "the levels are 0, 1 and 2")),
    };
    if flags & !(CHECK_FIRST | CHECK_NEVER | USUAL_WAYS | SITES) != 0 {
        let fix = "give a sum of the flags of roundelay.h";
        return Err(bad(format!("flags {flags:#x} of options"), fix));
    }
    let read = read.level(level).measure(flags & USUAL_WAYS == 0);
    let read = match (flags & CHECK_FIRST != 0, flags & CHECK_NEVER != 0) {
        (false, false) => read,
        (true, false) => read.check_calls(Check::First),
        (false, true) => read.check_calls(Check::Never),
        (true, true) => {
            let both = "ROUNDELAY_CHECK_FIRST and ROUNDELAY_CHECK_NEVER".to_owned();
            return Err(bad(both, "give one of them"));
        }
    };
    let read = if flags & SITES == 0 { read } else { read.sites(true) };
    Ok(if timeout_ms == 0 { read } else { read.deadline(Duration::from_millis(timeout_ms)) })
}

fn held(world: World) -> u64 {
    WORLDS.insert(Arc::new(Seat {
        world: RwLock::new(Some(world)),
        #[cfg(target_os = "linux")]
        device: RwLock::default(),
    }))
}

fn seat(handle: u64) -> Outcome<Arc<Seat>> {
    WORLDS.look(handle, Arc::clone)
}

/// Returns the result of `then` on a world, which other threads may call meanwhile.
pub(crate) fn with<R>(handle: u64, then: impl FnOnce(&World) -> Outcome<R>) -> Outcome<R> {
    let seat = seat(handle)?;
    let world = seat.world.read().unwrap_or_else(PoisonError::into_inner);
    match &*world {
        Some(world) => then(world),
        // The world left between the two lines above.
        None => WORLDS.look(handle, |_| unreachable!("handles are not used again")),
    }
}

/// Returns the result of `then`, which makes calls of a world that the program asks for at this moment.
pub(crate) fn calling<R>(handle: u64, then: impl FnOnce(&World) -> Outcome<R>) -> Outcome<R> {
    with(handle, |world| at_site(world.caller_site(), || then(world)))
}

/// Returns a call that was placed in memory, or tells the other ranks that this rank does not make it.
pub(crate) fn placed<P>(world: &World, call: Outcome<P>) -> Outcome<P> {
    call.map_err(|error| match error.of_arguments().map(|why| world.refuse(why)) {
        // It comes in place of this call.
        Some(Err(late)) if late.code() == Code::CallsDiffer => late.into(),
        _ => error,
    })
}

/// Uses an algorithm from now on, after the calls that other threads have begun.
pub(crate) fn use_algorithm(
    handle: u64,
    algorithm: Configured,
    bytes: &RangeInclusive<u64>,
) -> Outcome<()> {
    if bytes.is_empty() {
        let what = format!("min_bytes {} is more than max_bytes {}", bytes.start(), bytes.end());
        return Err(bad(what, "give the smaller one first"));
    }
    let seat = seat(handle)?;
    seat.choose(|world| world.using_between(bytes, algorithm));
    Ok(())
}

/// Keeps promises about the order of reductions from now on, after the calls that other threads have begun.
pub(crate) fn promise(handle: u64, text: &str) -> Outcome<()> {
    let promises: Promises = text.parse().map_err(|why: NotPromises| {
        bad(why.to_string(), "write a list such as `all_counts,roundings=1`")
    })?;
    let seat = seat(handle)?;
    seat.choose(|world| world.in_order(promises));
    Ok(())
}

/// Makes the part of this rank's color; 0 for no color.
pub(crate) fn split(handle: u64, color: i64, key: i64) -> Outcome<u64> {
    let color = match color {
        -1 => None,
        color => Some(u32::try_from(color).map_err(|_| {
            let fix = "give a number of 32 bits, or -1 for no part";
            bad(format!("color {color}"), fix)
        })?),
    };
    let part = calling(handle, |world| Ok(world.split(color, key)?))?;
    Ok(part.map_or(0, held))
}

/// Makes a second value of a world.
pub(crate) fn share(handle: u64) -> Outcome<u64> {
    Ok(held(with(handle, |world| Ok(world.share()))?))
}

/// Makes a world of the ranks that are left.
pub(crate) fn shrink(handle: u64) -> Outcome<u64> {
    Ok(held(calling(handle, |world| Ok(world.shrink()?))?))
}

/// Opens a GPU for the rank of a world, in place of one that was opened before.
#[cfg(target_os = "linux")]
pub(crate) fn open_device(handle: u64, device: usize) -> Outcome<()> {
    let calls = with(handle, |world| Ok(world.device_calls(device)?))?;
    let seat = seat(handle)?;
    *seat.device.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(calls));
    Ok(())
}

/// Returns the result of `then` on the calls on the rank's GPU.
#[cfg(target_os = "linux")]
pub(crate) fn with_device<R>(
    handle: u64,
    then: impl FnOnce(&DeviceCalls) -> Outcome<R>,
) -> Outcome<R> {
    let seat = seat(handle)?;
    let calls = seat.device.read().unwrap_or_else(PoisonError::into_inner).clone();
    let none = || bad("no GPU of this rank is open".to_owned(), "call roundelay_on_device first");
    then(&*calls.ok_or_else(none)?)
}

/// Ends all calls of all ranks, and the launches on their GPUs.
pub(crate) fn abort(handle: u64, why: &str) -> Outcome<()> {
    with(handle, |world| Ok(world.abort(why)?))?;
    #[cfg(target_os = "linux")]
    if let Some(calls) = &*seat(handle)?.device.read().unwrap_or_else(PoisonError::into_inner) {
        calls.abort(why)?;
    }
    Ok(())
}

/// Leaves a world, when the calls are done that are under way.
pub(crate) fn leave(handle: u64) -> Outcome<()> {
    let seat = WORLDS.take(handle)?;
    #[cfg(target_os = "linux")]
    seat.device.write().unwrap_or_else(PoisonError::into_inner).take();
    let world = seat.world.write().unwrap_or_else(PoisonError::into_inner).take();
    Ok(world.map_or(Ok(()), World::leave)?)
}
