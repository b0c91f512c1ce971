//! `cargo xtask wheel`: the Python package as one wheel for Linux, whose tag the symbols of its library set, tried in fresh
//! environments.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::command::{at, output, program, root, run, write};
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

/// Compares the tag of a wheel with the library in it: its GLIBC is as old as its symbols allow, and it depends on no
/// minor version of Python. Several platforms of a tag are alternatives, so the oldest is the promise.
const CHECK: &str = r#"
import re, sys, zipfile
wheel = sys.argv[1]
library = zipfile.ZipFile(wheel).read("roundelay/_native.abi3.so")
needed = max(int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)[.\0]", library))
tagged = min(int(minor) for minor in re.findall(r"manylinux_2_(\d+)_", wheel.split("-abi3-")[1]))
print(f"the library needs GLIBC 2.{needed}, and the tag promises it from 2.{tagged} on")
assert needed <= tagged, wheel
"#;

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
    // By its own look at the symbols, maturin takes the oldest tag that allows them, and refuses others.
    run(build.args(["--auditwheel", "repair", "--out"]).arg(&wheels))?;
    let wheel = only_wheel(&wheels)?;
    let bytes = fs::metadata(&wheel).map_err(at(&wheel))?.len();
    let (seconds, megabytes) = (begun.elapsed().as_secs_f64(), bytes as f64 / 1e6);
    let name = wheel.file_name().unwrap_or_default().display();
    println!("built target/wheels/{name} of {megabytes:.1} MB in {seconds:.0} s");
    run(program("python3", &["-c", CHECK]).arg(&wheel))?;
    tried(&root, &wheel)
}

/// Returns the one wheel in a folder.
fn only_wheel(folder: &Path) -> Result<PathBuf, String> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let wheels: Vec<_> = paths.filter(|at| at.extension().is_some_and(|e| e == "whl")).collect();
    match &wheels[..] {
        [one] => Ok(one.clone()),
        _ => Err(format!("{} has {} wheels", folder.display(), wheels.len())),
    }
}

/// Installs a wheel into a fresh environment of each Python that is there, and runs the command and ranks of it there,
/// away from the sources.
fn tried(root: &Path, wheel: &Path) -> Result<(), String> {
    let folder = root.join("target/wheel-trial");
    let ranks = folder.join("program.py");
    write(&ranks, PROGRAM)?;
    let mut seen = BTreeSet::new();
    let minors = MINORS.map(|minor| format!("python3.{minor}"));
    for python in std::iter::once("python3".to_owned()).chain(minors) {
        // The version, where it can make environments.
        let version = "import ensurepip, sys, venv; print('Python', sys.version.split()[0])";
        let Ok(version) = output(&mut program(&python, &["-c", version])) else { continue };
        if !seen.insert(version.clone()) {
            continue;
        }
        let begun = Instant::now();
        let at = folder.join(&python);
        run(program(&python, &["-m", "venv", "--clear"]).arg(&at))?;
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
        let launch = ["-m", "roundelay", "launch", "-n", "2", "--"];
        output(inside().args(launch).arg(at.join("bin/python")).arg(&ranks))?;
        let seconds = begun.elapsed().as_secs_f64();
        println!("{}: it is installed and runs, in {seconds:.0} s", version.trim());
    }
    if seen.is_empty() {
        return Err("no python3 is there that can make an environment".to_owned());
    }
    // Each environment has a NumPy.
    fs::remove_dir_all(&folder).map_err(at(&folder))
}
