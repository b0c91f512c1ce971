//! Checks that are too long for each run of the tests, which run a part of them: `cargo xtask mutants`, the mutation
//! suites of the proof, and `cargo xtask sweeps`, every algorithm as messages at every rank count, and every kernel at
//! every rank count, element type and architecture; and `cargo xtask failures`, a failure of every rank at every place
//! of a call.

use std::process::Command;

use crate::command::{root, run};

/// Prints the score; an error if the proof and the oracles disagree on any mutant.
pub(crate) fn all() -> Result<(), String> {
    let root = root();
    let suites =
        ["parametric::mutants", "parametric::doubling", "proof::suite::full_suite", "symmetry::"];
    for suite in suites {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(&root).env("ROUNDELAY_WHOLE", "1").env("ROUNDELAY_CASES", "100000");
        command.args(["test", "--release", "--package", "roundelay-core", "--test", "core", "--"]);
        run(command.args(["--include-ignored", "--nocapture", suite]))?;
    }
    Ok(())
}

/// Tests a failure of every rank at every place of a call, for three algorithms, two levels and three rank counts: some
/// seven thousand in 20 minutes on two cores; and 10,000 calls with ranks that are late anywhere. With
/// `ROUNDELAY_PART=2/5` the third fifth of the failures.
pub(crate) fn failures() -> Result<(), String> {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root()).env("ROUNDELAY_WHOLE", "1");
    command.args(["test", "--workspace", "--exclude", "xtask", "--test", "all", "--"]);
    run(command.args(["--nocapture", "processes::failures", "processes::delays"]))
}

/// Tests every algorithm in two-sided form at every rank count; and every kernel, compiled for every architecture and
/// run on CPU threads at every rank count and element type.
pub(crate) fn sweeps() -> Result<(), String> {
    let root = root();
    crate::nvrtc::install(&root)?;
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(&root).env("ROUNDELAY_WHOLE", "1").env("ROUNDELAY_CASES", "50000");
    command.args(["test", "--release", "--package", "roundelay-core", "--test", "core", "--"]);
    run(command.args(["--nocapture", "messages::"]))?;
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(&root).env("ROUNDELAY_WHOLE", "1");
    command.args(["test", "--workspace", "--exclude", "xtask", "--test", "all", "--", "cuda::"]);
    run(&mut command)
}
