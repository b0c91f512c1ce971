//! Algorithms over NCCL's sends and receives: each rank is a process or a thread with a GPU of its own, on one machine
//! or on several, and no rank reads another rank's memory.
//!
//! A proved schedule is brought to two-sided form, and its messages into groups. A rank issues one `ncclSend` or
//! `ncclRecv` for each of its messages, one group at a time, and copies and folds in the order of the same stream. NCCL
//! is loaded at its first use; the message of E0415 names the places of the search.

mod comm;
mod issue;
mod library;
mod nccl_steps;
mod plan;
#[cfg(test)]
mod tests;

pub use comm::{NcclComm, NcclId, nccl_dtype};
pub use plan::{NcclPart, NcclPlan};
