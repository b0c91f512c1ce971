//! `cargo xtask calibrate`: the constants of the model of time, measured by the command and kept with the library.
//! A run of the command, as this crate must build where the parser's generated files do not.

use std::path::Path;
use std::process::Command;

/// Prints the constants of this machine beside the library's; writes them there if asked to.
pub(crate) fn run(write: bool) -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root).args([
        "run",
        "--quiet",
        "--release",
        "--package",
        "roundelay-cli",
        "--",
        "calibrate",
    ]);
    if write {
        command.args(["--write", "core/src/cost/host.costs"]);
    }
    let status = command.status().map_err(|error| format!("cargo did not start: {error}"))?;
    if status.success() { Ok(()) } else { Err("the constants were not measured".to_owned()) }
}
