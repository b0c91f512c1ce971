//! `cargo xtask test`: every check of the project, in the order in which they fail fastest. All is built with one
//! profile and for one selection of packages, whose features are then equal, so that a crate is compiled once for the
//! lints and once to run. This crate is left out of the selection: its generators need other features.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::{has_target, root, run};
use crate::test_times::TestTimes;

/// The tests' profile, for all crates that are built beside them.
const PROFILE: [&str; 2] = ["--profile", "test"];

/// The packages that are built and tested together.
const ALL: [&str; 3] = ["--workspace", "--exclude", "xtask"];

/// The number of tests whose times are printed.
const SLOWEST: usize = 20;

/// The file with the times of the steps and of all tests.
const TIMES: &str = "target/test-times";

/// The checks of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Those that guard every change.
    Usual,
    /// All of them.
    All,
}

/// A run of the steps: its checks, and the times of its tests.
struct TestRun {
    root: PathBuf,
    extent: Extent,
    times: TestTimes,
}

type TestStep = (&'static str, fn(&mut TestRun) -> Result<(), String>);

const STEPS: [TestStep; 19] = [
    ("format", |run| cargo(&run.root, &["fmt", "--all", "--check"])),
    ("generated parser", |_| crate::parser::check()),
    ("CUDA's compiler", |run| crate::nvrtc::install(&run.root)),
    ("two MPIs", |run| crate::mpi::install(&run.root)),
    ("lints", |TestRun { root, .. }| {
        let strict = ["--all-targets", "--", "-D", "warnings"];
        cargo(root, &[&["clippy", "--package", "xtask"], &strict[..]].concat())?;
        cargo(root, &[&["clippy"], &ALL[..], &PROFILE, &strict].concat())
    }),
    // Not among all, whose features differ: it is built for the steps that run it, but for itself.
    ("the tasks themselves", |run| run.tests(&["--package", "xtask"])),
    ("other systems", elsewhere),
    ("documentation", documentation),
    // An optimized build of its own would take longer than it saves.
    ("the compiler's parts", |run| {
        let parts = ["--package", "roundelay-core", "--package", "roundelay-export", "--lib"];
        run.tests(&[&["--profile", "dev"], &parts[..]].concat())
    }),
    ("the compiler", |run| {
        run.tests(&[&ALL[..], &["--test", "core", "--test", "export"]].concat())
    }),
    ("engines, library and command", |run| {
        let others = ["--exclude", "roundelay-core", "--exclude", "roundelay-export"];
        run.tests(&[&ALL[..], &others].concat())
    }),
    ("Python", |run| crate::python::check(&run.root)),
    ("examples", examples),
    ("signal and park protocol", loom),
    ("sources in canonical form", canonical),
    ("packages", |run| crate::packages::check(&run.root)),
    ("book", |run| crate::book::check(&run.root)),
    ("the parts of the extension for an editor", |run| crate::editors::part(&run.root)),
    ("a program of the book in a browser", |run| crate::playground::part(&run.root)),
];

/// Runs the steps from the one with number `first` on; the first that fails ends the run and is named.
pub(crate) fn from(first: usize, extent: Extent) -> Result<(), String> {
    let mut run = TestRun { root: root(), extent, times: TestTimes::default() };
    let begun = Instant::now();
    let mut times = Vec::new();
    for (done, (name, step)) in STEPS.into_iter().enumerate().skip(first.saturating_sub(1)) {
        let so_far = clock(begun.elapsed());
        println!("== {} of {}, after {so_far}: {name}", done + 1, STEPS.len());
        let start = Instant::now();
        step(&mut run).map_err(|why| format!("{name}: {why}"))?;
        times.push((name, start.elapsed()));
    }
    println!("== all checks passed in {}", clock(begun.elapsed()));
    let row = |(name, time): (_, Duration)| format!("{:>8.1} s  {name}\n", time.as_secs_f64());
    let table: String = times.into_iter().map(row).collect();
    print!("{table}the {SLOWEST} slowest tests:\n{}", run.times.slowest(SLOWEST));
    if first > 1 {
        return Ok(());
    }
    let kept = run.root.join(TIMES);
    let table = format!("{table}\n{}", run.times.slowest(usize::MAX));
    std::fs::write(&kept, table).map_err(|why| format!("{}: {why}", kept.display()))
}

impl TestRun {
    /// Runs `cargo test` with these arguments.
    fn tests(&mut self, args: &[&str]) -> Result<(), String> {
        self.times.run(Command::new(env!("CARGO")).current_dir(&self.root).arg("test").args(args))
    }
}

/// Minutes and seconds.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

fn cargo(root: &Path, args: &[&str]) -> Result<(), String> {
    run(Command::new(env!("CARGO")).current_dir(root).args(args))
}

/// Builds the public documentation, and checks that the test of the crate `roundelay` alone uses every item that it
/// shows.
fn documentation(TestRun { root, extent, .. }: &mut TestRun) -> Result<(), String> {
    let of_users = ["--package", "roundelay", "--package", "roundelay-core"];
    let packages = if *extent == Extent::All { &ALL[..] } else { &of_users };
    run(Command::new(env!("CARGO"))
        .current_dir(&*root)
        .env("RUSTDOCFLAGS", "-D warnings")
        .args(["doc", "--no-deps"])
        .args(packages)
        .args(PROFILE))?;
    used_alone(root)
}

/// Checks that every item that the documentation of the crate `roundelay` lists, but for the library's algorithms, is
/// used by the program that depends on that crate alone.
fn used_alone(root: &Path) -> Result<(), String> {
    let list = root.join("target/doc/roundelay/all.html");
    let list =
        std::fs::read_to_string(&list).map_err(|why| format!("{}: {why}", list.display()))?;
    let mut program = String::new();
    for path in files(root, "tests/alone", "rs")? {
        program +=
            &std::fs::read_to_string(&path).map_err(|why| format!("{}: {why}", path.display()))?;
    }
    let word = |c: char| !(c.is_alphanumeric() || c == '_');
    let used: Vec<&str> = program.split(word).collect();
    // `<a href="select/struct.Row.html">`: the module, the kind, the name.
    let paths = list.split("href=\"").skip(1).filter_map(|rest| rest.split_once(".html\""));
    let items = paths.filter_map(|(path, _)| Some((path, path.split_once('.')?.1)));
    let mut seen = 0;
    for (path, name) in
        items.filter(|(path, name)| !path.contains("library/") && !name.contains('.'))
    {
        seen += 1;
        if !used.contains(&name) {
            return Err(format!("tests/alone does not use `{name}`, which is public: {path}"));
        }
    }
    if seen < 30 { Err(format!("the documentation lists {seen} items alone")) } else { Ok(()) }
}

/// Checks the crates for other systems, without running them: one without ranks as processes, whose refusals are among
/// the engine's own tests. A run of all checks has the lints too, and a system with other instructions and weaker memory,
/// whose orders are checked under loom.
fn elsewhere(TestRun { root, extent, .. }: &mut TestRun) -> Result<(), String> {
    match extent {
        Extent::Usual => built_for(root, WINDOWS, "check"),
        Extent::All => [WINDOWS, "aarch64-unknown-linux-gnu"]
            .into_iter()
            .try_for_each(|system| built_for(root, system, "clippy")),
    }
}

/// A system without ranks as processes.
const WINDOWS: &str = "x86_64-pc-windows-gnu";

/// Checks the parts that a program uses, and a program that uses all of them, for a system.
fn built_for(root: &Path, system: &str, check: &str) -> Result<(), String> {
    if !has_target(root, system)? {
        println!("left out, as Rust's libraries for {system} cannot be had here");
        return Ok(());
    }
    let left_out = ["--exclude", "roundelay-tests", "--exclude", "roundelay-instructions"];
    let targets = ["--lib", "--bins", "--examples", "--test", "alone"];
    let parts = [&[check, "--target", system], &ALL[..], &left_out, &PROFILE, &targets].concat();
    let strict: &[&str] = if check == "clippy" { &["--", "-D", "warnings"] } else { &[] };
    cargo(root, &[&parts[..], strict].concat())
}

/// Runs the engine's protocols under loom: every interleaving of a few threads, on modelled atomics. Only the engine's
/// own tests are built with loom; the crates below it are the same as in all tests.
fn loom(TestRun { root, .. }: &mut TestRun) -> Result<(), String> {
    let mut build = Command::new(env!("CARGO"));
    build.current_dir(&*root).args(["rustc", "--package", "roundelay-kernels", "--lib"]);
    build.args(PROFILE).args(["--message-format", "json-render-diagnostics"]);
    build.args(["--features", "cuda", "--", "--cfg", "loom"]);
    let built = build.stderr(Stdio::inherit()).output();
    let built = built.map_err(|error| format!("{build:?} did not start: {error}"))?;
    if !built.status.success() {
        return Err(format!("{build:?} ended with {}", built.status));
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    let mut programs = messages.lines().filter_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(message.get("executable")?.as_str()?.to_owned())
    });
    let program = programs.next_back().ok_or("cargo does not say what it has built")?;
    run(Command::new(program).current_dir(root.join("kernels")).arg("loom"))
}

