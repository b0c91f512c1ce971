//! Starts the ranks of a test, and reads their reports.

use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use roundelay::UniqueId;

/// Set in the processes of ranks: the case that the test runs there.
const CASE: &str = "ROUNDELAY_CASE";

/// The prefix of each line that a rank reports, which tells it from lines of the test.
const MARK: &str = "@ ";

/// The end of a rank.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) pid: u32,
    pub(super) status: ExitStatus,
    /// The lines that the rank reported.
    pub(super) said: Vec<String>,
    /// All output of the rank, for messages of tests.
    pub(super) all: String,
}

/// Returns the case of the test, if this is the process of a rank.
pub(super) fn case() -> Option<String> {
    std::env::var(CASE).ok()
}

/// Says something to the test.
pub(super) fn say(line: &str) {
    println!("{MARK}{}", line.replace('\n', " "));
}

/// Runs `test` in a process for each of `nranks` ranks. `meanwhile` is told the numbers of the processes, and how many of
/// them have ended.
pub(super) fn run(
    test: &str,
    nranks: u32,
    case: &str,
    meanwhile: impl FnOnce(&[u32], &AtomicUsize),
) -> Vec<Told> {
    run_under(&[], test, nranks, case, meanwhile)
}

/// Runs ranks, with `under` as the program and its arguments that start each of them in its own place.
pub(super) fn run_under(
    under: &[&str],
    test: &str,
    nranks: u32,
    case: &str,
    meanwhile: impl FnOnce(&[u32], &AtomicUsize),
) -> Vec<Told> {
    let id = UniqueId::new().expect("random bytes").to_hex();
    let start = |_: u32| {
        let mut command = of_test(under, test, case);
        command.env("ROUNDELAY_ID", &id);
        command
    };
    run_by(start, nranks, meanwhile)
}

/// Runs the ranks of a command, which `start` makes for each of them.
pub(super) fn run_by(
    start: impl Fn(u32) -> Command,
    nranks: u32,
    meanwhile: impl FnOnce(&[u32], &AtomicUsize),
) -> Vec<Told> {
    let start = |rank: u32| {
        let mut command = start(rank);
        command.env("ROUNDELAY_RANK", rank.to_string());
        command.env("ROUNDELAY_NRANKS", nranks.to_string());
        command.env_remove("ROUNDELAY_ENDINGS");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let children: Vec<Child> = (0..nranks).map(start).collect();
    let pids: Vec<u32> = children.iter().map(Child::id).collect();
    let ended = &AtomicUsize::new(0);
    thread::scope(|threads| {
        let waiting: Vec<_> =
            children.into_iter().map(|child| threads.spawn(|| hear(child, ended))).collect();
        meanwhile(&pids, ended);
        waiting.into_iter().map(|told| told.join().expect("a rank is heard")).collect()
    })
}

/// The command that runs a case of `test`, as the last of the arguments of `under`.
pub(super) fn of_test(under: &[&str], test: &str, case: &str) -> Command {
    let this = std::env::current_exe().expect("this binary");
    let mut command = match under {
        [] => Command::new(this),
        [program, arguments @ ..] => {
            let mut command = Command::new(program);
            command.args(arguments).arg(this);
            command
        }
    };
    command.args(["--exact", &format!("processes::{test}"), "--nocapture", "--test-threads=1"]);
    // The output of a panic comes before the panic, and would take most of the measured time.
    command.env("RUST_BACKTRACE", "0").env(CASE, case);
    command
}

/// Returns the lines that a rank reported among all its output.
pub(super) fn said(text: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.split_once(MARK));
    lines.map(|(_, line)| line.to_owned()).collect()
}

fn hear(mut child: Child, ended: &AtomicUsize) -> Told {
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let pid = child.id();
    // Reaped as soon as it ends, so that the system can tell how it ended.
    let reaper = thread::spawn(move || child.wait().expect("it ends"));
    let errors = thread::spawn(move || {
        let mut text = String::new();
        _ = err.as_mut().map(|err| err.read_to_string(&mut text));
        text
    });
    let mut text = String::new();
    _ = out.as_mut().map(|out| out.read_to_string(&mut text));
    let said = said(&text);
    let all = text.clone() + &errors.join().expect("it is read");
    let status = reaper.join().expect("it is reaped");
    ended.fetch_add(1, Ordering::Relaxed);
    Told { pid, status, said, all }
}

/// The end of a rank's process: the test's own harness says nothing any more.
pub(super) fn end() -> ! {
    std::process::exit(0)
}

/// How long ranks of these tests wait for each other: long enough for a machine with other work.
pub(super) const DEADLINE: Duration = Duration::from_secs(60);
