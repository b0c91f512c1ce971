//! `cargo xtask test`: every check of the project, in the order in which they fail fastest. All that runs is built with one
//! profile and for one selection of packages, whose features are then equal, so that a crate is compiled once for the
//! lints and once to run. This crate is left out of the selection: it is the program that runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::{BUILD, cargo, has_target, read, root, run, write};
use crate::green::{GreenSteps, Inputs};
use crate::test_times::{TestTimes, threads};

/// The tests' profile, for all crates that are built beside them.
const PROFILE: [&str; 2] = ["--profile", "test"];

/// The packages that are built and tested together.
const ALL: [&str; 3] = ["--workspace", "--exclude", "xtask"];

/// The sets of tests that are programs of their own.
const PROGRAMS: [&str; 12] = [
    "all",
    "alone",
    "arithmetic",
    "check",
    "core",
    "export",
    "kernels",
    "nccl",
    "preload",
    "programs",
    "ptx",
    "tuner",
];

/// The packages whose libraries cargo would build for tests without a need: they have no tests in their sources, or
/// [`ENGINES`] builds them.
const WITHOUT: [&str; 15] = [
    "roundelay-base",
    "roundelay-topology",
    "roundelay-machines",
    "roundelay-core",
    "roundelay-simulate",
    "roundelay-exchange",
    "roundelay-export",
    "roundelay-pictures",
    "roundelay-synthesis",
    "roundelay-oracles",
    "roundelay-arithmetic",
    "roundelay-kernels",
    "roundelay-kernel-check",
    "roundelay-library",
    "roundelay-book",
];

/// The tests in the sources of the engines. They have the engines built once more, for these tests alone, and wait or
/// compile more than they compute: without optimization they take 15 s of a processor to build in place of 68.
const ENGINES: [&str; 7] = [
    "--package",
    "roundelay-kernels",
    "--lib",
    "--features",
    "cuda,ptx,tcp",
    "--config",
    "profile.test.package.roundelay-kernels.opt-level=0",
];

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

/// A run of the steps: its checks, the programs that it has built, and the times of its tests.
struct TestRun {
    root: PathBuf,
    extent: Extent,
    programs: BTreeMap<String, PathBuf>,
    times: TestTimes,
}

struct TestStep {
    name: &'static str,
    /// The inputs of a step that is left out while they are as they were when it ended well. A step without them always
    /// runs: it is quick, or its tests are of processes, of failures or of interleavings, which one run does not exhaust.
    inputs: Option<Inputs>,
    run: fn(&mut TestRun) -> Result<(), String>,
}

/// A step that every run has.
const fn always(name: &'static str, run: fn(&mut TestRun) -> Result<(), String>) -> TestStep {
    TestStep { name, inputs: None, run }
}

/// A step that runs these built programs, and is left out while its inputs are unchanged.
const fn changed(
    name: &'static str,
    programs: &'static [&'static str],
    reads: fn(&str) -> bool,
    run: fn(&mut TestRun) -> Result<(), String>,
) -> TestStep {
    TestStep { name, inputs: Some(Inputs { programs, reads }), run }
}

/// Whether a file is read by tests other than those of the pages: sources are in the programs, but for the tests' own
/// cases, and for the macros, which rustc calls for them.
fn data(path: &str) -> bool {
    let cases = ["tests/ui/", "tests/wrong/", "examples/", "macros/"];
    let case = cases.iter().any(|at| path.starts_with(at));
    case || !(source(path) || extension(path) == Some("md")) || COSTS.contains(&path)
}

/// Whether a file is a source of Rust.
fn source(path: &str) -> bool {
    extension(path) == Some("rs")
}

fn extension(path: &str) -> Option<&str> {
    Path::new(path).extension()?.to_str()
}

/// The pages that tests of the model of costs compare.
const COSTS: [&str; 2] = ["book/src/reference/costs.md", "book/src/tutorial/costs.md"];

