//! The report of a program that passes this library by: it opens MPI's library itself and asks that library for the
//! functions, so that none of its calls comes here, not even `MPI_Init`.

use std::env;

use roundelay_interposer::{REPORT, at_exit, is_on, tell};

use crate::process::bypassed;

/// The variables by which launchers number the ranks.
const RANKS: [&str; 4] = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "SLURM_PROCID"];

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

/// Runs when the library is loaded.
extern "C" fn begin() {
    if is_on(REPORT) {
        at_exit(end);
    }
}

/// Runs when the process exits.
fn end() {
    let first = RANKS.iter().find_map(env::var_os).is_none_or(|rank| rank == "0");
    if first && let Some(why) = bypassed() {
        tell(format_args!("roundelay: {why}\n"));
    }
}
