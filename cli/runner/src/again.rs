//! The arguments of this program, and the way to call it again: processes that it starts of itself need both.

use std::env::args_os;
use std::ffi::OsString;
use std::sync::OnceLock;

/// Another program's call of this one as a function: the words that start it anew, and the arguments after them.
struct Again {
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "no process is started there"))]
    words: Vec<OsString>,
    args: Vec<OsString>,
}

/// `None` where the process is the program itself.
static AGAIN: OnceLock<Again> = OnceLock::new();

/// Says that the process is another program, which calls this one with `args`, as running `words` with them would. It is
/// said once.
pub fn set(words: Vec<OsString>, args: Vec<OsString>) {
    // A second call would come from the same program.
    _ = AGAIN.set(Again { words, args });
}

/// Returns the arguments after the name of the program.
pub fn args() -> Vec<OsString> {
    match AGAIN.get() {
        Some(again) => again.args.clone(),
        None => args_os().skip(1).collect(),
    }
}

/// Returns the words that start this program on any host that has it at the same place.
///
/// # Errors
/// The system's, where it does not tell the place.
#[cfg(target_os = "linux")]
pub(crate) fn words() -> std::io::Result<Vec<OsString>> {
    match AGAIN.get() {
        Some(again) => Ok(again.words.clone()),
        None => Ok(vec![std::env::current_exe()?.into_os_string()]),
    }
}

/// Returns this program, to be started with other arguments.
#[cfg(target_os = "linux")]
pub(crate) fn again() -> std::process::Command {
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    if let Some(Again { words, .. }) = AGAIN.get()
        && let [program, leading @ ..] = &words[..]
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
