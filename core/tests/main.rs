//! The behavior of the compiler from outside, one module for each subject. The tests are one binary: it is linked once,
//! and long tests of one subject run beside those of another.

#![allow(missing_docs)]
// expect-test writes its own quotes when it updates.
#![allow(clippy::needless_raw_string_hashes)]

mod bounds;
mod cases;
mod check;
mod cost;
mod executors;
mod expansion;
mod families;
mod fusion;
mod fuzz;
mod here;
mod messages;
mod nccl;
mod optimize;
mod packing;
mod parametric;
mod program;
mod proof;
mod roots;
mod schedule;
mod search;
mod simulate;
mod sources;
mod stages;
mod steps;
mod symmetry;
mod syntax;
mod topology;
mod turns;
mod units;
mod verdict;
