//! A library with NCCL's name (`libnccl.so.2`) and functions, which stands before the real one in an unchanged GPU job.
//! Over the real one, it passes each call on, and reports what was called. Alone ([`alone`]), its communicators are worlds of
//! processes with a GPU each, whose operations run proved algorithms.
//!
//! `function_table` (all functions) -> exports (made from it) -> group (operations of a thread, by operation) -> pass
//! (a call of the real library) -> real (opened once). process counts for the report, and audit is
//! the door for callers that open NCCL by its path.
#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]

mod alone;
mod audit;
mod call_errors;
mod contest;
mod exports;
mod function_table;
mod functions;
mod group;
mod lanes;
mod last_error;
mod mode;
mod name;
mod new_comms;
mod operation;
mod overlay;
mod own;
mod own_call;
mod own_comm;
mod own_memory;
mod pass;
mod process;
mod real;
mod seats;
mod settings;
mod stream_order;
mod trial;
mod types;
mod why;

pub use name::Name;
