//! Executors as a program of this machine: compiled with the stub runtime, run on data or dry.

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_export::contest::operator::Profile;
use roundelay_tests::root;

/// As the runtimes that executors are built into are compiled.
const FLAGS: &[&str] = &["-std=c++14", "-Wall", "-Wextra", "-Werror", "-O1", "-pthread"];

const RUNTIME: &[&str] = &["ledger.cpp", "main.cpp", "reduce.cpp", "runtime.cpp"];

/// The file of the runtime with the calls that a program makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// Of the class of the contest.
    Framework,
    /// Of the interface for operators, for a range of products.
    Hcomm(Profile),
}

impl Door {
    fn file(self) -> &'static str {
        match self {
            Self::Framework => "framework.cpp",
            Self::Hcomm(_) => "hcomm.cpp",
        }
    }
}

/// A compiled program with one executor.
#[derive(Clone, Debug)]
pub(crate) struct Executable {
    path: PathBuf,
    executor: String,
    door: Door,
}

/// A call of it.
#[derive(Clone, Debug)]
pub(crate) struct Call<'a> {
    pub(crate) nranks: u32,
    /// Elements a unit of each of the calls in a row, all enqueued before anything runs.
    pub(crate) counts: &'a [u64],
    pub(crate) dtype: DType,
    pub(crate) op: ReduceOp,
    /// Units of the input and of the output.
    pub(crate) units: (u32, u32),
    /// Bytes of a CCL buffer.
    pub(crate) ccl: u64,
    pub(crate) dead: &'a [(u32, u32)],
    /// Runs one task at a time in the order of a seed; `None` runs a thread for each stream.
    pub(crate) seed: Option<u64>,
    pub(crate) in_place: bool,
    /// Lets flags count their posts.
    pub(crate) loose: bool,
    /// When data of pushes arrive: 0 at once, 1 before a later signal to the peer, 2 at the end.
    pub(crate) late: u32,
    /// The mistake that the text makes; 0 makes none.
    pub(crate) mutant: u32,
}

impl Default for Call<'_> {
    fn default() -> Self {
        Self {
            nranks: 8,
            counts: &[],
            dtype: DType::F32,
            op: ReduceOp::Sum,
            units: (1, 1),
            ccl: 1 << 20,
            dead: &[],
            seed: None,
            in_place: false,
            loose: false,
            late: 0,
            mutant: 0,
        }
    }
}

/// The output of a run: the resources that it asked for, and bytes by link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Printed {
    /// Bytes from the first rank to the second.
    pub(crate) links: Vec<(u32, u32, u64)>,
    /// Bytes of scratch, slave streams, notifies and levels of rank 0.
    pub(crate) resources: [u64; 4],
    /// Of an operator, by call: elements a unit that a pass takes, and threads and notifies of threads.
    pub(crate) passes: Vec<[u64; 3]>,
}

fn folder() -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    target.join("contest")
}

fn contest() -> PathBuf {
    root().join("tests/contest/runtime")
}

/// Of everything that a program is compiled from, besides its own text.
static RUNTIME_HASH: LazyLock<u64> = LazyLock::new(|| {
    let mut names: Vec<_> = fs::read_dir(contest())
        .expect("the runtime")
        .map(|e| e.expect("readable").path())
        .collect();
    names.sort();
    let mut hasher = DefaultHasher::new();
    FLAGS.hash(&mut hasher);
    for path in names {
        fs::read(path).expect("readable").hash(&mut hasher);
    }
    hasher.finish()
});

/// What became of a file: nothing, or the compiler's words.
type Made = Result<(), String>;

/// Makes a file, once: two tests may need it, and the second waits for the first.
fn make(path: &Path, arguments: impl FnOnce(&Path) -> Vec<PathBuf>) -> Made {
    static MAKING: LazyLock<Mutex<HashMap<PathBuf, Arc<OnceLock<Made>>>>> =
        LazyLock::new(Mutex::default);
    let mut making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);
    let made = Arc::clone(making.entry(path.to_owned()).or_default());
    drop(making);
    let first = || {
        if path.exists() {
            return Ok(());
        }
        fs::create_dir_all(folder()).expect("a folder for programs");
        // The file has a name of its own until it is whole: other processes may make the same file.
        let own = path.with_extension(format!("{}.tmp", std::process::id()));
        let compiler = std::env::var_os("CXX").unwrap_or_else(|| "g++".into());
        let mut command = Command::new(compiler);
        command.args(FLAGS).arg("-o").arg(&own).args(arguments(&own));
        let done = command.arg("-I").arg(contest()).output().expect("g++ is installed");
        if done.status.success() {
            fs::rename(&own, path).expect("a file of ours");
            Ok(())
        } else {
            Err(String::from_utf8_lossy(&done.stderr).into_owned())
        }
    };
    made.get_or_init(first).clone()
}

