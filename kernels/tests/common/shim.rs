//! Kernel texts compiled by g++ with `kernels/device/host_shim.h`, and run on the threads of this machine.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use std::{env, fs, process};

/// The executable that g++ made of a text.
pub struct Executable {
    exe: PathBuf,
}

/// Where a rank's input and output lie in one allocation, in bytes.
#[derive(Clone, Copy)]
pub struct Shared {
    pub input: usize,
    pub output: usize,
    pub bytes: usize,
}

/// What one rank brings, and how much it gets.
#[derive(Clone)]
pub struct Buffers {
    pub input: Vec<u8>,
    pub output_bytes: usize,
    pub shared: Option<Shared>,
}

/// What is launched; the fields of a `Launch`, and how the shim runs it.
#[derive(Clone)]
pub struct Job {
    pub trace: bool,
    pub parts: usize,
    pub threads: usize,
    /// Bytes of an element.
    pub element: usize,
    pub count: u64,
    pub repeats: usize,
    /// Random delays, for each seed others.
    pub delays: Option<u64>,
    pub poll_limit: Duration,
    /// The rank whose CTAs end at once.
    pub stuck_rank: Option<usize>,
    pub channels: usize,
    pub launches_words: usize,
    pub scratch_bytes: usize,
    pub finish_scale: bool,
    /// Groups, and the facts in which they are described.
    pub groups: usize,
    pub facts: Vec<i64>,
    pub ranks: Vec<Buffers>,
}

/// What a wait looked like when its group recorded it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// 0 nothing, 1 waiting, 2 gave up.
    pub state: u64,
    pub step: u64,
    pub expected: u64,
    pub seen: u64,
    pub part: u64,
}

/// What a job came to.
pub struct Outcome {
    /// The group that gave up first.
    pub gave_up: Option<usize>,
    pub waiting: Vec<Waiting>,
    pub outputs: Vec<Vec<u8>>,
    pub trace: String,
}

impl Default for Job {
    fn default() -> Self {
        Self {
            trace: false,
            parts: 1,
            threads: 4,
            element: 4,
            count: 0,
            repeats: 1,
            delays: None,
            poll_limit: Duration::from_secs(30),
            stuck_rank: None,
            channels: 1,
            launches_words: 0,
            scratch_bytes: 0,
            finish_scale: false,
            groups: 1,
            facts: Vec::new(),
            ranks: Vec::new(),
        }
    }
}

/// The prelude's folder.
fn device() -> PathBuf {
    // Also for a test of another package of the workspace.
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let here = package.join("device");
    if here.is_dir() { here } else { package.join("../kernels/device") }
}

/// A new path for a file of this process.
fn fresh(name: &str) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}-{number}-{name}", process::id()))
}

/// Whether the tests take all cases, as `cargo xtask test --all` does.
pub fn takes_all() -> bool {
    env::var("ROUNDELAY_TESTS").is_ok_and(|which| which == "all")
}

/// g++ on a text of the prelude. Without optimization it takes a third of the time, and the programs run for moments.
fn gxx(flags: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CXX").unwrap_or_else(|| "g++".into()));
    let level = if takes_all() { "-O1" } else { "-O0" };
    command.args(["-std=c++17", level, "-pthread", "-DROUNDELAY_SHIM", "-I"]).arg(device());
    command.args(["-include", "host_shim.h"]).args(flags);
    command
}

fn succeed(mut command: Command) {
    let done = command.output().unwrap_or_else(|e| panic!("{command:?} did not start: {e}"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {}\n{said}", done.status);
}

/// The part of a program that is the same for all texts; compiled once for each set of flags.
fn main_object(sanitize: bool) -> &'static Path {
    static OBJECTS: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
    OBJECTS[usize::from(sanitize)].get_or_init(|| {
        let new = fresh("shim_main.o");
        let mut command = gxx(sanitizer(sanitize));
        command.arg("-c").arg(device().join("shim_main.cpp")).arg("-o").arg(&new);
        succeed(command);
        // One file, however many processes test: whichever comes last leaves the same.
        let object = new.with_file_name(["shim_main.o", "shim_main_tsan.o"][usize::from(sanitize)]);
        fs::rename(&new, &object).expect("both are in one folder");
        object
    })
}

fn sanitizer(on: bool) -> &'static [&'static str] {
    if on { &["-fsanitize=thread", "-g"] } else { &[] }
}

