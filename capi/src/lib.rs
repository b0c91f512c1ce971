//! The C library of Roundelay, as `roundelay.h` declares and describes it.
//!
//! Handles are numbers that are looked up, so that a stale one is an error. Every function returns: a panic is caught
//! and becomes an error. A function that can fail returns 0, or the number of the error's code.

mod alone;
mod blocks;
mod buffers;
mod codes;
mod compiler;
#[cfg(target_os = "linux")]
mod device;
#[cfg(test)]
mod header;
mod memory;
mod python;
mod requests;
mod status;
mod table;
#[cfg(test)]
mod tests;
mod worlds;

use std::ffi::{c_char, c_int, c_void};

use alone::Run;
use blocks::{GivenBlocks, PlacedBlocks};
use buffers::PlacedCall;
use codes::Called;
use requests::Waited;
use roundelay::{OrderClass, UniqueId};
use status::returning;
use worlds::Bootstrap;

#[cfg(target_os = "linux")]
pub use device::{
    roundelay_call_on_stream, roundelay_device_alloc, roundelay_device_wait, roundelay_on_device,
};
pub use worlds::Options;

// For the library with the command, which reads the arguments of its functions in the same way.
#[doc(hidden)]
pub use buffers::{text, texts};
#[doc(hidden)]
pub use status::{CallError, Outcome, guard};

/// The version of this library.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns the version of this library.
#[unsafe(no_mangle)]
pub extern "C" fn roundelay_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Returns the text of this thread's last error.
#[unsafe(no_mangle)]
pub extern "C" fn roundelay_last_error() -> *const c_char {
    status::last()
}

/// Makes an id, by which one world meets.
///
/// # Safety
/// `id` has room for 128 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_unique_id(id: *mut u8) -> c_int {
    guard(|| {
        let made = UniqueId::new()?;
        // SAFETY: the caller's promise.
        let id = unsafe { buffers::write(id, UniqueId::BYTES, "id") }?;
        id.copy_from_slice(made.as_bytes());
        Ok(())
    })
}

/// Joins the world that a launcher started this process in.
///
/// # Safety
/// `options` is null or points to the structure, `world` to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_init_from_env(
    options: *const Options,
    world: *mut u64,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe { returning(world, "world", worlds::join(Bootstrap::Environment, options)) })
}

/// Joins the world of this id.
///
/// # Safety
/// `id` has 128 bytes; `options` is null or points to the structure, `world` to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_init_id(
    id: *const u8,
    nranks: u32,
    rank: u32,
    options: *const Options,
    world: *mut u64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let id = unsafe { buffers::read(id, UniqueId::BYTES, "id") }?;
        let id = id.first_chunk().map(|id| UniqueId::from_bytes(*id));
        let way = Bootstrap::Id { id: id.expect("it has as many bytes"), nranks, rank };
        // SAFETY: the caller's promise.
        unsafe { returning(world, "world", worlds::join(way, options)) }
    })
}

/// Brings together bytes of all ranks: `mine` has `bytes` of them, `all` has room for as many of each.
pub type Allgather = unsafe extern "C" fn(
    mine: *const c_void,
    all: *mut c_void,
    bytes: u64,
    context: *mut c_void,
) -> c_int;

/// Joins a world by an exchange that the processes have already.
///
/// # Safety
/// `allgather` may be called with `context`, by this thread, until this returns; `options` is null or points to the
/// structure, `world` to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_init_allgather(
    nranks: u32,
    rank: u32,
    allgather: Option<Allgather>,
    context: *mut c_void,
    options: *const Options,
    world: *mut u64,
) -> c_int {
    let way = Bootstrap::Allgather { nranks, rank, allgather, context };
    // SAFETY: the caller's promise.
    guard(|| unsafe { returning(world, "world", worlds::join(way, options)) })
}

/// Returns the rank of this process.
///
/// # Safety
/// `rank` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_rank(world: u64, rank: *mut u32) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe { returning(rank, "rank", worlds::with(world, |w| Ok(w.rank().id()))) })
}

/// Returns the number of ranks.
///
/// # Safety
/// `nranks` points to a number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_nranks(world: u64, nranks: *mut u32) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe { returning(nranks, "nranks", worlds::with(world, |w| Ok(w.nranks()))) })
}

/// Makes a call, and returns when this rank is done.
///
/// # Safety
/// `input` and `output` have as many elements as the collective says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_call(
    world: u64,
    collective: c_int,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    op: c_int,
    root: u32,
) -> c_int {
    let called = Called { collective, count, dtype, op, root };
    guard(|| {
        worlds::calling(world, |world| {
            let place = PlacedCall::new(world, called, input.cast(), output.cast())?;
            // SAFETY: the caller's promise.
            Ok(unsafe { place.run(world) }?)
        })
    })
}

