//! Forms that programs and schedules take elsewhere, as their readers see them, one module a subject.

#![allow(missing_docs)]
// expect-test writes its own quotes when it updates.
#![allow(clippy::needless_raw_string_hashes)]

#[path = "../../tests/dice.rs"]
mod dice;
mod expressions;
#[path = "../../tests/packing/graphs.rs"]
mod graphs;
mod handshakes;
mod loops;
mod machine;
mod mpi;
mod msccl;
mod mscclpp;
mod packed;
mod parts;
mod picture;
mod steps;
mod words;