const STEPS: [TestStep; 23] = [
    always("format", |_| run(&mut cargo(&["fmt", "--all", "--check"]))),
    always("generated parser", |_| crate::parser::check()),
    always("CUDA's compiler", |run| crate::nvrtc::install(&run.root)),
    always("two MPIs", |run| crate::mpi::install(&run.root)),
    always("two UCXs", |run| crate::mpi::install_ucx(&run.root)),
    always("NCCL", |run| crate::nccl::install(&run.root)),
    always("lints", |_| {
        let strict = ["--bins", "--tests", "--", "-D", "warnings"];
        run(&mut cargo(&[&["clippy", "--package", "xtask"], &strict[..]].concat()))?;
        // Without optimization: this compiler builds the macros for itself, and no test runs them.
        let others = ["--lib", "--benches", "--examples"];
        run(&mut cargo(&[&["clippy"], &ALL[..], &others, &strict].concat()))
    }),
    always("the tasks themselves", |run| run.tests(&["--package", "xtask"])),
    always("documentation", documentation),
    always("build", TestRun::build),
    changed("the compiler", &["core", "export"], data, |run| run.of(&["core", "export"], &[])),
    changed(
        "programs in comments",
        &[],
        |path| source(path) || data(path) || path == "README.md",
        |run| run.tests(&[&ALL[..], &["--doc"]].concat()),
    ),
    // All tests of engines: what a run shows of threads and processes, one run does not exhaust.
    always("engines", |run| {
        run.of(
            &["alone", "arithmetic", "check", "kernels", "nccl", "programs", "ptx", "tuner"],
            &[],
        )?;
        // Each launch of MPI waits for a second until its daemons have met.
        run.crowded(2, &[&ALL[..], &named(&["preload"])].concat())?;
        run.tests(&in_sources())?;
        run.tests(&ENGINES)
    }),
    always("ranks as processes", |run| {
        run.crowded(2, &[&ALL[..], &named(&["all"]), &["--"], PROCESSES].concat())
    }),
    changed("library", &["all"], data, TestRun::library),
    changed("command", &["all", "roundelay"], data, |run| {
        run.of(&["all"], &[COMMAND, &skipped(PROCESSES)].concat())
    }),
    changed("pages", &["all", "roundelay"], |_| true, |run| run.of(&["all"], PAGES)),
    always("Python", |run| crate::python::check(&run.root)),
    always("examples", examples::run),
    always("signal and park protocol", loom),
    always("sources in canonical form", canonical),
    always("book", |run| crate::book::check(&run.root)),
    changed(
        "the parts of the extension for an editor",
        &["roundelay"],
        |path| path.starts_with("editors/"),
        |run| crate::editors::part(&run.root),
    ),
];

/// The steps that a run of all checks has in addition.
const SELDOM: [TestStep; 4] = [
    always("other systems", elsewhere),
    always("generator of the parser", |_| crate::parser::generate(&["--check"])),
    always("packages", |run| crate::packages::check(&run.root)),
    always("a program of the book in a browser", |run| crate::playground::part(&run.root)),
];

/// The modules of the tests across the crates whose ranks are processes, or call by themselves.
const PROCESSES: &[&str] = &[
    "processes::",
    "hosts::",
    "spmd::",
    "oversubscribed::",
    "semantics::world::",
    "uneven::calls::",
    "command::launch::",
    "command::mpirun::",
    "mpi::runs::",
];

/// Those that compile kernels by NVRTC.
const NVRTC: &[&str] = &["cuda::compile::", "cuda::counts::", "cuda::ptx::", "cuda::sass::"];

/// Those that read the pages of the book, the README, and the sources.
const PAGES: &[&str] = &["book::", "modules::", "twins::", "words::"];

/// Those that call the command.
const COMMAND: &[&str] = &["command::"];

