//! `cargo xtask ptx`: the PTX of every kernel of the library, executed by the interpreter, beside the host engine; and
//! with `--mutants` kernels with mistakes in the device headers, each of which must be found.

use std::process::Command;

use crate::command::{root, run};

/// Runs `gpu-check ptx` or `gpu-check ptx-mutants` with the other options, which are those of `gpu-check`.
pub(crate) fn all(options: &[&str]) -> Result<(), String> {
    let root = root();
    crate::nvrtc::install(&root)?;
    let (mutants, rest): (Vec<&str>, Vec<&str>) =
        options.iter().partition(|option| **option == "--mutants");
    let engine = if mutants.is_empty() { "ptx" } else { "ptx-mutants" };
    let mut command = Command::new(env!("CARGO"));
    // The profile of tests optimizes the interpreter.
    command.current_dir(&root).args(["run", "--profile", "test", "--package", "roundelay-tests"]);
    run(command.args(["--bin", "gpu-check", "--", engine]).args(rest))
}
