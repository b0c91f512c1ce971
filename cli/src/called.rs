//! The arguments of this command, and the way to call it again: processes that it starts of itself need both.

use std::env::args_os;
use std::ffi::OsString;
use std::sync::OnceLock;

use roundelay_core::diagnostics::Code;

use crate::report::Failure;
use crate::streams;

/// Another program's call of this command: the words that start it anew, and the arguments after them.
struct Called {
    again: Vec<OsString>,
    args: Vec<OsString>,
}

/// `None` where the process is the command itself.
static CALLED: OnceLock<Called> = OnceLock::new();

/// Says that the process is a program which calls the command with `args`, as running `again` with them would. It is
/// said once.
pub(crate) fn set(again: Vec<OsString>, args: Vec<OsString>) {
    // A second call would come from the same program.
    _ = CALLED.set(Called { again, args });
}

/// Returns the arguments after the name of the command.
pub(crate) fn args() -> Vec<OsString> {
    match CALLED.get() {
        Some(called) => called.args.clone(),
        None => args_os().skip(1).collect(),
    }
}

/// Returns this command, to be started with other arguments.
#[cfg(target_os = "linux")]
pub(crate) fn again() -> std::process::Command {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    if let Some(Called { again, .. }) = CALLED.get()
        && let [program, leading @ ..] = &again[..]
    {
        let mut command = Command::new(program);
        command.args(leading);
        return command;
    }
    // The executable of this process, even if the file has been replaced since.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("roundelay");
    command
}

/// Returns an error unless the command may start processes of itself.
///
/// # Errors
/// The command runs as a function of another program, which may not expect child processes.
pub(crate) fn alone() -> Result<(), Failure> {
    if streams::is_kept() {
        let title = "this command starts processes of itself, which it does not as a function of another program";
        return Err(Failure::usage(Code::BadCall, title)
            .with_help("start the command `roundelay` with the same arguments"));
    }
    Ok(())
}
