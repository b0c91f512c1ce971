//! Exports of a program or a schedule of Roundelay: texts for other compilers and runtimes.
//!
//! | module | from | makes |
//! |---|---|---|
//! | [`cuda`] | a checked algorithm | the text of a CUDA kernel, with the facts that its launch needs |
//! | [`loops`] | a program, or a schedule | one text of statements with loops for all ranks |
//! | [`contest`] | a program, by its loop form | a C++ class in the form of a contest's executors |
//! | [`mpi`] | a proved schedule | a C file that an MPI job calls |
//! | [`goal`] | a proved schedule | a GOAL file, for simulators of networks |
//! | [`unroll`] | a proved schedule | a page of statements without loops |
//! | [`steps`] | a proved schedule | each rank's statements, as a table |
//!
//! This crate depends on the compiler, `roundelay-core`, and not the reverse.

pub mod contest;
pub mod cuda;
pub mod goal;
pub mod loops;
pub mod mpi;
pub mod rust;
pub mod steps;
pub mod unroll;
