//! The driver, and how a program runs below it.

use std::path::PathBuf;
use std::process::Command;
use std::sync::LazyLock;

use roundelay_tests::root;

/// A program that is made with the driver.
pub(super) fn made(name: &str) -> PathBuf {
    below(&mut Command::new("true"));
    folder().join(name)
}

/// The folder of the driver.
fn folder() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR");
    target.map_or_else(|| root().join("target"), PathBuf::from).join("driver")
}

/// Has a program find the driver where it looks for libcuda, and the libraries with it: NVRTC, which also makes for the
/// driver every kernel that it compiles, and the test library of NCCL. A process makes all of it once.
pub(crate) fn below(command: &mut Command) -> &mut Command {
    static VARIABLES: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
        let mut make = Command::new("sh");
        make.arg(root().join("tests/driver/make.sh")).arg("all").arg(folder());
        let made = make.output().expect("a shell");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let said = String::from_utf8(made.stdout).expect("paths in UTF-8");
        let variable = |line: &str| line.split_once('=').map(|(a, b)| (a.to_owned(), b.to_owned()));
        said.lines().filter_map(variable).collect()
    });
    command.envs(VARIABLES.iter().map(|(name, value)| (name, value)))
}
