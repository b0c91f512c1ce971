//! Installations below `target/`, each made once: packages of `PyPI`, and other files that a task fetches.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{output, privileged, there};

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
        let wanted = self.names.join("\n");
        once(root, self.folder, &wanted, self.files, |folder| {
            println!("installing {} into target/{}", self.names.join(" and "), self.folder);
            pip(self.into, folder, self.names)
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
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))?;
    Ok(folder)
}

/// Installs Debian's packages. Returns false, and installs nothing, where there is no apt-get or it may not be used.
pub(crate) fn debian(packages: &[&str]) -> Result<bool, String> {
    if !privileged() || !there("apt-get") {
        return Ok(false);
    }
    println!("installing {} by apt-get", packages.join(" "));
    output(Command::new("apt-get").args(["update", "--quiet"]))?;
    let mut apt = Command::new("apt-get");
    apt.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(packages);
    output(apt.env("DEBIAN_FRONTEND", "noninteractive"))?;
    Ok(true)
}

/// Installs packages into a folder with whichever pip there is. One that starts and fails has said why.
fn pip(into: &str, folder: &Path, packages: &[&str]) -> Result<(), String> {
    let mut pip = any_pip()?;
    pip.args(["install", "--quiet", "--upgrade", "--no-deps", "--ignore-installed", into]);
    // Debian would install programs with a prefix into a folder `local` there.
    pip.env("DEB_PYTHON_INSTALL_LAYOUT", "deb_system").env("PIP_ROOT_USER_ACTION", "ignore");
    match pip.arg(folder).args(packages).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("pip could not install {}: {status}", packages.join(" and "))),
        Err(error) => Err(format!("pip did not start: {error}")),
    }
}

/// Returns the pip of this machine.
pub(crate) fn any_pip() -> Result<Command, String> {
    let ways = [("python3", &["-m", "pip"][..]), ("pip3", &[]), ("pip", &[])];
    let starts = |(program, first): &&(&str, &[&str])| {
        let mut asked = Command::new(program);
        asked.args(*first).arg("--version");
        asked.output().is_ok_and(|output| output.status.success())
    };
    let Some((program, first)) = ways.iter().find(starts) else {
        return Err(
            "no pip: neither `python3 -m pip` nor `pip3` nor `pip` starts; install one".to_owned()
        );
    };
    let mut pip = Command::new(program);
    pip.args(*first);
    Ok(pip)
}
