//! Exported C files, compiled by MPI's compilers and run beside its own collectives: every byte is equal, and sums of
//! floats have the host engine's bits. A test takes a few algorithms and the installed MPIs, of which there must be at
//! least one; `cargo xtask mpi` takes all of both.

#[path = "mpi/cases.rs"]
mod cases;
#[path = "mpi/installed.rs"]
mod installed;
#[path = "mpi/runs.rs"]
mod runs;
