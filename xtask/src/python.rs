//! `cargo xtask python`: the Python package's own tests, over the library as it was built for all tests.

use std::path::Path;
use std::process::Command;

use crate::command::run;
use crate::install::Packages;

/// pytest with its dependencies, and the packages that the tests compare with.
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
        // For Pythons before 3.11.
        "exceptiongroup",
        "tomli",
        "typing_extensions",
    ],
    files: &[],
};

/// Runs all tests except the ones of torch, which `cargo xtask torch` runs.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    // A wheel is built from it as it is.
    let mut lock = Command::new(env!("CARGO"));
    run(lock.current_dir(root.join("python")).args([
        "update",
        "--workspace",
        "--locked",
        "--quiet",
    ]))
    .map_err(|why| {
        format!("python/Cargo.lock is stale, `cargo update --workspace` there: {why}")
    })?;
    let packages = PYTEST.install(root)?;
    // Built with the selection that all tests are built for, so that no crate is built twice.
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["build", "--profile", "test", "--workspace"]);
    run(cargo.args(["--exclude", "xtask", "--lib"]))?;
    let paths = [packages, root.join("python")];
    let paths = std::env::join_paths(paths).map_err(|error| error.to_string())?;
    let mut pytest = Command::new("python3");
    pytest.current_dir(root.join("python")).args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]);
    pytest.args(["--ignore", "tests/torch"]).env("PYTHONPATH", paths);
    pytest.env("PYTHONDONTWRITEBYTECODE", "1");
    run(pytest.env("ROUNDELAY_LIBRARY", root.join("target/debug/libroundelay_command.so")))
}
