//! Files of the tests: the library, the wheel, and what is compiled.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// Returns the library, which was built with this test: beside it.
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let beside = test.with_file_name("libroundelay_nccl.so");
    assert!(beside.exists(), "{} is not there", beside.display());
    beside
}

/// Returns a file of the tests.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// Returns the folder of the real NCCL.
pub(crate) fn wheel() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/nccl/nvidia/nccl");
    assert!(folder.is_dir(), "no NCCL: `cargo xtask nccl` installs it below target/nccl");
    folder.canonicalize().expect("it is there")
}

/// Returns the real NCCL.
pub(crate) fn real() -> PathBuf {
    wheel().join("lib/libnccl.so.2")
}

pub(crate) fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder for the tests")
}

/// Compiles a file of C with these flags.
pub(crate) fn compile(source: &Path, to: &Path, flags: &[&str]) {
    let mut cc = Command::new("cc");
    cc.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-g", "-D_GNU_SOURCE"])
        .arg(source)
        .arg("-o")
        .arg(to);
    let output = cc.args(flags).output().expect("a C compiler, which Rust links by");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Compiles a library with NCCL's name into a folder.
pub(crate) fn compile_library(source: &Path, folder: &Path, flags: &[&str]) -> PathBuf {
    std::fs::create_dir_all(folder).expect("a folder for the tests");
    let to = folder.join("libnccl.so.2");
    let shared = ["-shared", "-fPIC", "-Wl,-soname,libnccl.so.2", "-lpthread", "-ldl"];
    compile(source, &to, &[&shared[..], flags].concat());
    to
}

/// Compiles a program of the tests into a folder.
pub(crate) fn program(name: &str, folder: &Path) -> PathBuf {
    let to = folder.join(name);
    compile(&source("programs").join(name).with_extension("c"), &to, &["-ldl", "-lpthread"]);
    to
}

/// What a program said.
pub(crate) struct Said {
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs a program with these variables, which ends well. Variables of the tests' own caller do not reach it.
pub(crate) fn run<V: AsRef<OsStr>>(
    program: &Path,
    args: &[&OsStr],
    variables: &[(&str, V)],
) -> Said {
    let mut command = Command::new(program);
    for name in ["LD_PRELOAD", "LD_AUDIT", "ROUNDELAY_NCCL", "ROUNDELAY_REPORT", "NCCL_DEBUG"] {
        command.env_remove(name);
    }
    command.args(args).stdin(Stdio::null());
    command.envs(variables.iter().map(|(name, value)| (name, value.as_ref())));
    let output = command.output().expect("it starts");
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = Said { out: said(&output.stdout), err: said(&output.stderr) };
    assert!(
        output.status.success(),
        "{:?}: {}\n{}\n{}",
        command,
        output.status,
        said.out,
        said.err
    );
    said
}

/// Returns the functions that a library exports.
pub(crate) fn exported(library: &Path) -> Vec<String> {
    let mut nm = Command::new("nm");
    let output = nm.args(["-D", "--defined-only"]).arg(library).output().expect("nm, of binutils");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter_map(|line| Some(line.split(' ').nth(2)?.to_owned())).collect()
}
