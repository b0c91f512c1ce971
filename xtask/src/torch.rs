//! `cargo xtask torch`: the backend of `torch.distributed`, beside Gloo, with the `PyTorch` of `PyPI`; also `PyTorch`'s
//! own tests, and times.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{library, output, program, read, root, run};
use crate::install::once;

/// Its wheel is for CUDA. NVIDIA's libraries, which are five times as large, are left out: `stubs.py` replaces them.
const TORCH: &str = "torch==2.15.*";

/// The packages that it needs beside them, that the tests need, and that `PyTorch`'s own tests need.
const PACKAGES: &str = "filelock fsspec jinja2 networkx setuptools sympy>=1.13.3 typing_extensions \
    numpy pytest>=8 expecttest packaging";

/// The tests that also run without the compiled functions.
const INTERPRETED: [&str; 2] = ["tests/torch/test_direct.py", "tests/torch/test_collectives.py"];

/// Installs the packages and runs the job that is asked for: the tests, `PyTorch`'s own (`--suite`), or times
/// (`--bench`).
pub(crate) fn all(asked: &[&str]) -> Result<(), String> {
    let root = root();
    let python = install(&root)?;
    let profile = if asked.first() == Some(&"--bench") { "release" } else { "dev" };
    let library = library("roundelay-command", profile)?;
    let python = |args: &[&str], rest: &[&str]| {
        let mut command = Command::new(&python);
        command.current_dir(root.join("python")).env("PYTHONPATH", root.join("python"));
        command.env("ROUNDELAY_LIBRARY", &library).env("PYTHONDONTWRITEBYTECODE", "1");
        command.args(args).args(rest);
        command
    };
    let pytest = ["-m", "pytest", "-q", "-p", "no:cacheprovider"];
    match asked {
        [] => {
            run(&mut python(&pytest, &["tests/torch"]))?;
            println!("once more, by ctypes, what calls without torch's dispatcher");
            run(python(&pytest, &INTERPRETED).env("ROUNDELAY_TORCH_EXTENSION", "0"))
        }
        ["--suite", rest @ ..] => run(&mut python(&["tests/torch/suite.py"], rest)),
        ["--bench", rest @ ..] => run(&mut python(&["bench/torch_backends.py"], rest)),
        [other, ..] => Err(format!("{other}: neither --suite nor --bench")),
    }
}

/// Installs the packages, and returns the Python of an environment below `target/torch` that has them.
fn install(root: &Path) -> Result<PathBuf, String> {
    let script = root.join("xtask/torch/stubs.py");
    let packages: Vec<&str> = PACKAGES.split(' ').collect();
    let wanted = format!("{TORCH}\n{}\n{}", packages.join("\n"), read(&script)?);
    let folder = once(root, "torch", &wanted, &["bin/python"], |folder| {
        println!("installing PyTorch into target/torch; its wheel has 539 MB");
        run(program("python3", &["-m", "venv", "--clear"]).arg(folder))?;
        let python = folder.join("bin/python");
        let python = |args: &[&str]| program(&python.to_string_lossy(), args);
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(python(&pip).args(["--no-deps", TORCH]))?;
        run(python(&pip).args(packages))?;
        let platlib = "import sysconfig; print(sysconfig.get_path('platlib'))";
        let packages = output(&mut python(&["-c", platlib]))?;
        run(python(&[]).arg(&script).arg(Path::new(packages.trim()).join("torch/lib")))
    })?;
    Ok(folder.join("bin/python"))
}
