//! The places of the programs and libraries that the steps need: built here, or brought along to a machine that has
//! neither a clone nor cargo.

use std::fs;
use std::path::{Path, PathBuf};

use crate::command::{at, build, folder, output, program, root, run};

/// The peers that are measured beside ours, by this script.
pub(super) const PEERS: &str = "peers.py";
/// The most bytes that can be carried to a lent machine.
const MOST: u64 = 64 << 20;

/// Our programs, and the script of the peers.
pub(super) struct Programs {
    pub(super) check: PathBuf,
    pub(super) bench: PathBuf,
    pub(super) peers: PathBuf,
}

impl Programs {
    /// Returns the programs that `--pack` has put into a folder.
    pub(super) fn packed(folder: &Path) -> Result<Self, String> {
        let folder = folder.canonicalize().map_err(at(folder))?;
        let [check, bench, peers] = ["gpu-check", "roundelay", PEERS].map(|name| folder.join(name));
        let missing = [&check, &bench, &peers].into_iter().find(|path| !path.exists());
        if let Some(path) = missing {
            let how = "`cargo xtask gpu-test --pack DIR` makes it";
            return Err(format!("there is no {}; {how}", path.display()));
        }
        Ok(Self { check, bench, peers })
    }

    /// Builds the programs of this clone, and returns them.
    pub(super) fn built(profile: &str) -> Result<Self, String> {
        let packages = ["--package", "roundelay-tests", "--package", "roundelay-cli"];
        let programs = ["--bin", "gpu-check", "--bin", "roundelay"];
        let folder = build(profile, &[packages, programs].concat())?;
        let [check, bench] = ["gpu-check", "roundelay"].map(|name| folder.join(name));
        Ok(Self { check, bench, peers: root().join("xtask/gpu").join(PEERS) })
    }
}

/// Puts all that `DIR/xtask gpu-test --built DIR` needs into a folder, for a machine that has neither Rust nor a clone.
pub(super) fn pack(to: &Path) -> Result<(), String> {
    let Programs { check, bench, peers } = Programs::built("release")?;
    let xtask = build("release", &["--package", "xtask"])?.join("xtask");
    folder(to)?;
    let mut all = 0;
    for from in [xtask, check, bench, peers] {
        let packed = to.join(from.file_name().unwrap_or_default());
        if from.ends_with(PEERS) {
            fs::copy(&from, &packed).map_err(at(&from))?;
        } else {
            run(program("strip", &["-o"]).arg(&packed).arg(&from))?;
        }
        let size = fs::metadata(&packed).map_err(at(&packed))?.len();
        println!("{:>8.2} MiB  {}", size as f64 / f64::from(1 << 20), packed.display());
        all += size;
    }
    // A kernel is kept by NVRTC's version, its size and the place of its headers, which differ there.
    println!("no compiled kernels: they are compiled there, by as many threads as there are cores");
    if all > MOST { Err(format!("more than {} MiB", MOST >> 20)) } else { Ok(()) }
}

/// Returns the folder that a line of Python prints, if it runs.
fn of_python(line: &str) -> Option<PathBuf> {
    output(&mut program("python3", &["-c", line])).ok().map(|found| found.trim().into())
}

/// Returns the folder of the NCCL that Python's packages bring, if they do.
pub(super) fn nccl() -> Option<PathBuf> {
    of_python("import nvidia.nccl; print(list(nvidia.nccl.__path__)[0] + '/lib')")
}

/// Returns the CUDA toolkits in the usual place, the newest first.
pub(super) fn toolkits() -> Vec<PathBuf> {
    let entries = fs::read_dir("/usr/local").into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut found: Vec<PathBuf> =
        paths.filter(|path| path.to_string_lossy().starts_with("/usr/local/cuda")).collect();
    found.sort();
    found.reverse();
    found
}

/// Returns the first place with an NVRTC that compiles a kernel of ours, for `ROUNDELAY_NVRTC`; `None` where the
/// variable, the loader or target/nvrtc already give a usable one.
pub(super) fn nvrtc(check: &Path) -> Result<Option<PathBuf>, String> {
    let wheels = of_python("import nvidia, os; print(os.path.dirname(list(nvidia.__path__)[0]))");
    let mut tried = Vec::new();
    for place in std::iter::once(None).chain(wheels.into_iter().chain(toolkits()).map(Some)) {
        let mut command = program(&check.to_string_lossy(), &["nvrtc"]);
        command.envs(place.as_ref().map(|place| ("ROUNDELAY_NVRTC", place)));
        match output(&mut command) {
            Ok(said) => {
                println!("== {}", said.trim());
                return Ok(place);
            }
            Err(why) => {
                let why = why.lines().last().unwrap_or_default();
                let place = place.map_or("as it is".into(), |place| place.display().to_string());
                tried.push(format!("{place}: {why}"));
            }
        }
    }
    Err(format!("no NVRTC compiles a kernel:\n  {}", tried.join("\n  ")))
}
