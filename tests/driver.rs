//! The CUDA engine on a driver of our own: worlds, plans, launches, reports and errors, all as on a GPU but for the GPU.
//! `driver/libcuda` is the driver; kernels are their texts, compiled by g++ with the shim as soon as NVRTC compiles them
//! (`driver/libnvrtc.cpp`).
//!
//! The loader finds a driver when a process begins, so each test of a plan runs in a process of its own.

/// Has a test run in a process of its own below the driver: with a number of devices, and with checks of first calls.
macro_rules! below {
    ($devices:literal) => {
        below!($devices, "")
    };
    ($devices:literal, $check:literal) => {{
        fn here() {}
        if !crate::driver::is_below($devices, $check, here) {
            return;
        }
    }};
}

#[path = "gpu/cases.rs"]
#[allow(dead_code, reason = "gpu-check uses the rest")]
pub(crate) mod cases;
#[path = "gpu/cuda.rs"]
#[allow(dead_code, reason = "gpu-check uses the rest")]
mod cuda;
#[path = "gpu/engine.rs"]
#[allow(dead_code, reason = "gpu-check uses the rest")]
pub(crate) mod engine;
#[path = "gpu/ranks.rs"]
#[allow(dead_code, reason = "gpu-check uses the rest")]
mod members;
#[cfg(target_os = "linux")]
#[path = "gpu/processes.rs"]
#[allow(dead_code, reason = "gpu-check uses the rest")]
mod rank_processes;

mod below;
pub(crate) mod build;
mod calls;
mod host_program;
mod over_nccl;
#[cfg(target_os = "linux")]
mod processes;
mod variables;

use std::process::{Child, Command, Stdio};

/// Whether the process runs below the driver. One that does not runs the test that `here` is a function of in a process
/// that does, with that number of devices and a value of the variable for checks of first calls.
fn is_below<F>(devices: u32, check: &str, _here: F) -> bool {
    if std::env::var_os("ROUNDELAY_FAKE").is_some() {
        return true;
    }
    let path = std::any::type_name::<F>().rsplit_once("::").expect("a function of a test").0;
    let name = path.split_once("::").expect("a test of this program").1;
    passes(test_below(name, devices).env("ROUNDELAY_CHECK", check).spawn().expect("it starts"));
    false
}

/// A test of this program in a process below the driver, with that number of devices.
fn test_below(name: &str, devices: u32) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a running program"));
    command.args(["--exact", name]).env("ROUNDELAY_FAKE_DEVICES", devices.to_string());
    build::below(&mut command).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Waits for a test in a process, which passes.
fn passes(process: Child) {
    let ran = process.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&ran.stdout);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{}\n{said}\n{errors}", ran.status);
    assert!(said.contains(" 1 passed"), "it ran nothing:\n{said}");
}
