//! A library with NCCL's name (`libnccl.so.2`) and functions, which stands before the real one in an unchanged GPU job.
//! Over the real one ([`overlay`]), a communicator has a world of its ranks beside it: operations that an algorithm is selected
//! for run there, and all others go on. Alone ([`alone`]), its communicators are such worlds.
//!
//! `function_table` (all functions) -> exports (made from it) -> functions (a trait of them: behind, overlay, alone) and group
//! (operations of a thread, by operation) -> `own_call` (an operation here, by contest where times decide) or pass (a call of
//! the real library) -> real (opened once). seats has the communicators, `new_comms` those that are made, `own_comm` the world of
//! one, lanes its messages, `stream_order` its streams. process counts for the report, and audit is the door for callers that
//! open NCCL by its path.
#![cfg(all(target_os = "linux", target_pointer_width = "64", target_endian = "little"))]

mod alone;
mod audit;
mod call_config;
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
mod own_operators;
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
