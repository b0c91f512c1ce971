//! What is too long for each run of the tests, which take a part of it: `cargo xtask mutants`, the mutation suites of the
//! proof, and `cargo xtask sweeps`, every kernel at every rank count, element type and architecture.

use std::path::Path;
use std::process::Command;

/// Prints the score; an error if the proof and the oracles disagree on any mutant.
pub(crate) fn all() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for suite in ["parametric::mutants", "proof::suite::full_suite"] {
        let status = Command::new(env!("CARGO"))
            .current_dir(&root)
            .env("ROUNDELAY_WHOLE", "1")
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

/// Every kernel, compiled for every architecture and run on CPU threads at every rank count and element type.
pub(crate) fn sweeps() -> Result<(), String> {
    let root = crate::test::root();
    crate::nvrtc::install(&root)?;
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(&root).env("ROUNDELAY_WHOLE", "1");
    command.args(["test", "--workspace", "--exclude", "xtask", "--test", "all", "--", "cuda::"]);
    crate::test::run(&mut command)
}