/// Runs the steps from the one with number `first` on; the first that fails ends the run and is named.
pub(crate) fn from(first: usize, extent: Extent) -> Result<(), String> {
    let root = root().canonicalize().map_err(|error| error.to_string())?;
    let green = GreenSteps::new(&root)?;
    let mut run = TestRun { root, extent, programs: BTreeMap::new(), times: TestTimes::default() };
    let seldom = if extent == Extent::All { &SELDOM[..] } else { &[] };
    let steps: Vec<&TestStep> = STEPS.iter().chain(seldom).collect();
    let begun = Instant::now();
    let (mut times, mut failed) = (Vec::new(), None);
    for (done, step) in steps.iter().enumerate().skip(first.saturating_sub(1)) {
        let name = step.name;
        let so_far = clock(begun.elapsed());
        println!("== {} of {}, after {so_far}: {name}", done + 1, steps.len());
        let start = Instant::now();
        let key = step.inputs.map(|inputs| run.key(&green, &inputs)).transpose()?;
        let last = key.as_ref().and_then(|key| green.last(name, key));
        if let (Some(last), Extent::Usual) = (last, extent) {
            println!(
                "left out: it passed {} ago, and nothing that it reads has changed",
                clock(last)
            );
            continue;
        }
        let ended = (step.run)(&mut run);
        times.push((name, start.elapsed()));
        if let Err(why) = ended {
            failed = Some(format!("{name}: {why}"));
            break;
        }
        if let (Some(key), Some(inputs)) = (key, step.inputs)
            // A file that changed while the step ran may have been read before or after.
            && run.key(&green, &inputs)? == key
        {
            green.keep(name, &key)?;
        }
    }
    if failed.is_none() {
        println!("== all checks passed in {}", clock(begun.elapsed()));
    }
    let row = |(name, time): (_, Duration)| format!("{:>8.1} s  {name}\n", time.as_secs_f64());
    let table: String = times.into_iter().map(row).collect();
    print!("{table}the {SLOWEST} slowest tests:\n{}", run.times.slowest(SLOWEST));
    let table = format!("{table}\n{}", run.times.slowest(usize::MAX));
    write(&run.root.join(TIMES), &table)?;
    failed.map_or(Ok(()), Err)
}

impl TestRun {
    /// Runs `cargo test` with these arguments.
    fn tests(&mut self, args: &[&str]) -> Result<(), String> {
        self.crowded(1, args)
    }

    /// Runs `cargo test` with these arguments, and `per_core` tests at once on each core: others go on while some wait.
    fn crowded(&mut self, per_core: usize, args: &[&str]) -> Result<(), String> {
        let mut tests = self.command(args);
        self.times.run(&mut tests, threads(per_core))
    }

    /// Returns `cargo test` with these arguments.
    fn command(&self, args: &[&str]) -> Command {
        let mut tests = cargo(&["test"]);
        if self.extent == Extent::All {
            // The cases that sweeps leave out of a usual run.
            tests.env("ROUNDELAY_TESTS", "all");
        }
        tests.args(args);
        tests
    }

    /// Runs the tests of the library: those that compile by NVRTC one after another, for it compiles one text at a time
    /// in a process, and the others beside them.
    fn library(&mut self) -> Result<(), String> {
        let select =
            |which: &[&str]| self.command(&[&ALL[..], &named(&["all"]), &["--"], which].concat());
        let mut compiling = select(NVRTC);
        let mut others = select(&skipped(&[NVRTC, PROCESSES, PAGES, COMMAND].concat()));
        let (one, all) = std::thread::scope(|scope| {
            let one = scope.spawn(|| {
                let mut times = TestTimes::default();
                (times.run(&mut compiling, 1), times)
            });
            let all = self.times.run(&mut others, threads(1));
            (one.join().expect("a run of tests does not panic"), all)
        });
        self.times.join(one.1);
        one.0.and(all)
    }

    /// Runs those tests of these programs whose names have one of the words of `which`, or no word to skip.
    fn of(&mut self, programs: &[&str], which: &[&str]) -> Result<(), String> {
        self.tests(&[&ALL[..], &named(programs), &["--"], which].concat())
    }

    /// Builds everything that the steps run, for one selection of packages.
    fn build(&mut self) -> Result<(), String> {
        let build = |args: &[&str]| executables(cargo(args).args(MESSAGES));
        for tests in [[&ALL[..], &named(&PROGRAMS)].concat(), in_sources(), ENGINES.to_vec()] {
            self.programs.extend(build(&[&["test", "--no-run"], &tests[..]].concat())?);
        }
        self.programs.extend(build(&BUILD)?);
        Ok(())
    }

    /// Returns the digest of the inputs, of which the programs are built if no step of this run has built them.
    fn key(&mut self, green: &GreenSteps, inputs: &Inputs) -> Result<String, String> {
        if self.programs.is_empty() {
            self.build()?;
        }
        let path = |name: &&str| {
            self.programs.get(*name).cloned().ok_or_else(|| format!("no program {name} was built"))
        };
        let programs: Vec<PathBuf> = inputs.programs.iter().map(path).collect::<Result<_, _>>()?;
        green.key(&programs, inputs.reads)
    }
}

/// The arguments that leave out the tests whose names have one of these words.
fn skipped<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().flat_map(|word| ["--skip", word]).collect()
}

/// The arguments that select these test programs.
fn named<'a>(programs: &[&'a str]) -> Vec<&'a str> {
    programs.iter().flat_map(|name| ["--test", name]).collect()
}

