//! `cargo xtask aarch64`: tests of the engines in the instructions of another processor, by Debian's qemu-user. They show
//! that the engines compile there, that sizes and alignments are right, and that the system calls have the fallbacks
//! that they need. They do not show that processor's weaker order of memory, because qemu-user on x86-64 runs threads in
//! the order of x86-64. The models of loom are the witness of orders.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::command::{has_target, root, run as run_one, there, within};
use crate::install::debian;

const SYSTEM: &str = "aarch64-unknown-linux-gnu";

/// Debian's packages: the emulator, and the linker and the C library for the programs that it runs.
const PACKAGES: [&str; 3] = ["qemu-user", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"];

/// The folder of that C library.
const LIBRARIES: &str = "/usr/aarch64-linux-gnu";

/// The time that the tests may take: qemu-user runs them many times slower than the processor.
const LONGEST: Duration = Duration::from_secs(1500);

/// The tests that are left out, by a part of their names, and the reasons.
const LEFT_OUT: [(&str, &str); 3] = [
    (
        "rubbish",
        "they make hundreds of worlds, and qemu-user keeps a record of each page that a world has room for",
    ),
    ("tests::reach", "qemu-user has no process_vm_readv, so ranks stage all inputs"),
    (
        "a_forked_child_is_no_rank",
        "qemu-user ignores MADV_DONTFORK, so a forked child keeps the memory of a world",
    ),
];

/// Runs the tests.
///
/// # Errors
/// Where a part of it cannot be installed; the output of tests that fail, or take too long.
pub(crate) fn run() -> Result<(), String> {
    let root = root();
    let programs = ["qemu-aarch64", "aarch64-linux-gnu-gcc"];
    if !programs.iter().all(|program| there(program)) && !debian(&PACKAGES)? {
        return Err(format!("install Debian's packages {}", PACKAGES.join(", ")));
    }
    if !has_target(&root, SYSTEM)? {
        return Err(format!("Rust's libraries for {SYSTEM} cannot be had here"));
    }
    let tests = ["test", "--target", SYSTEM, "--package", "roundelay-kernels", "--lib"];
    // Built first, so that the time is that of the tests.
    run_one(cargo(&root).args(tests).arg("--no-run"))?;
    let mut command = cargo(&root);
    command.args(tests).arg("--");
    for (name, why) in LEFT_OUT {
        println!("left out: tests of `{name}`: {why}");
        command.args(["--skip", name]);
    }
    let printed = within(&mut command, LONGEST)?;
    print!("{}", printed.stdout);
    Ok(())
}

/// Returns cargo, with programs of that processor below the emulator. The compiler is optimized, because proofs take long
/// below the emulator.
fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc");
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64");
    cargo.env("QEMU_LD_PREFIX", LIBRARIES);
    cargo
}
