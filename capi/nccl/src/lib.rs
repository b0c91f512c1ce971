//! A library with NCCL's name (`libnccl.so.2`) and functions, which stands before the real one in an unchanged GPU job.
//! It passes each call on, and reports what was called. Operations that it takes itself are a [`operation::Taken`];
//! this version takes none.
//!
//! `function_table` (all functions) -> exports (made from it) -> group (operations of a thread, by operation) -> pass
//! (a call of the real library) -> real (opened once). process counts for the report, and audit is
//! the door for callers that open NCCL by its path.
#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]

mod audit;
mod exports;
mod function_table;
mod group;
mod last_error;
mod name;
mod operation;
mod own;
mod pass;
mod process;
mod real;
mod types;
mod why;

pub use name::Name;
