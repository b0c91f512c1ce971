//! Exported C files of the whole library, at 1 to 17 ranks, by every available MPI: those of `PyPI`, and Debian's,
//! which the package manager installs.

use std::path::Path;
use std::process::Command;

use super::pypi::{Mpi, MpiKind};
use crate::command::{run, there};
use crate::install;

/// Debian's packages of the libraries.
const PACKAGES: [&str; 4] = ["openmpi-bin", "libopenmpi-dev", "mpich", "libmpich-dev"];

/// Installs all and runs the test that uses them.
pub(super) fn all(root: &Path) -> Result<(), String> {
    for kind in MpiKind::OF_PYPI {
        Mpi::install(root, kind)?;
    }
    of_debian()?;
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(root).args(["test", "--package", "roundelay-tests", "--test", "all"]);
    run(command.args(["--", "--include-ignored", "--nocapture", "--test-threads", "1", "mpi::"]))
}

/// Runs Debian's MPI. Where there is no such package manager, or it may not be used, that is printed, and only the
/// other MPIs are run.
fn of_debian() -> Result<(), String> {
    if there("mpicc.openmpi") && there("mpicc.mpich") {
        return Ok(());
    }
    if !install::debian(&PACKAGES)? {
        println!(
            "Debian's MPIs are left out: `apt-get install {}` installs them",
            PACKAGES.join(" ")
        );
    }
    Ok(())
}
