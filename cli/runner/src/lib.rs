//! Ranks of one host, run and timed: as one call, as threads, or as processes that are started, tied together and asked.
//!
//! [`launch`] starts processes, each of which knows its place among the ranks, and [`mpirun`] has the launcher of an MPI
//! library do so. [`ncclrun`] finds what a GPU job needs to come through a library that it preloads ([`preload`]).
//! [`ranks`] are processes of the caller's own program, which plan, run and show results when they are asked. [`calls`]
//! is one interface to all kinds of callers. [`output_check`] compares results with a plain reference, [`measurement`]
//! times them too, and [`memory`] refuses a run before memory is allocated. README.md says which file to read first.

pub mod again;
pub mod bench_buffers;
pub mod calls;
pub mod choice;
pub mod error;
pub mod executor;
#[cfg(target_os = "linux")]
pub mod hangs;
#[cfg_attr(not(target_os = "linux"), path = "launch/refusal.rs")]
pub mod launch;
mod launched_program;
pub mod limit;
pub mod measurement;
pub mod memory;
#[cfg(target_os = "linux")]
pub mod mpirun;
#[cfg(target_os = "linux")]
pub mod ncclrun;
pub mod output_check;
pub mod page_buffers;
pub mod prediction;
#[cfg(target_os = "linux")]
pub mod preload;
pub mod ranks;
pub mod samples;
pub mod timing;
pub mod vector;

pub use error::RunError;
