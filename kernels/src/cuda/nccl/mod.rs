//! Algorithms over NCCL's sends and receives: each rank is a process or a thread of its own with a GPU, on one machine
//! or on many, and nobody reads another rank's memory.
//!
//! A proved schedule is brought to two-sided form, and its messages into groups. A rank issues one `ncclSend` or
//! `ncclRecv` for each of its messages, a group of them at a time, and copies and folds in the order of the same stream.
//! NCCL is looked for when it is used; E0415 says where.

mod comm;
mod issue;
mod library;
mod plan;
mod steps;
#[cfg(all(test, not(loom)))]
mod tests;

pub use comm::{NcclComm, NcclId};
pub use plan::NcclPlan;
