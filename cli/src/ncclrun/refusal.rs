//! `roundelay ncclrun` where libraries are not preloaded as on Linux.

use roundelay_core::diagnostics::Code;

use crate::report::Failure;

#[allow(dead_code, reason = "no process is started")]
mod ncclrun_flags;

pub(crate) use ncclrun_flags::NcclrunFlags;

pub(crate) fn main(_: &NcclrunFlags) -> Result<u8, Failure> {
    Err(Failure::usage(Code::SystemRefused, "`roundelay ncclrun` starts programs on Linux only"))
}
