//! The driver for tests itself: each function and each refusal of CUDA's, in one process and in several, by a program in
//! C++ (`calls/`), which g++ checks against `cuda.h`.

use std::process::Command;

use super::build;

/// Runs a case of the program with three devices and further variables.
fn run(case: &str, variables: &[(&str, &str)]) {
    let mut command = Command::new(build::made("calls"));
    command.arg(case).env("ROUNDELAY_FAKE_DEVICES", "3").envs(variables.iter().copied());
    let ran = build::below(&mut command).output().expect("it starts");
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{case}: {}\n{errors}", ran.status);
}

#[test]
fn devices_are_as_cuda_tells_of_them() {
    run("devices", &[]);
}

#[test]
fn blocks_of_memory_are_told_apart() {
    run("blocks", &[]);
    run("behind_a_block", &[]);
}

#[test]
fn processes_share_registered_memory_of_the_host() {
    run("registered", &[]);
}

#[test]
fn memory_is_mapped_where_it_may_be() {
    run("vmm_one_process", &[]);
    run("vmm_devices_apart", &[]);
}

#[test]
fn processes_share_allocations_by_descriptors() {
    run("vmm_two_processes_of_a_device", &[]);
    run("vmm_four_processes_of_two_devices", &[]);
}
