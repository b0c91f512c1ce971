//! `cargo xtask torch`: the backend of `torch.distributed`, beside Gloo, with the `PyTorch` of `PyPI`; also `PyTorch`'s
//! own tests, and times.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{library, output, root, run};
use crate::install::once;

/// Its wheel is for CUDA. NVIDIA's libraries, which are five times as large, are left out: `stubs.py` replaces them.
const TORCH: &str = "torch==2.15.*";

/// The packages that it needs beside them, that the tests need, and that `PyTorch`'s own tests need.
const PACKAGES: [&str; 11] = [
    "filelock",
    "fsspec",
    "jinja2",
    "networkx",
    "setuptools",
    "sympy>=1.13.3",
    "typing_extensions",
    "numpy",
    "pytest>=8",
    "expecttest",
    "packaging",
];

/// The tests that also run without the compiled functions.
const INTERPRETED: [&str; 2] = ["tests/torch/test_direct.py", "tests/torch/test_collectives.py"];

/// Installs the packages and runs the job that is asked for: the tests, `PyTorch`'s own (`--suite`), or times
/// (`--bench`).
pub(crate) fn all(asked: &[&str]) -> Result<(), String> {
    let root = root();
    let python = install(&root)?;
    let profile = if asked.first() == Some(&"--bench") { "release" } else { "dev" };
    let library = library(&root, "roundelay-command", profile)?;
    let python = || {
        let mut command = Command::new(&python);
        command.current_dir(root.join("python")).env("PYTHONPATH", root.join("python"));
        command.env("ROUNDELAY_LIBRARY", &library).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    };
    let pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider"];
    match asked {
        [] => {
            run(python().args(pytest).arg("tests/torch"))?;
            println!("once more, by ctypes, what calls without torch's dispatcher");
            let mut again = python();
            run(again.args(pytest).args(INTERPRETED).env("ROUNDELAY_TORCH_EXTENSION", "0"))
        }
        ["--suite", rest @ ..] => run(python().arg("tests/torch/suite.py").args(rest)),
        ["--bench", rest @ ..] => run(python().arg("bench/torch_backends.py").args(rest)),
        [other, ..] => Err(format!("{other}: neither --suite nor --bench")),
    }
}

/// Installs the packages, and returns the Python of an environment below `target/torch` that has them.
fn install(root: &Path) -> Result<PathBuf, String> {
    let script = root.join("xtask/torch/stubs.py");
    let stubs =
        fs::read_to_string(&script).map_err(|error| format!("{}: {error}", script.display()))?;
    let wanted = format!("{TORCH}\n{}\n{stubs}", PACKAGES.join("\n"));
    let folder = once(root, "torch", &wanted, &["bin/python"], |folder| {
        println!("installing PyTorch into target/torch; its wheel has 539 MB");
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(folder))?;
        let python = folder.join("bin/python");
        let pip = || {
            let mut pip = Command::new(&python);
            pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
            pip
        };
        run(pip().args(["--no-deps", TORCH]))?;
        run(pip().args(PACKAGES))?;
        let asked = ["-c", "import sysconfig; print(sysconfig.get_path('platlib'))"];
        let packages = output(Command::new(&python).args(asked))?;
        run(Command::new(&python).arg(&script).arg(Path::new(packages.trim()).join("torch/lib")))
    })?;
    Ok(folder.join("bin/python"))
}
