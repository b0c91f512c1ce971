//! The CUDA engine on a driver of our own: worlds, plans, launches, reports and errors, all as on a GPU but for the GPU.
//! `driver/libcuda.cpp` is the driver; kernels are their texts, compiled by g++ with the shim as soon as NVRTC compiles them
//! (`driver/libnvrtc.cpp`).
//!
//! The loader finds a driver when a process begins, so the tests of `below` run in a process that this one starts.

#[path = "gpu/cases.rs"]
#[allow(dead_code, reason = "gpu-check uses the rest")]
mod cases;
#[path = "gpu/cuda.rs"]
#[allow(dead_code, reason = "gpu-check uses the rest")]
mod cuda;
#[path = "gpu/engine.rs"]
#[allow(dead_code, reason = "gpu-check uses the rest")]
mod engine;
#[path = "gpu/nccl.rs"]
#[allow(dead_code, reason = "gpu-check uses the rest")]
mod nccl;

mod below;
pub(crate) mod build;
mod host_program;
mod over_nccl;

use std::process::Command;

/// Runs all tests of `below` for that number of devices.
fn run_below(devices: u32, name: &str) {
    run_below_with("", devices, name);
}

/// Runs tests with a value of the variable for checks of first calls.
fn run_below_with(check: &str, devices: u32, name: &str) {
    let mut command = Command::new(std::env::current_exe().expect("a running program"));
    command.args(["--ignored", "--test-threads", "1", name]);
    command.env("ROUNDELAY_FAKE_DEVICES", devices.to_string()).env("ROUNDELAY_CHECK", check);
    let ran = build::below(&mut command).output().expect("it starts");
    let said = String::from_utf8_lossy(&ran.stdout);
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{}\n{said}\n{errors}", ran.status);
    assert!(!said.contains(" 0 passed"), "it ran nothing:\n{said}");
}

#[test]
fn plans_on_one_device() {
    run_below(1, "driver::below::one_device");
}

#[test]
fn plans_on_several_devices() {
    run_below(3, "driver::below::several_devices");
}

#[test]
fn plans_that_check_themselves() {
    run_below_with("first", 2, "driver::below::checked");
}

#[test]
fn plans_over_nccl() {
    run_below(2, "driver::over_nccl");
}
