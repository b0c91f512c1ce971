//! The C++ program beside a kernel, compiled by the machine's compiler and run on our driver.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use roundelay_tests::root;
use tempfile::TempDir;

use super::build;
use crate::command::call::binary;

/// Runs a command, which succeeds.
fn run(command: &mut Command) -> Output {
    let ran = command.output().expect("it starts");
    let errors = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{command:?}: {}\n{errors}", ran.status);
    ran
}

/// Writes the files that `emit cuda` writes for the arguments, and builds the program.
fn built(folder: &Path, algorithm: &str, arguments: &[&str]) -> PathBuf {
    let mut emit = binary();
    emit.args(["emit", "cuda", algorithm, "--headers"]).arg(folder).args(arguments);
    run(&mut emit);
    let target = root().join("target");
    let program = folder.join(algorithm);
    run(Command::new("g++")
        .args(["-std=c++17", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(folder.join(format!("{algorithm}_host.cpp")))
        .arg("-I")
        .arg(folder)
        .arg("-I")
        .arg(target.join("nvrtc/nvidia/cu13/include"))
        .arg("-L")
        .arg(target.join("driver/lib"))
        .arg("-L")
        .arg(target.join("nvrtc/nvidia/cu13/lib"))
        .args(["-l:libnvrtc.so", "-l:libcuda.so.1"]));
    program
}

/// Runs a program on our driver with three devices, of which the last reaches no other.
fn on_devices(program: &Path, devices: u32, link: &str) -> (bool, String) {
    let mut command = Command::new(program);
    command.arg(devices.to_string()).arg(program.parent().expect("a folder"));
    command.env("CUDA_HOME", root().join("target/nvrtc/nvidia/cu13"));
    command.env("ROUNDELAY_FAKE_DEVICES", "3").env("ROUNDELAY_FAKE_LINK", link);
    let ran = build::below(&mut command).output().expect("it starts");
    let said = [ran.stdout, ran.stderr].concat();
    (ran.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// Builds the program beside a kernel, and runs it on two devices, where it is right; returns its folder too.
fn right(algorithm: &str, arguments: &[&str]) -> (TempDir, PathBuf) {
    // The driver is made before the programs link to it.
    build::below(&mut Command::new("true"));
    let folder = tempfile::tempdir().expect("a folder");
    let program = built(folder.path(), algorithm, arguments);
    let (right, said) = on_devices(&program, 2, "nvlink");
    assert!(right && said.contains("0 wrong"), "{algorithm}: {said}");
    (folder, program)
}

#[test]
fn a_program_beside_a_kernel_finds_wrong_data() {
    let (folder, program) = right("RingAllReduce", &["--nranks", "4", "--count", "1000"]);
    let kernel = folder.path().join("RingAllReduce.cu");
    let text = std::fs::read_to_string(&kernel).expect("the kernel");
    let wrong = text.replacen("lane.reduce(", "lane.copy(", 1);
    assert_ne!(wrong, text);
    std::fs::write(&kernel, wrong).expect("a writable file");
    let (right, said) = on_devices(&program, 1, "nvlink");
    assert!(!right && said.contains("wrong: rank 0, element "), "{said}");
    let (right, said) = on_devices(&program, 3, "nvlink");
    assert!(!right && said.contains("device 0 to 2: no access"), "{said}");
}

#[test]
fn a_program_beside_a_kernel_of_packets_runs() {
    let few = ["-n", "3", "--count", "77", "--dtype", "bf16", "--protocol", "ll"];
    right("PushedOneShotAllReduce", &few);
}

#[test]
fn a_program_beside_a_kernel_of_wide_lines_refuses_pcie() {
    let arguments = ["-n", "3", "--count", "777", "--protocol", "ll128"];
    let (_folder, program) = right("NcclRingAllReduce", &arguments);
    let (right, said) = on_devices(&program, 2, "pcie");
    assert!(!right && said.contains("device 0 reaches device 1 by PCIe"), "{said}");
}

#[test]
fn a_program_beside_a_kernel_of_a_table_runs() {
    let average = ["-n", "4", "--count", "33", "--op", "avg", "--dtype", "f16", "--form", "table"];
    right("MeshReduceScatter", &average);
}