impl Executable {
    /// Compiles the text of an executor; the compiler's words if it refuses.
    pub(crate) fn compile(text: &str, executor: &str) -> Result<Self, String> {
        Self::compile_for(Door::Framework, text, executor)
    }

    /// Compiles a text with the calls of `door`.
    pub(crate) fn compile_for(door: Door, text: &str, executor: &str) -> Result<Self, String> {
        let made_of = |text: &str| {
            let mut hasher = DefaultHasher::new();
            (*RUNTIME_HASH, text).hash(&mut hasher);
            format!("{:016x}", hasher.finish())
        };
        let mut objects = Vec::new();
        for name in RUNTIME.iter().copied().chain([door.file()]) {
            let object = folder().join(format!("{name}-{}.o", made_of(name)));
            make(&object, |_| vec!["-c".into(), contest().join(name)])?;
            objects.push(object);
        }
        let path = folder().join(made_of(text));
        make(&path, |own| {
            let source = own.with_extension("cpp");
            fs::write(&source, text).expect("a file of ours");
            [vec![source], objects].concat()
        })?;
        Ok(Self { path, executor: executor.to_owned(), door })
    }

    fn start(&self, call: &Call<'_>) -> Command {
        let mut command = Command::new(&self.path);
        command.env("MUTANT", call.mutant.to_string());
        let mut word = |key: &str, value: String| {
            command.arg(format!("{key}={value}"));
        };
        match self.door {
            Door::Framework => word("executor", self.executor.clone()),
            Door::Hcomm(profile) => word("profile", profile.to_string()),
        }
        word("nranks", call.nranks.to_string());
        let counts: Vec<_> = call.counts.iter().map(ToString::to_string).collect();
        word("counts", counts.join(","));
        word("type", call.dtype.to_string());
        word("op", call.op.to_string());
        word("units", format!("{},{}", call.units.0, call.units.1));
        word("ccl", call.ccl.to_string());
        word("inplace", u32::from(call.in_place).to_string());
        word("traffic", "1".to_owned());
        word("loose", u32::from(call.loose).to_string());
        word("late", call.late.to_string());
        let dead: Vec<_> = call.dead.iter().map(|(a, b)| format!("{a}-{b}")).collect();
        word("dead", dead.join(","));
        if let Some(seed) = call.seed {
            word("seed", seed.to_string());
        }
        command
    }

    /// Returns the outputs of all calls and ranks, for inputs in that order, and the report; or the error.
    pub(crate) fn run(
        &self,
        call: &Call<'_>,
        inputs: &[Vec<u8>],
    ) -> Result<(Vec<Vec<u8>>, Printed), String> {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let nth = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let stem = self.path.with_extension(format!("{}-{nth}", std::process::id()));
        let [input, output] = ["in", "out"].map(|end| {
            let mut name = stem.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        });
        fs::write(&input, inputs.concat()).expect("room for inputs");
        let mut command = self.start(call);
        command
            .arg(format!("input={}", input.display()))
            .arg(format!("output={}", output.display()));
        let done = command.output().expect("it was compiled");
        let bytes = fs::read(&output).unwrap_or_default();
        for file in [&input, &output] {
            let _ = fs::remove_file(file);
        }
        let report = reported(&done)?;
        let mut rest = bytes.as_slice();
        let mut outputs = Vec::new();
        for count in call.counts {
            let each = u64::from(call.units.1) * count * call.dtype.size() as u64;
            for _ in 0..call.nranks {
                let (output, more) = rest.split_at(each as usize);
                outputs.push(output.to_vec());
                rest = more;
            }
        }
        Ok((outputs, report))
    }

    /// Returns the report of a call in which memory is only addresses; an error where a byte of an output would be
    /// wrong.
    pub(crate) fn dry(&self, call: &Call<'_>) -> Result<Printed, String> {
        let done = self.start(call).arg("dry=1").output().expect("it was compiled");
        reported(&done)
    }
}

fn reported(done: &std::process::Output) -> Result<Printed, String> {
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).into_owned());
    }
    let mut report = Printed::default();
    for line in String::from_utf8_lossy(&done.stdout).lines() {
        let words: Vec<_> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<u64>().expect("a number");
        match words[0] {
            "link" => report.links.push((number(1) as u32, number(2) as u32, number(3))),
            "pass" => report.passes.push([1, 3, 5].map(number)),
            "rank" if words[1] == "0" => report.resources = [3, 5, 7, 9].map(number),
            _ => {}
        }
    }
    Ok(report)
}
