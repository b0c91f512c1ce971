//! Commands, and the workspace that they run in.

use std::path::{Path, PathBuf};
use std::process::Command;

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
