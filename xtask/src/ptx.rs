//! `cargo xtask ptx`: the PTX of every kernel of the library, executed by the interpreter, beside the host engine; and
//! with `--mutants` kernels with mistakes in the device headers, each of which must be found.

use std::process::Command;

use crate::command::{root, run};

/// The architectures of a whole run: the most common one, and the oldest one.
const ARCHS: [&str; 2] = ["sm_90", "sm_80"];

/// Runs `gpu-check ptx` for each architecture, or for that of `--arch`, or `gpu-check ptx-mutants`; with the other
/// options, which are those of `gpu-check`.
pub(crate) fn all(options: &[&str]) -> Result<(), String> {
    let root = root();
    crate::nvrtc::install(&root)?;
    let (mutants, rest): (Vec<&str>, Vec<&str>) =
        options.iter().partition(|option| **option == "--mutants");
    let check = |engine: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        // The profile of tests optimizes the interpreter.
        command.current_dir(&root).args(["run", "--profile", "test", "--package"]);
        command.args(["roundelay-tests", "--bin", "gpu-check", "--"]).args(engine);
        run(command.args(&rest))
    };
    if !mutants.is_empty() {
        return check(&["ptx-mutants"]);
    }
    if rest.contains(&"--arch") {
        return check(&["ptx"]);
    }
    // All are run, whether one fails or not.
    let failed = ARCHS.map(|arch| check(&["ptx", "--arch", arch]));
    failed.into_iter().collect()
}
