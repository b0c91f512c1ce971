//! `cargo xtask torch`: the backend of `torch.distributed`, beside Gloo, with the `PyTorch` of `PyPI`; also `PyTorch`'s own
//! tests, and times.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{output, root, run};

/// Its wheel is one for CUDA. NVIDIA's libraries, which are five times as large, are left out: `stubs.py` stands in.
const TORCH: &str = "torch==2.15.*";

/// What it needs beside them, what the tests need, and what `PyTorch`'s own tests need.
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

/// Installs what is needed and runs what is asked for: the tests, `PyTorch`'s own (`--suite`), or times (`--bench`).
pub(crate) fn all(asked: &[&str]) -> Result<(), String> {
    let root = root();
    let python = install(&root)?;
    let (profile, folder) =
        if asked.first() == Some(&"--bench") { ("release", "release") } else { ("dev", "debug") };
    let library = built(&root, profile)?.join(folder).join("libroundelay_capi.so");
    let mut command = Command::new(python);
    command.current_dir(root.join("python")).env("PYTHONPATH", root.join("python"));
    command.env("ROUNDELAY_LIBRARY", library).env("PYTHONDONTWRITEBYTECODE", "1");
    match asked {
        [] => command.args(["-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/torch"]),
        ["--suite", rest @ ..] => command.arg("tests/torch/suite.py").args(rest),
        ["--bench", rest @ ..] => command.arg("bench/torch_backends.py").args(rest),
        [other, ..] => return Err(format!("{other}: neither --suite nor --bench")),
    };
    run(&mut command)
}

/// The Python of an environment below `target/torch` that has them.
fn install(root: &Path) -> Result<PathBuf, String> {
    let folder = root.join("target/torch");
    let python = folder.join("bin/python");
    let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let script = root.join("xtask/torch/stubs.py");
    let stubs = fs::read_to_string(&script).map_err(|error| failed(&script, error))?;
    // Written last, so half an installation has none.
    let stamp = folder.join("installed");
    let wanted = format!("{TORCH}\n{}\n{stubs}", PACKAGES.join("\n"));
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        println!("target/torch has PyTorch");
        return Ok(python);
    }
    println!("installing PyTorch into target/torch; its wheel has 539 MB");
    run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let pip = || {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        pip
    };
    run(pip().args(["--no-deps", TORCH]))?;
    run(pip().args(PACKAGES))?;
    let asked = ["-c", "import sysconfig; print(sysconfig.get_path('platlib'))"];
    let packages = output(Command::new(&python).args(asked))?;
    run(Command::new(&python).arg(&script).arg(Path::new(packages.trim()).join("torch/lib")))?;
    fs::write(&stamp, wanted).map_err(|error| failed(&stamp, error))?;
    Ok(python)
}

/// Builds the library; the folder of what is built.
fn built(root: &Path, profile: &str) -> Result<PathBuf, String> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["build", "--package", "roundelay-capi", "--lib"]);
    run(cargo.args(["--profile", profile]))?;
    Ok(std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from))
}
