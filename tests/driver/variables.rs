//! How programs run below the driver. The tests of other packages include this file, too.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::thread;

/// Returns the folder of the driver, in the repository at `root`.
pub(crate) fn folder(root: &Path) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    target.map_or_else(|| root.join("target"), PathBuf::from).join("driver")
}

/// Makes the driver and returns the variables by which a program finds it where it looks for libcuda, and the libraries
/// with it: NVRTC, which also makes for the driver every kernel that it compiles, and the test library of NCCL.
pub(crate) fn variables(root: &Path) -> Vec<(String, String)> {
    let mut shell = Command::new("sh");
    shell.arg(root.join("tests/driver/make.sh")).arg("all").arg(folder(root));
    let made = shell.output().expect("a shell");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let said = String::from_utf8(made.stdout).expect("paths in UTF-8");
    let variable = |line: &str| line.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
    said.lines().filter_map(variable).collect()
}

/// Waits for all ranks at once and returns what they said. The system tells other ranks how one ended only when its
/// parent has looked.
pub(crate) fn outputs(ranks: Vec<Child>) -> Vec<Output> {
    let wait = |rank: Child| thread::spawn(|| rank.wait_with_output().expect("it ends"));
    let waiting: Vec<_> = ranks.into_iter().map(wait).collect();
    waiting.into_iter().map(|thread| thread.join().expect("it ends")).collect()
}
