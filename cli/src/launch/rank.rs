//! The process that becomes a rank: this command again, which ties its life to the launcher's and then becomes the
//! program. What is done between a fork and an exec would not be safe code.

use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use roundelay_core::diagnostics::Code;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::environment::refused;
use super::flags::RankFlags;
use crate::report::Failure;

/// The subcommand, which no help lists.
pub(super) const SUBCOMMAND: &str = "launch-rank";

/// Returns only where the program cannot be executed, with the exit code that shells give then.
pub(crate) fn become_rank(flags: &RankFlags) -> ExitCode {
    if let Err(code) = tie_to(flags.launcher) {
        return code;
    }
    let [program, args @ ..] = &flags.command[..] else { unreachable!("one value is required") };
    let error = Command::new(program).args(args).exec();
    // The others say the same.
    if flags.rank == 0 {
        let title = format!("`{}` cannot be executed: {error}", program.to_string_lossy());
        Failure::usage(Code::BadCall, title).print();
    }
    ExitCode::from(if error.kind() == ErrorKind::NotFound { 127 } else { 126 })
}

/// Ties this process's life to that of the process that started it: the kernel kills it where that ends.
pub(crate) fn tie_to(parent: i32) -> Result<(), ExitCode> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| refused("the signal of the launcher's death", &error.into()).print())?;
    // It may have died before.
    if getppid().map(Pid::as_raw_pid) == Some(parent) { Ok(()) } else { Err(ExitCode::FAILURE) }
}
