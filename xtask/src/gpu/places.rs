//! The places of the programs and libraries that the steps need: built here, or brought along to a machine that has
//! neither a clone nor cargo.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{brief, output, root, run};

/// The programs and the peers' scripts.
pub(super) struct Programs {
    pub(super) check: PathBuf,
    pub(super) bench: PathBuf,
    pub(super) peers: PathBuf,
}

impl Programs {
    /// Returns the programs that `--pack` has put into a folder.
    pub(super) fn packed(folder: &Path) -> Result<Self, String> {
        let folder = folder.canonicalize().map_err(|why| format!("{}: {why}", folder.display()))?;
        let programs = Self {
            check: folder.join("gpu-check"),
            bench: folder.join("roundelay"),
            peers: folder.join("peers"),
        };
        match [&programs.check, &programs.bench, &programs.peers].iter().find(|path| !path.exists())
        {
            None => Ok(programs),
            Some(path) => {
                let path = path.display();
                Err(format!("there is no {path}; `cargo xtask gpu-test --pack DIR` makes it"))
            }
        }
    }

    /// Builds the programs of this clone, and returns them.
    pub(super) fn built(profile: &str) -> Result<Self, String> {
        let root = root();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(&root).args(["build", "--quiet", "--profile", profile]);
        cargo.args(["--package", "roundelay-tests", "--bin", "gpu-check"]);
        cargo.args(["--package", "roundelay-cli", "--bin", "roundelay"]);
        run(&mut cargo)?;
        let target = std::env::var_os("CARGO_TARGET_DIR");
        let target = target.map_or_else(|| root.join("target"), |target| root.join(target));
        let folder = target.join(if profile == "dev" { "debug" } else { profile });
        Ok(Self {
            check: folder.join("gpu-check"),
            bench: folder.join("roundelay"),
            peers: root.join("xtask/peers"),
        })
    }
}

/// Returns the folder of Python's packages of NVIDIA, if there are any.
fn wheels() -> Option<PathBuf> {
    let script = "import nvidia; print(list(nvidia.__path__)[0])";
    let found = output(Command::new("python3").args(["-c", script])).ok()?;
    Some(Path::new(found.trim()).parent()?.to_owned())
}

/// Returns the folder of the NCCL that Python's packages bring, if they do.
pub(super) fn nccl() -> Option<PathBuf> {
    let script = "import nvidia.nccl; print(list(nvidia.nccl.__path__)[0] + '/lib')";
    let found = output(Command::new("python3").args(["-c", script])).ok()?;
    Some(PathBuf::from(found.trim()))
}

/// Returns the CUDA toolkits in the usual place, the newest first.
pub(super) fn toolkits() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/usr/local").into_iter().flatten();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let named = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("cuda"))
    };
    let mut found: Vec<PathBuf> = paths.filter(named).collect();
    found.sort();
    found.reverse();
    found
}

/// Returns the first place with an NVRTC that compiles a kernel of ours, for `ROUNDELAY_NVRTC`; `None` where the
/// variable, the loader or target/nvrtc already give a usable one.
pub(super) fn nvrtc(check: &Path) -> Result<Option<PathBuf>, String> {
    let others = wheels().into_iter().chain(toolkits()).map(Some);
    let mut tried = Vec::new();
    for place in std::iter::once(None).chain(others) {
        let mut command = Command::new(check);
        command.arg("nvrtc");
        if let Some(place) = &place {
            command.env("ROUNDELAY_NVRTC", place);
        }
        match output(&mut command) {
            Ok(said) => {
                println!("== {}", said.trim());
                return Ok(place);
            }
            Err(why) => {
                let place =
                    place.map_or("as it is".to_owned(), |place| place.display().to_string());
                let why: Vec<&str> = why.lines().skip(1).collect();
                tried.push(format!("{place}: {}", brief(&why.join("\n"))));
            }
        }
    }
    Err(format!("no NVRTC compiles a kernel:\n  {}", tried.join("\n  ")))
}