/// Starts a call, and returns at once.
///
/// # Safety
/// `input` and `output` have as many elements as the collective needs, which no thread accesses until the request is
/// done; `request` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_start(
    world: u64,
    collective: c_int,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    op: c_int,
    root: u32,
    request: *mut u64,
) -> c_int {
    let called = Called { collective, count, dtype, op, root };
    let start = || {
        worlds::calling(world, |world| {
            let place = PlacedCall::new(world, called, input.cast(), output.cast())?;
            // SAFETY: the caller's promise.
            Ok(unsafe { place.start(world) })
        })
    };
    // SAFETY: the caller's promise.
    guard(|| unsafe { returning(request, "request", start()) })
}

/// Makes a call with a count for each block, and returns when this rank is done.
///
/// # Safety
/// The arrays have as many elements as the collective has blocks, and each block has as many elements as its count.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_call_v(
    world: u64,
    collective: c_int,
    input: *const c_void,
    input_counts: *const u64,
    input_starts: *const i64,
    output: *mut c_void,
    output_counts: *const u64,
    output_starts: *const i64,
    dtype: c_int,
    op: c_int,
    root: u32,
) -> c_int {
    let input =
        GivenBlocks { at: input.cast_mut().cast(), counts: input_counts, starts: input_starts };
    let output = GivenBlocks { at: output.cast(), counts: output_counts, starts: output_starts };
    guard(|| {
        // SAFETY: the caller's promise.
        worlds::calling(world, |world| unsafe {
            let place = PlacedBlocks::new(world, (collective, dtype, op, root), input, output)?;
            Ok(place.run(world)?)
        })
    })
}

/// Starts a call with a count for each block, and returns at once.
///
/// # Safety
/// The arrays have as many elements as the collective has blocks, and each block has as many elements as its count,
/// which no thread accesses until the request is done; `request` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_start_v(
    world: u64,
    collective: c_int,
    input: *const c_void,
    input_counts: *const u64,
    input_starts: *const i64,
    output: *mut c_void,
    output_counts: *const u64,
    output_starts: *const i64,
    dtype: c_int,
    op: c_int,
    root: u32,
    request: *mut u64,
) -> c_int {
    let input =
        GivenBlocks { at: input.cast_mut().cast(), counts: input_counts, starts: input_starts };
    let output = GivenBlocks { at: output.cast(), counts: output_counts, starts: output_starts };
    let start = || {
        // SAFETY: the caller's promise.
        worlds::calling(world, |world| unsafe {
            let place = PlacedBlocks::new(world, (collective, dtype, op, root), input, output)?;
            place.start(world)
        })
    };
    // SAFETY: the caller's promise.
    guard(|| unsafe { returning(request, "request", start()) })
}

/// Waits for a call that was started: -1 is that it is not done in that time.
#[unsafe(no_mangle)]
pub extern "C" fn roundelay_wait(request: u64, timeout_ms: i64) -> c_int {
    let mut waited = Waited::Done;
    let status = guard(|| {
        waited = requests::wait(request, timeout_ms)?;
        Ok(())
    });
    if waited == Waited::UnderWay { status::UNDER_WAY } else { status }
}

/// Lets a call that was started go on by itself.
#[unsafe(no_mangle)]
pub extern "C" fn roundelay_release(request: u64) -> c_int {
    guard(|| requests::release(request))
}

/// Sends to a rank, which receives.
///
/// # Safety
/// `buffer` has `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_send(
    world: u64,
    buffer: *const c_void,
    count: u64,
    dtype: c_int,
    to: u32,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| worlds::with(world, |w| unsafe { buffers::send(w, buffer, count, dtype, to) }))
}

/// Receives from a rank, which sends.
///
/// # Safety
/// `buffer` has `count` elements.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_recv(
    world: u64,
    buffer: *mut c_void,
    count: u64,
    dtype: c_int,
    from: u32,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| worlds::with(world, |w| unsafe { buffers::recv(w, buffer, count, dtype, from) }))
}

/// Returns when all ranks have called it.
#[unsafe(no_mangle)]
pub extern "C" fn roundelay_barrier(world: u64) -> c_int {
    guard(|| worlds::calling(world, |world| Ok(world.rank().barrier()?)))
}

/// Uses an algorithm for calls of its collective.
///
/// # Safety
/// `source` ends with a zero; `algorithm` is null or ends with one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_use(
    world: u64,
    source: *const c_char,
    algorithm: *const c_char,
    collective: c_int,
    min_bytes: u64,
    max_bytes: u64,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let source = unsafe { compiler::AlgorithmSource::new(source, algorithm) }?;
        worlds::use_algorithm(world, source.algorithm(collective)?, &(min_bytes..=max_bytes))
    })
}

