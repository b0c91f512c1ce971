//! Programs of other runtimes: read, and proved as what those runtimes make of them.

pub mod msccl;
