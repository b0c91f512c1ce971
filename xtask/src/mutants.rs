//! `cargo xtask mutants`: the whole mutation suites of the proof, of which the tests take a part.

use std::path::Path;
use std::process::Command;

/// Prints the score; an error if the proof and the oracles disagree on any mutant.
pub(crate) fn all() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for suite in ["parametric::mutants", "proof::suite::full_suite"] {
        let status = Command::new(env!("CARGO"))
            .current_dir(&root)
            .env("ROUNDELAY_ALL_MUTANTS", "1")
            .args(["test", "--release", "--package", "roundelay-core", "--test", "core", "--"])
            .args(["--include-ignored", "--nocapture", suite])
            .status()
            .map_err(|error| format!("cargo did not start: {error}"))?;
        if !status.success() {
            return Err(format!("the suite {suite} failed"));
        }
    }
    Ok(())
}