/// The arguments that select the tests in the sources of all packages but [`WITHOUT`].
fn in_sources() -> Vec<&'static str> {
    let without = WITHOUT.iter().flat_map(|name| ["--exclude", name]);
    ALL.into_iter().chain(without).chain(["--lib", "--bins"]).collect()
}

/// The arguments by which cargo says what it builds.
const MESSAGES: [&str; 2] = ["--message-format", "json-render-diagnostics"];

/// Builds by this command of cargo, and returns the programs by their names: sets of tests, and commands.
fn executables(build: &mut Command) -> Result<BTreeMap<String, PathBuf>, String> {
    let built = build.stderr(Stdio::inherit()).output();
    let built = built.map_err(|error| format!("{build:?} did not start: {error}"))?;
    if !built.status.success() {
        return Err(format!("{build:?} ended with {}", built.status));
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    let program = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let path = PathBuf::from(message.get("executable")?.as_str()?);
        let target = message.get("target")?;
        // The tests in a program's own sources have the program's name.
        let tests = message["profile"]["test"].as_bool()? && target["kind"][0] != "test";
        let name = target["name"].as_str()?;
        Some((if tests { format!("{name}'s own tests") } else { name.to_owned() }, path))
    };
    Ok(messages.lines().filter_map(program).collect())
}

/// Minutes and seconds.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{} min {:02} s", seconds / 60, seconds % 60)
}

/// Builds the public documentation, and checks that the test of the crate `roundelay` alone uses every item that it
/// shows.
fn documentation(TestRun { root, extent, .. }: &mut TestRun) -> Result<(), String> {
    // The crates whose items `roundelay::compiler` has.
    let of_users = [
        "roundelay",
        "roundelay-core",
        "roundelay-base",
        "roundelay-topology",
        "roundelay-simulate",
    ];
    let of_users: Vec<&str> = of_users.into_iter().flat_map(|name| ["--package", name]).collect();
    let packages = if *extent == Extent::All { &ALL[..] } else { &of_users[..] };
    let mut doc = cargo(&["doc", "--no-deps"]);
    run(doc.env("RUSTDOCFLAGS", "-D warnings").args(packages).args(PROFILE))?;
    used_alone(root)
}

/// Checks that every item that the documentation of the crate `roundelay` lists, but for the library's algorithms, is
/// used by the program that depends on that crate alone.
fn used_alone(root: &Path) -> Result<(), String> {
    let list = read(&root.join("target/doc/roundelay/all.html"))?;
    let mut program = String::new();
    for path in files(root, "tests/alone", "rs")? {
        program += &read(&path)?;
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
/// the engine's own tests, and one with other instructions and weaker memory, whose orders are checked under loom.
fn elsewhere(TestRun { root, .. }: &mut TestRun) -> Result<(), String> {
    ["x86_64-pc-windows-gnu", "aarch64-unknown-linux-gnu"].into_iter().try_for_each(|system| {
        if !has_target(root, system)? {
            println!("left out, as Rust's libraries for {system} cannot be had here");
            return Ok(());
        }
        // The parts that a program uses, and a program that uses all of them.
        let left_out = ["--exclude", "roundelay-tests", "--exclude", "roundelay-instructions"];
        let targets = ["--lib", "--bins", "--examples", "--test", "alone", "--", "-D", "warnings"];
        let clippy = ["clippy", "--target", system];
        run(&mut cargo(&[&clippy[..], &ALL, &left_out, &targets].concat()))
    })
}

/// Runs the engine's protocols under loom: every interleaving of a few threads, on modelled atomics. Only the engine's
/// own tests are built with loom; the crates below it are the same as in all tests. With less optimization than 1, threads
/// of a model have too small a stack.
fn loom(TestRun { root, .. }: &mut TestRun) -> Result<(), String> {
    let mut build = cargo(&["rustc", "--package", "roundelay-kernels", "--lib"]);
    build.args(PROFILE).args(MESSAGES).args(["--features", "cuda", "--config"]);
    build.args(["profile.test.package.roundelay-kernels.opt-level=1", "--", "--cfg", "loom"]);
    let built = executables(&mut build)?;
    let program = built.into_values().next().ok_or("cargo does not say what it has built")?;
    run(Command::new(program).current_dir(root.join("kernels")).arg("loom"))
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

mod examples;
#[cfg(test)]
mod tests;
