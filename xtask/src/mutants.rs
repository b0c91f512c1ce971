//! `cargo xtask mutants`: the whole mutation suite of the proof, which is an ignored test of core.

use std::path::Path;
use std::process::Command;

/// Prints the score; an error if the proof and the oracles disagree on any mutant.
pub(crate) fn all() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let status = Command::new(env!("CARGO"))
        .current_dir(root)
        .args(["test", "--release", "--package", "roundelay-core", "--test", "core", "--"])
        .args(["--ignored", "--exact", "--nocapture", "proof::suite::full_suite"])
        .status()
        .map_err(|error| format!("cargo did not start: {error}"))?;
    if status.success() { Ok(()) } else { Err("the mutation suite failed".to_owned()) }
}
