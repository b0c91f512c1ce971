//! `cargo xtask python`: the Python package's own tests, over the library as it was built for all tests.

use std::path::Path;
use std::process::Command;

use crate::command::{BUILD, cargo, run};
use crate::install::Packages;

/// pytest with its dependencies, and the packages that the tests compare with; the last are for Pythons before 3.11.
const PYTEST: Packages = Packages {
    folder: "python",
    into: "--target",
    names: &[
        "numpy",
        "ml_dtypes",
        "pytest>=8",
        "iniconfig",
        "packaging",
        "pluggy",
        "pygments",
        "exceptiongroup",
        "tomli",
        "typing_extensions",
    ],
    files: &[],
};

/// Runs all tests except the ones of torch, which `cargo xtask torch` runs.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    // A wheel is built from it as it is.
    let mut lock = cargo(&["update", "--workspace", "--locked", "--quiet"]);
    let stale =
        |why| format!("python/Cargo.lock is stale, `cargo update --workspace` there: {why}");
    run(lock.current_dir(root.join("python"))).map_err(stale)?;
    let packages = PYTEST.install(root)?;
    run(&mut cargo(&BUILD))?;
    let paths = std::env::join_paths([packages, root.join("python")]);
    let paths = paths.map_err(|error| error.to_string())?;
    let mut pytest = Command::new("python3");
    pytest.current_dir(root.join("python")).args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    pytest.args(["--ignore", "tests/torch"]).env("PYTHONPATH", paths);
    pytest.env("PYTHONDONTWRITEBYTECODE", "1");
    run(pytest.env("ROUNDELAY_LIBRARY", root.join("target/debug/libroundelay_command.so")))
}
