//! `roundelay ps` where ranks cannot be processes.

use roundelay_core::diagnostics::Code;

use crate::report::Failure;

#[allow(dead_code, reason = "there is no world to look at")]
mod ps_flags;

pub(crate) use ps_flags::PsFlags;

pub(crate) fn main(_: &PsFlags) -> Result<bool, Failure> {
    let title = "`roundelay ps` looks at ranks that are processes, which only Linux has";
    Err(Failure::usage(Code::SystemRefused, title))
}
