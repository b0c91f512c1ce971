//! MPI programs with the library preloaded, by every MPI that is installed below `target/mpi`: Open MPI and Intel MPI
//! where `cargo xtask test` runs. `cargo xtask mpi` runs foreign suites and more ranks.
#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]

#[path = "preload/errors.rs"]
mod errors;
#[path = "preload/fortran.rs"]
mod fortran;
#[path = "../../../tests/mpi/installed.rs"]
#[allow(dead_code, reason = "another test uses it, too")]
mod installed;
#[path = "preload/launched.rs"]
mod launched;
#[path = "preload/observed.rs"]
mod observed;
#[path = "preload/programs.rs"]
mod programs;