/// Runs the programs among the examples, each of which ends in a check of its own; the tests check the `.coll` files.
/// Every engine is included: the one for GPUs itself reports a missing part.
fn examples(TestRun { root, .. }: &mut TestRun) -> Result<(), String> {
    cargo(root, &[&["build", "--examples", "--bins"], &ALL[..], &PROFILE].concat())?;
    for path in files(root, "examples", "rs")? {
        let name = path.file_stem().unwrap_or_default();
        let program = built(root, "examples").join(name);
        let mut command = Command::new(&program);
        // Its ranks are processes, which the command starts.
        if name == "processes" {
            command = Command::new(built(root, "roundelay"));
            command.args(["launch", "-n", "4", "--"]).arg(&program);
        }
        if name == "crossed_groups" {
            is_told(root, &program)?;
            continue;
        }
        run(command.current_dir(&*root))?;
    }
    Ok(())
}

/// Checks that the ranks of an example with a mistake get an error that names both groups.
fn is_told(root: &Path, program: &Path) -> Result<(), String> {
    let mut launch = Command::new(built(root, "roundelay"));
    launch.current_dir(root).args(["launch", "-n", "2", "--grace", "5s", "--"]).arg(program);
    let out = launch.output().map_err(|error| format!("{launch:?} did not start: {error}"))?;
    let told = String::from_utf8_lossy(&out.stderr).into_owned();
    if out.status.success() || !told.contains("crossed") || !told.contains("E0405") {
        return Err(format!("{launch:?} does not name the crossed groups:\n{told}"));
    }
    Ok(())
}

/// Returns the path of a built program or folder.
fn built(root: &Path, folder: &str) -> PathBuf {
    root.join("target/debug").join(folder)
}

/// Returns the files of a folder with that extension, in order.
fn files(root: &Path, folder: &str, extension: &str) -> Result<Vec<PathBuf>, String> {
    let entries = std::fs::read_dir(root.join(folder)).map_err(|e| format!("{folder}: {e}"))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    files.sort();
    Ok(files)
}

fn canonical(TestRun { root, .. }: &mut TestRun) -> Result<(), String> {
    let mut sources = files(root, "stdlib/library", "coll")?;
    sources.extend(files(root, "examples", "coll")?);
    sources.extend(files(root, "examples/museum", "coll")?);
    // The examples' step has built it.
    let mut command = Command::new(built(root, "").join("roundelay"));
    run(command.current_dir(&*root).args(["fmt", "--check"]).args(sources))
}
