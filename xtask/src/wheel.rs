//! `cargo xtask wheel`: the Python package as one wheel for Linux, whose tag the symbols of its library set, tried in fresh
//! environments.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::command::{output, root, run};
use crate::install::Packages;

/// The builder of wheels: it links the library, and packs it with the modules.
const MATURIN: Packages = Packages {
    folder: "maturin",
    into: "--target",
    names: &["maturin>=1.9,<2"],
    files: &["bin/maturin"],
};

/// The versions of Python that the wheel's tag promises, as far as they are known.
const MINORS: std::ops::RangeInclusive<u32> = 9..=14;

/// The program that two ranks run.
const PROGRAM: &str = "\
import numpy, roundelay
with roundelay.World.from_env(timeout=60) as world:
    sums = world.all_reduce(numpy.full(1000, world.rank + 1.0))
    assert (sums == 3).all(), sums
    assert world.all_gather(numpy.arange(2), algorithm=\"RingAllGather\").tolist() == [0, 1, 0, 1]
";

/// Builds the wheel into `target/wheels`, and tries it: `--dev` builds it without optimization, to try the packaging.
pub(crate) fn all(asked: &[&str]) -> Result<(), String> {
    let profile = match asked {
        [] => "release",
        ["--dev"] => "dev",
        [other, ..] => return Err(format!("{other}: the one option is --dev")),
    };
    let root = root();
    let maturin = MATURIN.install(&root)?.join("bin/maturin");
    let wheels = root.join("target/wheels");
    // A wheel of an earlier build is no result of this one.
    let _ = fs::remove_dir_all(&wheels);
    println!("building the library; `cargo` shows its crates");
    let begun = Instant::now();
    let mut build = Command::new(maturin);
    build.current_dir(root.join("python")).args(["build", "--profile", profile, "--locked"]);
    // By its own look at the symbols, maturin takes the oldest tag that allows them.
    run(build.args(["--auditwheel", "repair", "--out"]).arg(&wheels))?;
    let wheel = only_wheel(&wheels)?;
    let bytes = fs::metadata(&wheel).map_err(|why| format!("{}: {why}", wheel.display()))?.len();
    let (seconds, megabytes) = (begun.elapsed().as_secs_f64(), bytes as f64 / 1e6);
    let name = wheel.file_name().unwrap_or_default().display();
    println!("built target/wheels/{name} of {megabytes:.1} MB in {seconds:.0} s");
    checked(&root, &wheel)?;
    tried(&root, &wheel)
}

/// Returns the one wheel in a folder.
fn only_wheel(folder: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let wheels: Vec<_> = paths.filter(|at| at.extension().is_some_and(|e| e == "whl")).collect();
    match &wheels[..] {
        [one] => Ok(one.clone()),
        _ => Err(format!("{} has {} wheels", folder.display(), wheels.len())),
    }
}

/// Compares the tag of a wheel with the library in it: its GLIBC is as old as its symbols allow, and it depends on no
/// minor version of Python.
fn checked(root: &Path, wheel: &Path) -> Result<(), String> {
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let folder = root.join("target/wheel-contents");
    let _ = fs::remove_dir_all(&folder);
    run(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(wheel).arg(&folder))?;
    let library = folder.join("roundelay/_native.abi3.so");
    let bytes = fs::read(&library).map_err(|why| format!("{}: {why}", library.display()))?;
    let needed = glibc(&bytes).ok_or("the library names no version of GLIBC")?;
    let tagged = tag(&name).ok_or_else(|| format!("{name} has no tag of manylinux and abi3"))?;
    println!("the library needs GLIBC 2.{needed}, and the tag promises it from 2.{tagged} on");
    if needed > tagged {
        return Err(format!("{name} promises GLIBC 2.{tagged}, and its library needs 2.{needed}"));
    }
    Ok(())
}

/// Returns the minor version of the newest GLIBC that a library names, in its list of versions of symbols.
fn glibc(library: &[u8]) -> Option<u32> {
    let name = b"GLIBC_2.";
    let places = library.windows(name.len()).enumerate().filter(|(_, at)| at == name);
    let minor = |(at, _): (usize, _)| -> Option<u32> {
        let rest = &library[at + name.len()..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        // A name ends with a zero; in a message there would be more text.
        let ends = matches!(rest.get(digits), Some(0 | b'.'));
        ends.then(|| std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()).flatten()
    };
    places.filter_map(minor).max()
}

/// Returns the minor version of GLIBC that a wheel's name promises, where it is for every Python 3 since one.
fn tag(wheel: &str) -> Option<u32> {
    let mut parts = wheel.strip_suffix(".whl")?.rsplit('-');
    let (platforms, abi) = (parts.next()?, parts.next()?);
    let of = |platform: &str| -> Option<u32> {
        platform.strip_prefix("manylinux_2_")?.split('_').next()?.parse().ok()
    };
    // Several platforms are alternatives, so the oldest is the promise.
    platforms.split('.').filter_map(of).min().filter(|_| abi == "abi3")
}

/// Installs a wheel into a fresh environment of each Python that is there, and runs the command and ranks of it there,
/// away from the sources.
fn tried(root: &Path, wheel: &Path) -> Result<(), String> {
    let folder = root.join("target/wheel-trial");
    fs::create_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let program = folder.join("program.py");
    fs::write(&program, PROGRAM).map_err(|why| format!("{}: {why}", program.display()))?;
    let mut seen = BTreeSet::new();
    let minors = MINORS.map(|minor| format!("python3.{minor}"));
    for python in std::iter::once("python3".to_owned()).chain(minors) {
        // The version, where it can make environments.
        let version = "import ensurepip, sys, venv; print('Python', sys.version.split()[0])";
        let Ok(version) = output(Command::new(&python).args(["-c", version])) else { continue };
        if !seen.insert(version.clone()) {
            continue;
        }
        let begun = Instant::now();
        let at = folder.join(&python);
        run(Command::new(&python).args(["-m", "venv", "--clear"]).arg(&at))?;
        let inside = || {
            let mut command = Command::new(at.join("bin/python"));
            command.current_dir(&folder);
            for name in ["PYTHONPATH", "ROUNDELAY_LIBRARY"] {
                command.env_remove(name);
            }
            command
        };
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        output(inside().args(pip).arg(wheel).arg("numpy"))?;
        output(inside().args(["-m", "roundelay", "check", "RingAllReduce", "-n", "4"]))?;
        let ranks = ["-m", "roundelay", "launch", "-n", "2", "--"];
        output(inside().args(ranks).arg(at.join("bin/python")).arg(&program))?;
        let seconds = begun.elapsed().as_secs_f64();
        println!("{}: it is installed and runs, in {seconds:.0} s", version.trim());
    }
    if seen.is_empty() {
        return Err("no python3 is there that can make an environment".to_owned());
    }
    // Each environment has a NumPy.
    fs::remove_dir_all(&folder).map_err(|why| format!("{}: {why}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::{glibc, tag};

    #[test]
    fn the_newest_glibc_of_a_library_is_found() {
        let names = b"\0GLIBC_2.2.5\0GLIBC_2.34\0GLIBC_2.9\0GLIBC_2.40 is no name of a symbol\0";
        assert_eq!(glibc(names), Some(34));
        assert_eq!(glibc(b"nothing"), None);
        assert_eq!(glibc(b"GLIBC_2."), None);
    }

    #[test]
    fn the_tag_of_a_wheel_is_read() {
        let name = |tags: &str| format!("roundelay-0.1.0-{tags}.whl");
        assert_eq!(tag(&name("cp39-abi3-manylinux_2_34_x86_64")), Some(34));
        assert_eq!(tag(&name("cp39-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64")), Some(17));
        assert_eq!(tag(&name("cp39-abi3-linux_x86_64")), None);
        assert_eq!(tag(&name("cp311-cp311-manylinux_2_34_x86_64")), None);
    }
}
