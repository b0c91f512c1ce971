//! `cargo xtask nvrtc`: CUDA's compiler below `target/`, from NVIDIA's wheels. It needs neither a GPU nor a driver.

use std::fs;
use std::path::Path;
use std::process::Command;

/// The library, and the headers that kernels include.
const WHEELS: [&str; 2] = ["nvidia-cuda-nvrtc==13.0.*", "nvidia-cuda-runtime==13.0.*"];
/// What is needed of them.
const FILES: [&str; 3] = [
    "nvidia/cu13/lib/libnvrtc.so.13",
    "nvidia/cu13/include/cuda_bf16.h",
    "nvidia/cu13/include/cuda_fp8.h",
];

pub(crate) fn install(root: &Path) -> Result<(), String> {
    let folder = root.join("target/nvrtc");
    // Written last, so half an installation has none.
    let stamp = folder.join("installed");
    let wanted = WHEELS.join("\n");
    let there = |file: &str| folder.join(file).is_file();
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted)
        && FILES.iter().all(|f| there(f))
    {
        println!("target/nvrtc has it");
        return Ok(());
    }
    println!("installing {} into target/nvrtc", WHEELS.join(" and "));
    pip("--target", &folder, &WHEELS)
        .map_err(|why| format!("{why}; or set ROUNDELAY_NVRTC to a CUDA toolkit's NVRTC"))?;
    if let Some(file) = FILES.iter().find(|file| !there(file)) {
        return Err(format!(
            "the wheels were installed, but {} is not in {}",
            file,
            folder.display()
        ));
    }
    fs::write(&stamp, wanted).map_err(|error| format!("{}: {error}", stamp.display()))
}

/// Installs wheels into a folder, as Python's packages (`--target`) or as programs with their libraries (`--prefix`), with
/// whichever pip there is. One that starts and fails has said why.
pub(crate) fn pip(into: &str, folder: &Path, wheels: &[&str]) -> Result<(), String> {
    let ways = [("python3", &["-m", "pip"][..]), ("pip3", &[]), ("pip", &[])];
    for (program, first) in ways {
        let mut asked = Command::new(program);
        if !asked.args(first).arg("--version").output().is_ok_and(|output| output.status.success())
        {
            continue;
        }
        let mut command = Command::new(program);
        command.args(first).args([
            "install",
            "--quiet",
            "--upgrade",
            "--no-deps",
            "--ignore-installed",
            into,
        ]);
        // Debian would put what has a prefix into a folder `local` there.
        command
            .env("DEB_PYTHON_INSTALL_LAYOUT", "deb_system")
            .env("PIP_ROOT_USER_ACTION", "ignore");
        let status = command.arg(folder).args(wheels).status();
        return match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => {
                Err(format!("{program} could not install {}: {status}", wheels.join(" and ")))
            }
            Err(error) => Err(format!("{program} did not start: {error}")),
        };
    }
    Err("no pip: neither `python3 -m pip` nor `pip3` nor `pip` starts; install one".to_owned())
}
