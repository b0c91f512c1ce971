//! Jobs that are a few runs of other programs.

use crate::command::{cargo, has_target, library, program, root, run, there};
use crate::install::debian;
use crate::nvrtc;
use crate::switches::JobOptions;

/// Calls of cargo; the words before a job are variables.
type Calls = &'static [&'static str];

/// The mutation suites of the proof; an error if the proof and the oracles disagree on any mutant.
pub(crate) const MUTANTS: Calls = &["ROUNDELAY_WHOLE=1 ROUNDELAY_CASES=100000 \
    test --release --package roundelay-core-tests -- --include-ignored --nocapture \
    parametric::mutants parametric::doubling proof::suite::full_suite symmetry::"];

/// Every algorithm in two-sided form at every rank count; and every kernel, compiled for every architecture and run on
/// CPU threads at every rank count and element type.
pub(crate) fn sweeps() -> Result<(), String> {
    nvrtc::install(&root())?;
    calls(&[
        "ROUNDELAY_WHOLE=1 ROUNDELAY_CASES=50000 \
         test --release --package roundelay-core-tests -- --nocapture messages::",
        "ROUNDELAY_WHOLE=1 test --workspace --exclude xtask --test all -- cuda::",
    ])
}

/// A failure of every rank at every place of a call, for three algorithms, two levels and three rank counts: some seven
/// thousand in 20 minutes on two cores; and 10,000 calls with ranks that are late anywhere. With `ROUNDELAY_PART=2/5`
/// the third fifth of the failures.
pub(crate) const FAILURES: Calls = &["ROUNDELAY_WHOLE=1 \
    test --workspace --exclude xtask --test all -- --nocapture processes::failures processes::delays"];

/// The model's constants of this machine, beside the library's, as the command measures them.
pub(crate) const CALIBRATE: Calls = &["run --quiet --release --package roundelay-cli -- calibrate"];
/// The same, kept with the library.
pub(crate) const CALIBRATE_WRITE: Calls = &["run --quiet --release --package roundelay-cli -- \
    calibrate --write core/simulate/src/cost/host.costs"];

/// The PTX of every kernel of the library, executed by the interpreter, beside the host engine. The profile of tests
/// optimizes the interpreter.
const PTX: &str = "run --profile test --package roundelay-tests --bin gpu-check -- ";

/// Runs all calls, whether one fails or not.
pub(crate) fn calls(calls: &[impl AsRef<str>]) -> Result<(), String> {
    let call = |call: &str| {
        let (variables, words): (Vec<&str>, Vec<&str>) =
            call.split_whitespace().partition(|word| word.starts_with("ROUNDELAY_"));
        run(cargo(&words).envs(variables.into_iter().filter_map(|word| word.split_once('='))))
    };
    let ended: Vec<_> = calls.iter().map(|words| call(words.as_ref())).collect();
    ended.into_iter().collect()
}

/// Runs `gpu-check ptx` for the most common architecture and the oldest one, or for that of `--arch`; or with `--mutants`
/// `gpu-check ptx-mutants`, kernels with mistakes in the device headers, each of which must be found. The other options
/// are those of `gpu-check`.
pub(crate) fn ptx(options: &[&str]) -> Result<(), String> {
    nvrtc::install(&root())?;
    let (mutants, rest): (Vec<&str>, Vec<&str>) =
        options.iter().partition(|option| **option == "--mutants");
    let engines: &[&str] = match (mutants.is_empty(), rest.contains(&"--arch")) {
        (false, _) => &["ptx-mutants "],
        (true, true) => &["ptx "],
        (true, false) => &["ptx --arch sm_90 ", "ptx --arch sm_80 "],
    };
    let rest = rest.join(" ");
    calls(&engines.iter().map(|engine| format!("{PTX}{engine}{rest}")).collect::<Vec<_>>())
}

/// The system whose instructions qemu-user runs.
const AARCH64: &str = "aarch64-unknown-linux-gnu";
/// Debian's packages: the emulator, and the linker and the C library for the programs that it runs.
const EMULATOR: [&str; 3] = ["qemu-user", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"];
/// The seconds that the tests may take: qemu-user runs them many times slower than the processor.
const LONGEST: &str = "1500";
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

/// Runs tests of the engines in the instructions of aarch64. They show that the engines compile there, that sizes and
/// alignments are right, and that the system calls have the fallbacks that they need. They do not show that processor's
/// weaker order of memory, because qemu-user on x86-64 runs threads in the order of x86-64. The models of loom are the
/// witness of orders.
pub(crate) fn aarch64() -> Result<(), String> {
    let programs = ["qemu-aarch64", "aarch64-linux-gnu-gcc"];
    if !programs.iter().all(|program| there(program)) && !debian(&EMULATOR)? {
        return Err(format!("install Debian's packages {}", EMULATOR.join(", ")));
    }
    if !has_target(&root(), AARCH64)? {
        return Err(format!("Rust's libraries for {AARCH64} cannot be had here"));
    }
    let tests = |args: &[&str]| {
        let mut tests = program("timeout", &[LONGEST, env!("CARGO")]);
        tests.args(["test", "--target", AARCH64, "--package", "roundelay-kernels", "--lib"]);
        tests.args(args).current_dir(root()).envs([
            // Proofs take long below the emulator.
            ("CARGO_PROFILE_DEV_OPT_LEVEL", "1"),
            ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", programs[1]),
            ("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", programs[0]),
            ("QEMU_LD_PREFIX", "/usr/aarch64-linux-gnu"),
        ]);
        run(&mut tests)
    };
    // Built first, so that the time is that of the tests.
    tests(&["--no-run"])?;
    let mut args = vec!["--"];
    for (name, why) in LEFT_OUT {
        println!("left out: tests of `{name}`: {why}");
        args.extend(["--skip", name]);
    }
    tests(&args)
}

/// The version of all packages.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Installs the C libraries with their headers and pkg-config files, as a distribution does. The package of each has a
/// library of another name, which is the name of its header and of the package that pkg-config knows. NCCL's plugin has
/// neither: NCCL loads it by its name.
pub(crate) fn capi(args: &[&str]) -> Result<(), String> {
    const USAGE: &str = "usage: cargo xtask capi --prefix DIR\n  --prefix DIR  where it goes";
    let prefix = JobOptions::read(USAGE, args)?.path("--prefix").ok_or(USAGE)?;
    for (package, name) in
        [("roundelay-capi", "roundelay"), ("roundelay-command", "roundelay_command")]
    {
        let made = library(package, "release")?;
        let mut install = program("sh", &["-e"]);
        install.arg(root().join("xtask/capi.sh")).arg(&prefix).args([name, VERSION]).arg(made);
        run(install.arg(root().join("capi")))?;
    }
    let plugin = prefix.join("lib/libnccl-tuner-roundelay.so");
    let made = library("roundelay-nccl-tuner", "release")?;
    // A program that runs keeps the old one.
    run(program("install", &["-m", "755"]).arg(made).arg(&plugin))?;
    println!("installed {}", plugin.display());
    Ok(())
}
