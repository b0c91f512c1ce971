//! Forms that programs and schedules take elsewhere, as their readers see them, one module a subject.

#![allow(missing_docs)]
// expect-test writes its own quotes when it updates.
#![allow(clippy::needless_raw_string_hashes)]

#[path = "../../tests/cases.rs"]
mod cases;
mod expressions;
mod foreign;
#[path = "../../tests/fuzz.rs"]
mod fuzz;
#[path = "../../tests/packing/graphs.rs"]
mod graphs;
mod handshakes;
mod loops;
mod machine;
mod models;
mod mpi;
mod msccl;
mod mscclpp;
mod mutants;
mod packed;
mod parts;
mod picture;
#[path = "../../tests/sources.rs"]
mod sources;
mod steps;
mod waves;
mod words;
