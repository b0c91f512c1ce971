//! Exported C files of the whole library, at 1 to 17 ranks, by every available MPI: those of `PyPI`, and Debian's,
//! which the package manager installs.

use std::path::Path;
use std::process::Command;

use super::pypi::{Mpi, MpiKind};
use crate::command::{output, privileged, run, there};

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
    if !privileged() || !there("apt-get") {
        println!(
            "Debian's MPIs are left out: `apt-get install {}` installs them",
            PACKAGES.join(" ")
        );
        return Ok(());
    }
    println!("installing {} by apt-get", PACKAGES.join(" "));
    output(Command::new("apt-get").args(["update", "--quiet"]))?;
    let mut apt = Command::new("apt-get");
    apt.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(PACKAGES);
    output(apt.env("DEBIAN_FRONTEND", "noninteractive"))?;
    Ok(())
}
