//! The process that becomes a rank: this command again, which ties its life to the launcher's and then becomes the
//! program. Code between a fork and an exec would not be safe Rust.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, id};

use roundelay_core::diagnostics::Code;
use roundelay_kernels::stay_in_share;
use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};

use super::environment::refused;
use crate::again;
use crate::error::RunError;

/// The first argument of a process that becomes a rank. It is no subcommand, which help and completions would list.
const WORD: &str = "launch-rank";

/// Returns the arguments of a process that becomes `rank`.
pub(super) fn arguments(rank: u32) -> [String; 3] {
    [WORD.to_owned(), id().to_string(), rank.to_string()]
}

/// Becomes a rank, if this process was started for it. Returns only where it was not, or where the program cannot be
/// executed: with the exit code that shells give then. `fail` says an error and returns its exit code.
pub fn become_rank(fail: fn(RunError) -> u8) -> Option<u8> {
    let args = again::args();
    let [word, launcher, rank, program, args @ ..] = &args[..] else { return None };
    if word != WORD {
        return None;
    }
    let (launcher, rank) = (number(launcher)?, number(rank)?);
    let nranks = std::env::var("LOCAL_WORLD_SIZE").ok().and_then(|nranks| nranks.parse().ok());
    if let Err(error) = tie_to(launcher) {
        return Some(error.map_or(1, fail));
    }
    // The program inherits it.
    if let Some(nranks) = nranks {
        stay_in_share(rank as u32, nranks);
    }
    let error = Command::new(program).args(args).exec();
    // The other ranks would say the same.
    if rank == 0 {
        let title = format!("`{}` cannot be executed: {error}", program.to_string_lossy());
        fail(RunError::usage(Code::BadCall, title));
    }
    Some(if error.kind() == ErrorKind::NotFound { 127 } else { 126 })
}

/// Reads a number among the arguments.
fn number(text: &OsStr) -> Option<i32> {
    text.to_str()?.parse().ok()
}

/// Ties this process's life to the life of the process that started it: the kernel kills this process when that one
/// ends.
///
/// # Errors
/// The refusal of the system; none where the parent has ended.
pub fn tie_to(parent: i32) -> Result<(), Option<RunError>> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|error| refused("the signal of the launcher's death", &error.into()))?;
    // The parent may have died before.
    if getppid().map(Pid::as_raw_pid) == Some(parent) { Ok(()) } else { Err(None) }
}
