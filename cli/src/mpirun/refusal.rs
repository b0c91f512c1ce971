//! `roundelay mpirun` where libraries are not preloaded as on Linux.

use roundelay_core::diagnostics::Code;

use crate::report::Failure;

#[allow(dead_code, reason = "no process is started")]
mod mpirun_flags;

pub(crate) use mpirun_flags::MpirunFlags;

pub(crate) fn main(_: &MpirunFlags) -> Result<u8, Failure> {
    Err(Failure::usage(Code::SystemRefused, "`roundelay mpirun` starts programs on Linux only"))
}
