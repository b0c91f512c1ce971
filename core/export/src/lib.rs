//! Exports of a program or a schedule of Roundelay: texts for other compilers and runtimes, files of other languages
//! of collectives, and pictures.
//!
//! | module | from | makes |
//! |---|---|---|
//! | [`cuda`] | a checked algorithm | the text of a CUDA kernel, with the facts that its launch needs |
//! | [`contest`] | a program | a C++ class in the form of a contest's executors |
//! | [`mpi`] | a proved schedule | a C file that an MPI job calls |
//! | [`goal`] | a proved schedule | a GOAL file, for simulators of networks |
//! | [`unrolled`] | a proved schedule | a page of statements without loops |
//! | [`steps`] | a proved schedule | each rank's statements, as a table |
//! | [`exchange`] | files of MSCCL and MSCCL++ | the schedule that those runtimes run; and back |
//! | [`spacetime`], [`topology_svg`] | a simulated run, a topology | pictures |
//!
//! This crate depends on the compiler, `roundelay-core`, and not the reverse.

pub mod contest;
pub mod cuda;
pub mod exchange;
pub mod goal;
pub mod mpi;
mod picture;
mod repeats;
pub mod spacetime;
pub mod steps;
pub mod topology_svg;
pub mod unrolled;
