//! A tuner plugin of NCCL: the latency of its trees by a simulation of their schedule.
//!
//! interface (NCCL's structures) -> begin (settings, constants, levels) -> tuner (a communicator: its table of costs)
//! -> `nccl_log` (a line of NCCL's log). Nothing here fails a call: NCCL takes an error of a plugin for one of the
//! collective, so where the plugin cannot tell, it answers 0 and leaves the table alone.
#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]

mod constants;
mod interface;
mod levels;
mod nccl_log;
mod setting;
mod tuner;

use std::ffi::{c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use constants::Latencies;
use interface::{Constants, CostTable, Logger, NvlDomains, TunerV4, TunerV5, TunerV6};
use nccl_log::NcclLog;
use tuner::{Communicator, Tuner};

/// The code of a call that went well: the only one that NCCL hears.
const SUCCESS: c_int = 0;

/// The name of the plugin, ended by a zero for C.
const NAME: *const c_char = c"Roundelay".as_ptr();

/// The plugin for NCCL 2.24 and newer.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "NCCL looks for this name")]
pub static ncclTunerPlugin_v4: TunerV4 =
    TunerV4 { name: NAME, init: begin_v4, cost: decide, destroy: end };

/// The plugin for NCCL 2.28 and newer.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "NCCL looks for this name")]
pub static ncclTunerPlugin_v5: TunerV5 =
    TunerV5 { name: NAME, init: begin_v5, cost: decide, finalize: end };

/// The plugin for NCCL 2.30 and newer, which leaves the sizes of chunks to NCCL.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "NCCL looks for this name")]
pub static ncclTunerPlugin_v6: TunerV6 =
    TunerV6 { name: NAME, init: begin_v5, cost: decide, finalize: end, chunk_size: None };

/// Begins a communicator of NCCL before 2.28, which tells no constants.
///
/// # Safety
/// As [`begin`].
unsafe extern "C" fn begin_v4(
    ranks: usize,
    nodes: usize,
    log: Option<Logger>,
    context: *mut *mut c_void,
) -> c_int {
    let of = Communicator { id: None, ranks, nodes };
    // SAFETY: the caller's promise.
    unsafe { begin(context, of, log, || Ok(Latencies::published())) }
}

/// Begins a communicator. The constants are read and not changed; the domains of NVLink are the nodes once more.
///
/// # Safety
/// As [`begin`]; `constants` is null or valid for a read.
unsafe extern "C" fn begin_v5(
    context: *mut *mut c_void,
    id: u64,
    ranks: usize,
    nodes: usize,
    log: Option<Logger>,
    _domains: *mut NvlDomains,
    constants: *mut Constants,
) -> c_int {
    let of = Communicator { id: Some(id), ranks, nodes };
    let latencies = || {
        // SAFETY: the caller's promise.
        let given = unsafe { constants.as_ref() };
        given.map_or_else(|| Ok(Latencies::published()), Latencies::given)
    };
    // SAFETY: the caller's promise.
    unsafe { begin(context, of, log, latencies) }
}

/// Makes the tuner of a communicator, and stores it at `context`: null where NCCL decides alone.
///
/// # Safety
/// `context` is null, or valid for a write; `log` is NCCL's function.
unsafe fn begin(
    context: *mut *mut c_void,
    of: Communicator,
    log: Option<Logger>,
    latencies: impl FnOnce() -> Result<Latencies, String>,
) -> c_int {
    if context.is_null() {
        return SUCCESS;
    }
    let log = NcclLog::new(log);
    let made = catch_unwind(AssertUnwindSafe(|| {
        let mode = setting::mode().unwrap_or_else(|why| {
            log.warn(&why);
            None
        });
        let tuner = mode.map(|mode| Tuner::new(of, mode, &latencies()?, log));
        tuner.transpose().unwrap_or_else(|why| {
            log.leave(&why);
            None
        })
    }));
    let made = made.unwrap_or_else(|_| {
        log.warn("an error in the plugin, which is a bug of Roundelay");
        None
    });
    let at = made.map_or(null_mut(), |tuner| Box::into_raw(Box::new(tuner)).cast());
    // SAFETY: the caller's promise.
    unsafe { context.write(at) };
    SUCCESS
}

/// Corrects the table of costs of a call.
///
/// # Safety
/// `context` is of [`begin`] and not ended. `table` is null, or has `algorithms` times `protocols` floats, which
/// no other code uses meanwhile.
unsafe extern "C" fn decide(
    context: *mut c_void,
    collective: c_int,
    bytes: usize,
    _pipelined: c_int,
    table: *mut *mut f32,
    algorithms: c_int,
    protocols: c_int,
    _registered: c_int,
    _channels: *mut c_int,
) -> c_int {
    // SAFETY: the caller's promise.
    let Some(tuner) = (unsafe { context.cast::<Tuner>().as_ref() }) else { return SUCCESS };
    // SAFETY: the caller's promise.
    let Some(table) = (unsafe { CostTable::at(table, algorithms, protocols) }) else {
        return SUCCESS;
    };
    _ = catch_unwind(AssertUnwindSafe(|| tuner.decide(collective, bytes, table)));
    SUCCESS
}

/// Ends a communicator.
///
/// # Safety
/// `context` is null, or of [`begin`] and not ended.
unsafe extern "C" fn end(context: *mut c_void) -> c_int {
    if !context.is_null() {
        // SAFETY: `begin` made it of a box, by the caller's promise.
        let tuner = unsafe { Box::from_raw(context.cast::<Tuner>()) };
        _ = catch_unwind(AssertUnwindSafe(move || drop(tuner)));
    }
    SUCCESS
}

#[cfg(test)]
mod tests;
