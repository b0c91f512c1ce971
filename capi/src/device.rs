//! Calls on memory of GPUs, for ranks with a process and a GPU each.

use std::ffi::{c_int, c_void};

use crate::codes::Called;
use crate::status::guard;
use crate::worlds;

/// Opens a GPU for the rank of this process.
#[unsafe(no_mangle)]
pub extern "C" fn roundelay_on_device(world: u64, device: u32) -> c_int {
    guard(|| worlds::open_device(world, device as usize))
}

/// Issues a call on memory of the rank's GPU, in the order of a stream, and returns at once.
///
/// # Safety
/// `stream` is null or a stream of the GPU; `input` and `output` are addresses on the GPU with as many elements as the
/// collective says, until the stream has passed the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_call_on_stream(
    world: u64,
    collective: c_int,
    input: *const c_void,
    output: *mut c_void,
    count: u64,
    dtype: c_int,
    op: c_int,
    root: u32,
    stream: *mut c_void,
) -> c_int {
    let called = Called { collective, count, dtype, op, root };
    guard(|| {
        let plan = worlds::with_device(world, |calls| Ok(calls.plan(called.call()?)?))?;
        let io = [input.addr() as u64, output.addr() as u64];
        // SAFETY: the caller's promise.
        unsafe { plan.launch_at(stream.cast(), io) }.map_err(roundelay::Error::from)?;
        Ok(())
    })
}

/// Lends memory of the rank's GPU that all ranks can map.
///
/// # Safety
/// `memory` is null or points to a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn roundelay_device_alloc(
    world: u64,
    bytes: u64,
    memory: *mut *mut c_void,
) -> c_int {
    // SAFETY: the caller's promise.
    guard(|| unsafe {
        crate::status::returning(memory, "memory", crate::memory::alloc_on_device(world, bytes))
    })
}

/// Waits until all calls on the rank's GPU are over.
#[unsafe(no_mangle)]
pub extern "C" fn roundelay_device_wait(world: u64) -> c_int {
    guard(|| worlds::with_device(world, |calls| Ok(calls.wait()?)))
}
