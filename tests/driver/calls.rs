//! The driver for tests itself: each function and each refusal of CUDA's, in one process and in several, by a program
//! in C++ (`calls/`), which g++ checks against `cuda.h`.

use std::process::Command;

use super::{build, passes, test_below};

/// Runs a case of the program with three devices, a machine of its own and further variables.
fn run(case: &str, variables: &[(&str, &str)]) {
    let machine = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(build::made("calls"));
    command.arg(case).env("ROUNDELAY_FAKE_DEVICES", "3").envs(variables.iter().copied());
    command.env("ROUNDELAY_FAKE_MACHINE", machine.path());
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
    run("vmm_kernel_without_access", &[]);
    run("vmm_multicast", &[("ROUNDELAY_FAKE_ATTRIBUTES", "132=1")]);
}

#[test]
fn processes_share_allocations_by_descriptors() {
    run("vmm_two_processes_of_a_device", &[]);
    run("vmm_four_processes_of_two_devices", &[]);
}

#[test]
fn processes_open_blocks_and_events_by_handles() {
    run("ipc_two_processes_of_a_device", &[]);
    run("ipc_four_processes_of_two_devices", &[]);
    run("ipc_events", &[]);
}

#[test]
fn handles_that_cuda_refuses_are_refused() {
    run("ipc_other_memory", &[]);
    run("ipc_what_cannot_be_opened", &[]);
    run("ipc_free_before_close", &[]);
}

#[test]
fn streams_wait_for_values_and_call_the_host() {
    run("values", &[]);
    run("host_function", &[]);
}

#[test]
fn captures_forbid_what_they_do_not_see() {
    run("unsafe_calls", &[]);
    run("captures", &[]);
}

#[test]
fn events_have_the_times_of_their_streams() {
    run("times", &[]);
}

#[test]
fn processes_have_a_device_in_slices_or_alone() {
    let slices = ("ROUNDELAY_FAKE_SLICE", "1000");
    run("slices_of_one_device", &[slices]);
    run("a_holder_that_dies", &[slices]);
    let endless = [slices, ("ROUNDELAY_FAKE_ATTRIBUTES", "90=0")];
    run("slices_of_two_devices", &endless);
    run("waits_take_no_slice", &endless);
    run("starvation", &endless);
    run("exclusive", &[("ROUNDELAY_FAKE_ATTRIBUTES", "20=3")]);
}

#[test]
fn a_device_refuses_what_it_does_not_have() {
    let lacks = [("ROUNDELAY_FAKE_ATTRIBUTES", "103=0,125=0"), ("ROUNDELAY_FAKE_LINK", "pcie")];
    run("without_handles", &[lacks[0], lacks[1], ("ROUNDELAY_FAKE_VISIBLE", "1,0")]);
}

/// Plans of two processes run on one device, of which each has a slice in turn.
#[test]
fn kernels_of_two_processes_share_a_device() {
    let machine = tempfile::tempdir().expect("a folder");
    let test = "driver::below::one_device::other_buffers_and_streams_are_bound_anew";
    let both = [0; 2].map(|_| {
        let mut command = test_below(test, 1);
        command.env("ROUNDELAY_FAKE_SLICE", "1000").env("ROUNDELAY_FAKE_MACHINE", machine.path());
        command.spawn().expect("it starts")
    });
    both.into_iter().for_each(passes);
}
