//! `cargo xtask aarch64`: tests of the engines for another processor, in its instructions, by Debian's qemu-user. It
//! shows what compiles, what lies where in memory, and what the system calls of that processor do; it does not show
//! that processor's weaker order of memory, because qemu-user runs threads in the order of the processor that it is on.
//! The models of loom are the witness of orders.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::command::{has_target, root, there, within};
use crate::install::debian;

const SYSTEM: &str = "aarch64-unknown-linux-gnu";

/// Debian's packages: the emulator, and the linker and the C library for what it runs.
const PACKAGES: [&str; 3] = ["qemu-user", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"];

/// The folder of that C library.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

/// The tests: a package, its test program, how long they may take at most, and the names of those to run.
const TESTS: [(&str, &[&str], Duration, &[&str]); 3] = [
    ("roundelay-arithmetic", &["--lib", "--tests"], Duration::from_secs(900), &[]),
    ("roundelay-kernels", &["--lib", "--test", "kernels"], Duration::from_secs(1800), &[]),
    (
        "roundelay-tests",
        &["--test", "all"],
        Duration::from_secs(1800),
        &["processes::kinds", "processes::checks", "processes::failures", "semantics::spmd"],
    ),
];

/// Runs the tests.
///
/// # Errors
/// Where a part of it cannot be installed, and the tests that fail.
pub(crate) fn run() -> Result<(), String> {
    let root = root();
    let programs = ["qemu-aarch64", "aarch64-linux-gnu-gcc"];
    if !programs.iter().all(|program| there(program)) && !debian(&PACKAGES)? {
        return Err(format!("install Debian's packages {}", PACKAGES.join(", ")));
    }
    if !has_target(&root, SYSTEM)? {
        return Err(format!("Rust's libraries for {SYSTEM} cannot be had here"));
    }
    let mut failed = Vec::new();
    for (package, targets, longest, names) in TESTS {
        // Built first, so that the time is that of the tests.
        let mut build = cargo(&root, package, targets);
        crate::command::run(build.arg("--no-run"))?;
        let mut tests = cargo(&root, package, targets);
        tests.arg("--no-fail-fast").arg("--").args(names);
        match within(&mut tests, longest) {
            Ok(printed) => print!("{}", printed.stdout),
            Err(why) => {
                println!("{why}");
                failed.push(package);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("tests of {} failed", failed.join(", "))) }
}

/// Returns cargo for tests of a package, below the emulator.
fn cargo(root: &Path, package: &str, targets: &[&str]) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).args(["test", "--target", SYSTEM, "--package", package]).args(targets);
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc");
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64");
    // Programs that the tests start are of that processor, too.
    cargo.env("ROUNDELAY_RUNNER", "qemu-aarch64").env("QEMU_LD_PREFIX", LIBRARIES);
    cargo
}