/// Keeps promises about the order of reductions from now on.
///
/// # Safety
/// `promises` points to a text that ends in a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_promise(world: u64, promises: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        worlds::promise(world, unsafe { text(promises, "promises") }?)
    })
}

/// Returns the promises that the algorithm of a call keeps.
///
/// # Safety
/// `promises` and `roundings` point to a number each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_order(
    world: u64,
    collective: c_int,
    count: u64,
    dtype: c_int,
    op: c_int,
    root: u32,
    promises: *mut u32,
    roundings: *mut u32,
) -> c_int {
    guard(|| {
        let call = Called { collective, count, dtype, op, root }.call()?;
        let kept = worlds::with(world, |world| Ok(world.order_of(&call)?))?;
        let bits = OrderClass::ALL.into_iter().filter(|class| kept.has(*class));
        let bits = bits.fold(0, |bits, class| bits | 1 << class as u32);
        // SAFETY: the caller's promise.
        unsafe {
            returning(promises, "promises", Ok(bits))?;
            returning(roundings, "roundings", Ok(kept.most_roundings().unwrap_or(0)))
        }
    })
}

/// Returns the ways that the world has chosen by measurement, a line each.
///
/// # Safety
/// `ways` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_ways(world: u64, ways: *mut *const c_char) -> c_int {
    guard(|| {
        let chosen = worlds::with(world, |world| Ok(world.ways()))?;
        let lines: Vec<String> = chosen.iter().map(ToString::to_string).collect();
        // SAFETY: the caller's promise.
        unsafe { returning(ways, "ways", Ok(status::told(&lines.join("\n")))) }
    })
}

/// Makes of the ranks of each color a world of its own.
///
/// # Safety
/// `part` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_split(
    world: u64,
    color: i64,
    key: i64,
    part: *mut u64,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe { returning(part, "part", worlds::split(world, color, key)) })
}

/// Makes a second handle of a world, with algorithms of its own.
///
/// # Safety
/// `share` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_share(world: u64, share: *mut u64) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe { returning(share, "share", worlds::share(world)) })
}

/// Makes a world of the ranks that are left.
///
/// # Safety
/// `rest` points to a handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_shrink(world: u64, rest: *mut u64) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe { returning(rest, "rest", worlds::shrink(world)) })
}

/// Lends memory that all ranks can touch.
///
/// # Safety
/// `memory` points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_alloc(
    world: u64,
    bytes: u64,
    memory: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe { returning(memory, "memory", memory::alloc(world, bytes)) })
}

/// Gives memory back.
#[unsafe(no_mangle)]
pub extern "C" fn roundelay_free(memory: *mut c_void) -> c_int {
    guard(|| memory::free(memory))
}

/// Ends all calls of all ranks.
///
/// # Safety
/// `why` is null or ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_abort(world: u64, why: *const c_char) -> c_int {
    guard(|| {
        let none = "the program called roundelay_abort";
        // SAFETY: the caller's promise.
        let why = if why.is_null() { none } else { unsafe { buffers::text(why, "why") }? };
        worlds::abort(world, why)
    })
}

/// Tells the other ranks that this rank does not make its next call.
///
/// # Safety
/// `why` ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_refuse(world: u64, why: *const c_char) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let why = unsafe { buffers::text(why, "why") }?;
        worlds::with(world, |world| Ok(world.refuse(why)?))
    })
}

/// Leaves a world.
#[unsafe(no_mangle)]
pub extern "C" fn roundelay_finalize(world: u64) -> c_int {
    guard(|| {
        worlds::leave(world)?;
        memory::forget(world);
        Ok(())
    })
}

/// Runs an algorithm in this process, for all ranks.
///
/// # Safety
/// `source` ends with a zero; `algorithm` is null or ends with one; `inputs` and `outputs` have `nranks` pointers to as
/// many elements as the collective says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_run(
    source: *const c_char,
    algorithm: *const c_char,
    nranks: u32,
    inputs: *const *const c_void,
    outputs: *const *mut c_void,
    count: u64,
    dtype: c_int,
    op: c_int,
) -> c_int {
    guard(|| {
        // SAFETY: the caller's promise.
        let source = unsafe { compiler::AlgorithmSource::new(source, algorithm) }?;
        let run = Run::new(&source, nranks, count, dtype, op)?;
        // SAFETY: the caller's promise.
        unsafe { run.on(inputs, outputs) }
    })
}
