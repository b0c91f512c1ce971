//! Starts the ranks of a test, and hears what they say.

use std::io::Read as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use roundelay::UniqueId;

/// Set in the processes of ranks: what the test is to do there.
const CASE: &str = "ROUNDELAY_CASE";

/// Before each line that a rank says, so that it is not taken for one of the test's.
const MARK: &str = "@ ";

/// What became of a rank.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) pid: u32,
    pub(super) status: ExitStatus,
    /// What it said, a line each.
    pub(super) said: Vec<String>,
    /// All that it wrote, for messages of tests.
    pub(super) all: String,
}

/// What the test is to do, if this is the process of a rank.
pub(super) fn case() -> Option<String> {
    std::env::var(CASE).ok()
}

/// Says something to the test.
pub(super) fn say(line: &str) {
    println!("{MARK}{}", line.replace('\n', " "));
}

/// Runs `test` in a process for each of `nranks` ranks. `meanwhile` is told the numbers of the processes.
pub(super) fn run(
    test: &str,
    nranks: u32,
    case: &str,
    meanwhile: impl FnOnce(&[u32]),
) -> Vec<Told> {
    let id = UniqueId::new().expect("random bytes").to_hex();
    let start = |rank: u32| {
        let mut command = Command::new(std::env::current_exe().expect("this binary"));
        command.args(["--exact", &format!("processes::{test}"), "--nocapture", "--test-threads=1"]);
        command.env("ROUNDELAY_RANK", rank.to_string());
        command.env("ROUNDELAY_NRANKS", nranks.to_string());
        command.env("ROUNDELAY_ID", &id).env(CASE, case).env_remove("ROUNDELAY_ENDINGS");
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    };
    let children: Vec<Child> = (0..nranks).map(start).collect();
    let pids: Vec<u32> = children.iter().map(Child::id).collect();
    thread::scope(|threads| {
        let waiting: Vec<_> =
            children.into_iter().map(|child| threads.spawn(|| hear(child))).collect();
        meanwhile(&pids);
        waiting.into_iter().map(|told| told.join().expect("a rank is heard")).collect()
    })
}

fn hear(mut child: Child) -> Told {
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
    let said = text.lines().filter_map(|line| line.split_once(MARK));
    let said = said.map(|(_, line)| line.to_owned()).collect();
    let all = text.clone() + &errors.join().expect("it is read");
    Told { pid, status: reaper.join().expect("it is reaped"), said, all }
}

/// The end of a rank's process: the test's own harness says nothing any more.
pub(super) fn end() -> ! {
    std::process::exit(0)
}

/// How long ranks of these tests wait for each other: long enough for a machine with other work.
pub(super) const DEADLINE: Duration = Duration::from_secs(60);
