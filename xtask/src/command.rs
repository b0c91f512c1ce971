//! Commands, and the workspace that they run in.

use std::io::{Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// The workspace.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Runs a command to its end; anything but success is an error that names it.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown} ended with {status}")),
        Err(error) => Err(format!("{shown} did not start: {error}")),
    }
}

pub(crate) fn there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// What a command prints, if it ends well.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let done = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{shown} did not start: {error}"))?;
    if !done.status.success() {
        let errors = String::from_utf8_lossy(&done.stderr);
        return Err(format!("{shown} ended with {}:\n{errors}", done.status));
    }
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// What a command printed.
pub(crate) struct Printed {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// What a command prints, if it ends well and in time; else why not, and what it printed. The command is not in it.
pub(crate) fn within(command: &mut Command, longest: Duration) -> Result<Printed, String> {
    let failed = |error: std::io::Error| error.to_string();
    // Files never fill up, as pipes do.
    let file = || tempfile::tempfile().map_err(failed);
    let (mut out, mut err) = (file()?, file()?);
    command.stdin(Stdio::null());
    command.stdout(out.try_clone().map_err(failed)?).stderr(err.try_clone().map_err(failed)?);
    let mut child = command.spawn().map_err(failed)?;
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break Some(status);
        }
        if begun.elapsed() > longest {
            child.kill().map_err(failed)?;
            child.wait().map_err(failed)?;
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let text = |file: &mut std::fs::File| {
        let mut bytes = Vec::new();
        file.rewind()?;
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let (stdout, stderr) = (text(&mut out).map_err(failed)?, text(&mut err).map_err(failed)?);
    let said = format!("{}\n{}", stderr.trim(), stdout.trim());
    match status {
        None => Err(format!("gave up after {} s\n{said}", longest.as_secs())),
        Some(status) if status.success() => Ok(Printed { stdout, stderr }),
        Some(status) => Err(format!("ended with {status}\n{said}")),
    }
}
