//! The hosts of a job that one launcher starts. An agent such as `ssh` starts a launcher on each host, and that launcher the
//! host's ranks. Its standard input brings it the key of the job, and then a byte for each signal. The input ends with the
//! launcher of all hosts, whatever ends that, and then the ranks are sent SIGHUP.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read as _, Write as _, stdin};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;
use std::{env, io, thread};

use rustix::process::Pid;
use rustix::system::uname;
use signal_hook::consts::{SIGHUP, SIGKILL};

use super::environment::refused;
use super::processes::{Agent, JobProcess, ProcessName};
use super::signals::FORWARDED;
use super::{Event, HostRanks, JobHosts, LaunchedProgram};
use crate::again;
use crate::error::RunError;

/// Variables that ranks get from their own launcher, or that are a secret: they are in no line that other users can read.
const OWN: [&str; 9] = [
    "ROUNDELAY_AGENT",
    "ROUNDELAY_ENDINGS",
    "ROUNDELAY_HOST_ID",
    "ROUNDELAY_ID",
    "ROUNDELAY_KEY",
    "ROUNDELAY_KEY_FILE",
    "ROUNDELAY_NRANKS",
    "ROUNDELAY_RANK",
    "ROUNDELAY_ROOT",
];

/// The starter of the launchers of all hosts.
pub(super) struct Agents<'f> {
    asked: &'f LaunchedProgram,
    job: &'f JobHosts,
    key: String,
    root: String,
}

impl<'f> Agents<'f> {
    pub(super) fn new(asked: &'f LaunchedProgram, job: &'f JobHosts) -> Result<Self, RunError> {
        let mut random = [0; 34];
        File::open("/dev/urandom")
            .and_then(|mut file| file.read_exact(&mut random))
            .map_err(|error| refused("random bytes", &error))?;
        let (key, drawn) = random.split_at(32);
        let key = key.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        // Below the ports that the system hands out by itself.
        let drawn = 20_000 + u16::from_le_bytes([drawn[0], drawn[1]]) % 12_000;
        let root = root_of(&job.hosts, job.port.unwrap_or(drawn));
        Ok(Self { asked, job, key, root })
    }

    /// Returns the hosts, in the order of their ranks.
    pub(super) fn hosts(&self) -> &'f [HostRanks] {
        &self.job.hosts
    }

    /// Starts the launcher of a host, whose first rank has this number.
    pub(super) fn start(&self, host: &HostRanks, first: u32) -> Result<JobProcess, RunError> {
        self.spawn(host, first)
            .map_err(|error| refused(&format!("the agent of host {}", host.name), &error))
    }

    fn spawn(&self, host: &HostRanks, first: u32) -> io::Result<JobProcess> {
        let line = self.line(host, first)?;
        let own = uname().nodename().to_string_lossy().into_owned();
        let mut command = if is_this_host(&host.name, &own) {
            let mut shell = Command::new("sh");
            shell.arg("-c");
            shell
        } else {
            let mut agent = Command::new(&self.job.agent[0]);
            agent.args(&self.job.agent[1..]).arg(&host.name);
            agent
        };
        let mut child = command.arg(line).process_group(0).stdin(Stdio::piped()).spawn()?;
        let mut input = child.stdin.take().expect("a pipe");
        // An agent that has ended already is reaped like one that ends later.
        _ = input.write_all(format!("{}\n", self.key).as_bytes());
        let name = ProcessName::Host(host.name.clone());
        Ok(JobProcess::new(name, Pid::from_child(&child), Some(Agent::new(input))))
    }

    /// Returns the line for a shell on the host.
    fn line(&self, host: &HostRanks, first: u32) -> io::Result<OsString> {
        let asked = self.asked;
        let all: u32 = self.job.hosts.iter().map(|host| host.nranks).sum();
        let settings = env::vars_os().filter_map(|(name, value)| {
            let name = name.into_string().ok()?;
            (name.starts_with("ROUNDELAY_") && !OWN.contains(&&*name)).then_some((name, value))
        });
        let mut words = vec![OsString::from("env")];
        for (name, value) in settings.chain(self.job.variables.iter().cloned()) {
            words.push([OsString::from(name), value].join(OsStr::new("=")));
        }
        words.extend(again::words()?);
        let (nranks, first, all) = (host.nranks.to_string(), first.to_string(), all.to_string());
        let grace = format!("{}us", asked.grace.as_micros());
        let flags = ["launch", "--led", "-n", &nranks, "--root", &self.root, "--first", &first];
        words
            .extend(flags.into_iter().chain(["--of", &all, "--grace", &grace]).map(OsString::from));
        for (switch, on) in [("--keep-going", asked.keep_going), ("--prefix", asked.prefix)] {
            words.extend(on.then(|| switch.into()));
        }
        words.push("--".into());
        words.extend(asked.command.iter().cloned());
        let mut line = b"cd ".to_vec();
        quote(&mut line, env::current_dir()?.as_os_str().as_bytes());
        line.extend(b" && exec");
        for word in words {
            line.push(b' ');
            quote(&mut line, word.as_bytes());
        }
        Ok(OsString::from_vec(line))
    }
}

/// Sends an event for each signal that the launcher of all hosts passes on, and for its end.
pub(super) fn follow(events: &Sender<Event>) -> io::Result<()> {
    let events = events.clone();
    let follow = move || {
        let signals = stdin().lock().bytes().map_while(Result::ok).map(i32::from);
        let known = signals.filter(|signal| *signal == SIGKILL || FORWARDED.contains(signal));
        // A closed channel means that this process is about to end.
        known.chain([SIGHUP]).all(|signal| events.send(Event::Signal(signal)).is_ok())
    };
    thread::Builder::new().stack_size(1 << 16).spawn(follow).map(drop)
}

/// Whether a host is the one of this process, which has the name `own`.
pub(crate) fn is_this_host(name: &str, own: &str) -> bool {
    let short = own.split('.').next().unwrap_or(own);
    ["localhost", "127.0.0.1", "::1", own, short].contains(&name)
}

/// Returns the address of this port of the first host, by a name under which all hosts know it.
fn root_of(hosts: &[HostRanks], port: u16) -> String {
    let own = uname().nodename().to_string_lossy().into_owned();
    let here = |host: &HostRanks| is_this_host(&host.name, &own);
    let first = &hosts[0];
    let name = if here(first) && !hosts.iter().all(here) { &own } else { &first.name };
    // The user's name there is the agent's.
    let name = name.rsplit_once('@').map_or(&**name, |(_, host)| host);
    if name.contains(':') { format!("[{name}]:{port}") } else { format!("{name}:{port}") }
}

/// Appends a word of a shell's line.
fn quote(line: &mut Vec<u8>, word: &[u8]) {
    line.push(b'\'');
    for byte in word {
        match byte {
            b'\'' => line.extend(br"'\''"),
            byte => line.push(*byte),
        }
    }
    line.push(b'\'');
}
