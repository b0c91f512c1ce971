//! The step of the examples.

use std::path::Path;
use std::process::Command;

use super::{TestRun, built, files};
use crate::command::{self, BUILD, cargo};

/// Runs the programs among the examples, each of which ends in a check of its own; the tests check the `.coll` files.
/// Every engine is included: the one for GPUs itself reports a missing part.
pub(super) fn run(TestRun { root, .. }: &mut TestRun) -> Result<(), String> {
    command::run(&mut cargo(&BUILD))?;
    for path in files(root, "examples", "rs")? {
        let name = path.file_stem().unwrap_or_default();
        let program = built(root, "examples").join(name);
        let mut command = Command::new(&program);
        // Its ranks are processes, which the command starts.
        if name == "processes" {
            command = Command::new(built(root, "roundelay"));
            command.args(["launch", "-n", "4", "--"]).arg(&program);
        }
        if name == "crossed_groups" {
            is_told(root, &program)?;
            continue;
        }
        command::run(command.current_dir(&*root))?;
    }
    Ok(())
}

/// Checks that the ranks of an example with a mistake get an error that names both groups.
fn is_told(root: &Path, program: &Path) -> Result<(), String> {
    let mut launch = Command::new(built(root, "roundelay"));
    launch.current_dir(root).args(["launch", "-n", "2", "--grace", "5s", "--"]).arg(program);
    let out = launch.output().map_err(|error| format!("{launch:?} did not start: {error}"))?;
    let told = String::from_utf8_lossy(&out.stderr).into_owned();
    if out.status.success() || !told.contains("crossed") || !told.contains("E0405") {
        return Err(format!("{launch:?} does not name the crossed groups:\n{told}"));
    }
    Ok(())
}