impl Executable {
    /// A text with macros defined (`NAME=value`), under the thread sanitizer or not.
    pub fn new(text: &str, defines: &[&str], sanitize: bool) -> Self {
        let (source, exe) = (fresh("text.cu"), fresh("text"));
        fs::write(&source, text).expect("the target's folder takes files");
        let mut command = gxx(sanitizer(sanitize));
        command.args(defines.iter().map(|define| format!("-D{define}")));
        command.args(["-x", "c++"]).arg(&source).args(["-x", "none"]).arg(main_object(sanitize));
        command.arg("-o").arg(&exe);
        succeed(command);
        fs::remove_file(&source).expect("it was written");
        Self { exe }
    }

    /// Runs a job; why there is no result, in the shim's words.
    pub fn run(&self, job: &Job) -> Result<Outcome, String> {
        let (input, result) = (fresh("job"), fresh("result"));
        fs::write(&input, job.bytes()).expect("the target's folder takes files");
        let done = Command::new(&self.exe).arg(&input).arg(&result).output();
        let done = done.expect("the program starts");
        fs::remove_file(&input).expect("it was written");
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            return Err(format!("{}: {said}", done.status));
        }
        let bytes = fs::read(&result).expect("there is a result");
        fs::remove_file(&result).expect("it was read");
        Ok(Outcome::new(job, &bytes))
    }
}

impl Drop for Executable {
    fn drop(&mut self) {
        // A file that stays behind harms nobody.
        let _ = fs::remove_file(&self.exe);
    }
}

impl Job {
    fn bytes(&self) -> Vec<u8> {
        let nanoseconds = u64::try_from(self.poll_limit.as_nanos()).expect("a limit of centuries");
        let stuck = self.stuck_rank.map_or(-1i64, |rank| rank as i64) as u64;
        let in_place = self.ranks.iter().any(|rank| rank.shared.is_some());
        let words = self.channels * self.parts;
        let sizes = [words, words, self.launches_words, self.scratch_bytes];
        let shape = [self.parts, self.threads, self.element].map(|n| n as u64);
        let numbers = [self.ranks.len(), self.groups, self.repeats].map(|n| n as u64);
        let mut job = vec![0x4a_4f42, u64::from(self.trace)];
        job.extend(shape);
        job.push(self.count);
        job.extend(numbers);
        job.extend([self.delays.map_or(0, |seed| seed + 1), nanoseconds, stuck]);
        job.extend(sizes.map(|n| n as u64));
        job.extend([u64::from(in_place), u64::from(self.finish_scale), self.facts.len() as u64]);
        job.extend(self.facts.iter().map(|&fact| fact as u64));
        for rank in &self.ranks {
            let shared = rank.shared.unwrap_or(Shared { input: 0, output: 0, bytes: 0 });
            let sizes = [rank.input.len(), rank.output_bytes, shared.input, shared.output];
            job.extend(sizes.map(|n| n as u64));
            job.push(shared.bytes as u64);
        }
        let mut bytes: Vec<u8> = job.into_iter().flat_map(u64::to_le_bytes).collect();
        for rank in &self.ranks {
            bytes.extend(&rank.input);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
        }
        bytes
    }
}

impl Outcome {
    fn new(job: &Job, mut bytes: &[u8]) -> Self {
        let mut take = |len: usize| {
            let (now, rest) = bytes.split_at(len.next_multiple_of(8));
            bytes = rest;
            &now[..len]
        };
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("8 bytes"));
        let aborted = word(take(8)) != 0;
        let first = word(take(8));
        take(56);
        let waiting = (0..job.groups).map(|_| {
            let words: Vec<u64> = take(64).chunks(8).map(word).collect();
            let &[state, step, expected, seen, part, ..] = &words[..] else { unreachable!() };
            Waiting { state, step, expected, seen, part }
        });
        let waiting = waiting.collect();
        let outputs = job.ranks.iter().map(|rank| take(rank.output_bytes).to_vec()).collect();
        let length = word(take(8)) as usize;
        let trace = String::from_utf8(take(length).to_vec()).expect("a trace is text");
        let gave_up = aborted.then(|| first as usize - 1);
        Self { gave_up, waiting, outputs, trace }
    }
}
