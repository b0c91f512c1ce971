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

/// The time that the tests of a package may take: qemu-user runs them about twenty times slower than the processor.
const LONGEST: Duration = Duration::from_secs(1500);

/// Tests of one program of a package.
struct Tests {
    package: &'static str,
    target: &'static [&'static str],
    /// The arguments of the test program.
    which: &'static [&'static str],
    /// The reason for which tests are left out.
    left_out: &'static str,
}

const TESTS: [Tests; 2] = [
    Tests {
        package: "roundelay-kernels",
        target: &["--lib"],
        which: &["--skip", "rubbish"],
        left_out: "`rubbish`, 60 worlds: qemu-user keeps a record of each page of an arena, so a world takes a second",
    },
    Tests {
        package: "roundelay-tests",
        target: &["--test", "all"],
        which: &["processes::kinds", "processes::checks"],
        left_out: "failures and limits of processes: they measure times, and the endings of processes that are qemu's",
    },
];

/// Runs the tests.
///
/// # Errors
/// Where a part of it cannot be installed; the packages whose tests fail.
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
    for Tests { package, target, which, left_out } in TESTS {
        let arguments = [&["test", "--target", SYSTEM, "--package", package], target].concat();
        // Built first, so that the time is that of the tests.
        run_one(cargo(&root).args(&arguments).arg("--no-run"))?;
        println!("left out of {package}: {left_out}");
        match within(cargo(&root).args(&arguments).arg("--").args(which), LONGEST) {
            Ok(printed) => print!("{}", printed.stdout),
            Err(why) => {
                println!("{why}");
                failed.push(package);
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(format!("tests of {} failed", failed.join(", "))) }
}

/// Returns cargo, with programs of that processor below the emulator. The compiler is optimized, because proofs take long
/// below the emulator.
fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(root).env("CARGO_PROFILE_DEV_OPT_LEVEL", "1");
    cargo.args(["--config", "profile.dev.package.roundelay-tests.opt-level=0"]);
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "aarch64-linux-gnu-gcc");
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64");
    // The programs that tests start are of that processor, too.
    cargo.env("ROUNDELAY_RUNNER", "qemu-aarch64").env("QEMU_LD_PREFIX", LIBRARIES);
    cargo
}
