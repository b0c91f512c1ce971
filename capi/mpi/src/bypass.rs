//! The report of a program that passes this library by: it opens MPI's library itself and asks that library for the
//! functions, so that none of its calls comes here, not even `MPI_Init`.

use std::env;
use std::ffi::c_int;
use std::sync::OnceLock;

use crate::process::bypassed;
use crate::settings::{REPORT, is_on};

/// The variables by which launchers number the ranks.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];

/// The process that loaded this library: a child that it forks makes no report.
static LOADED: OnceLock<u32> = OnceLock::new();

unsafe extern "C" {
    fn atexit(then: extern "C" fn()) -> c_int;
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// Runs when the library is loaded.
extern "C" fn begin() {
    if is_on(REPORT) && LOADED.set(std::process::id()).is_ok() {
        // SAFETY: the function stays, and unwinds nowhere.
        unsafe { atexit(end) };
    }
}

/// Runs when the process exits.
extern "C" fn end() {
    let first = RANKS.iter().find_map(env::var_os).is_none_or(|rank| rank == "0");
    if first
        && LOADED.get() == Some(&std::process::id())
        && let Some(why) = bypassed()
    {
        eprintln!("roundelay: {why}");
    }
}
