//! Forms that programs and schedules take elsewhere, as their readers see them, one module a subject.

#![allow(missing_docs)]
// expect-test writes its own quotes when it updates.
#![allow(clippy::needless_raw_string_hashes)]

#[path = "../../tests/dice.rs"]
mod dice;
#[path = "../../tests/packing/graphs.rs"]
mod graphs;
mod loops;
mod msccl;
mod mscclpp;
mod packed;
mod picture;
