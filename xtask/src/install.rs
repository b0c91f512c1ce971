//! Installations below `target/`, each made once: packages of `PyPI`, and other files that a task fetches.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{output, privileged, program, run, there, write};

/// Packages of `PyPI` in a folder below `target/`.
pub(crate) struct Packages {
    pub(crate) folder: &'static str,
    /// The kind of installation: as Python's packages (`--target`), or as programs with their libraries (`--prefix`).
    pub(crate) into: &'static str,
    pub(crate) names: &'static [&'static str],
    /// The files of the packages that are needed.
    pub(crate) files: &'static [&'static str],
}

impl Packages {
    /// Installs the packages unless they are installed, and returns their folder.
    pub(crate) fn install(&self, root: &Path) -> Result<PathBuf, String> {
        once(root, self.folder, &self.names.join("\n"), self.files, |folder| {
            println!("installing {} into target/{}", self.names.join(" and "), self.folder);
            let mut pip = any_pip()?;
            pip.args(["install", "--quiet", "--upgrade", "--no-deps", "--ignore-installed"]);
            // Debian would install programs with a prefix into a folder `local` there.
            pip.env("DEB_PYTHON_INSTALL_LAYOUT", "deb_system")
                .env("PIP_ROOT_USER_ACTION", "ignore");
            run(pip.arg(self.into).arg(folder).args(self.names))
        })
    }
}

/// Installs into a folder below `target/`, unless it has all files and was installed for equal `wanted` texts.
pub(crate) fn once(
    root: &Path,
    name: &str,
    wanted: &str,
    files: &[&str],
    install: impl FnOnce(&Path) -> Result<(), String>,
) -> Result<PathBuf, String> {
    let folder = root.join("target").join(name);
    // Written last, so a partial installation has no stamp.
    let stamp = folder.join("installed");
    let missing = || files.iter().find(|file| !folder.join(file).is_file());
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) && missing().is_none() {
        println!("target/{name} has it");
        return Ok(folder);
    }
    install(&folder)?;
    if let Some(file) = missing() {
        return Err(format!("it was installed, but {file} is not in {}", folder.display()));
    }
    write(&stamp, wanted)?;
    Ok(folder)
}

/// Installs Debian's packages. Returns false, and installs nothing, where there is no apt-get or it may not be used.
pub(crate) fn debian(packages: &[&str]) -> Result<bool, String> {
    if !privileged() || !there("apt-get") {
        return Ok(false);
    }
    println!("installing {} by apt-get", packages.join(" "));
    output(&mut program("apt-get", &["update", "--quiet"]))?;
    let mut apt = program("apt-get", &["install", "--yes", "--quiet", "--no-install-recommends"]);
    output(apt.args(packages).env("DEBIAN_FRONTEND", "noninteractive"))?;
    Ok(true)
}

/// Returns the pip of this machine.
pub(crate) fn any_pip() -> Result<Command, String> {
    let ways = [("python3", &["-m", "pip"][..]), ("pip3", &[]), ("pip", &[])];
    let starts =
        |(name, first): &&(&str, &[&str])| output(program(name, first).arg("--version")).is_ok();
    let (name, first) = ways
        .iter()
        .find(starts)
        .ok_or("no pip: neither `python3 -m pip` nor `pip3` nor `pip` starts; install one")?;
    Ok(program(name, first))
}
