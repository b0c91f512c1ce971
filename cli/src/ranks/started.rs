//! The processes that are ranks, as the command that started them sees them.

use std::env::args_os;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use roundelay_core::diagnostics::Code;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::Shape;
use super::answers::arguments;
use super::lines::{Answer, Ask, Reply, Told};
use crate::launch::{Ending, Endings, Environment, refused};
use crate::program;
use crate::report::Failure;

/// As many processes of this command as there are ranks. They end when this is dropped, or when this process ends.
pub(crate) struct Ranks {
    ranks: Vec<Rank>,
}

struct Rank {
    asks: ChildStdin,
    answers: BufReader<ChildStdout>,
    process: OwnedFd,
    /// Waits for its end.
    watcher: Option<JoinHandle<std::io::Result<ExitStatus>>>,
}

impl Ranks {
    /// Starts the processes of so many ranks, and brings them together.
    pub(crate) fn start(nranks: u32) -> Result<Self, Failure> {
        let endings =
            Endings::new(nranks).map_err(|error| refused("memory for the endings", &error))?;
        let endings = Arc::new(endings);
        let environment = Environment::new(nranks, endings.descriptor())?;
        let mut ranks = Self { ranks: Vec::new() };
        for rank in 0..nranks {
            let started = Rank::start(rank, &environment, &endings).map_err(|error| {
                let help = "`ulimit -u` and `ulimit -n` say how many processes and open files there may be";
                refused(&format!("process {rank}"), &error).with_help(help)
            });
            ranks.ranks.push(started?);
        }
        ranks.ask(&Ask::Join { typed: program::typed() })?;
        Ok(ranks)
    }

    pub(crate) fn nranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    pub(crate) fn plan(&mut self, shape: &Shape) -> Result<(), Failure> {
        self.ask(&Ask::Plan(shape.clone())).map(drop)
    }

    /// Puts inputs where they belong, and nothing where outputs belong.
    pub(crate) fn prepare(&mut self, in_place: bool) -> Result<(), Failure> {
        self.ask(&Ask::Prepare { in_place }).map(drop)
    }

    /// Seconds of so many runs in a row: those of the slowest rank.
    pub(crate) fn row(&mut self, in_place: bool, runs: u32, rewrite: bool) -> Result<f64, Failure> {
        let answers = self.ask(&Ask::Row { in_place, runs, rewrite })?;
        Ok(answers.iter().map(|answer| answer.seconds).fold(0.0, f64::max))
    }

    /// Brings the results of all ranks.
    pub(crate) fn fetch(
        &mut self,
        in_place: bool,
        results: &mut [&mut [u8]],
    ) -> Result<(), Failure> {
        // One after the other: they have no room for each other's bytes.
        for (at, result) in results.iter_mut().enumerate() {
            let rank = &mut self.ranks[at];
            rank.ask(&Ask::Show { in_place });
            let answer = rank.answer().ok_or_else(|| self.ended(at))??;
            assert_eq!(answer.bytes, result.len(), "the output of rank {at}");
            let read = self.ranks[at].answers.read_exact(result);
            read.map_err(|_| self.ended(at))?;
        }
        Ok(())
    }

    /// Asks all ranks, and returns what they answer, or the cause of a failure.
    fn ask(&mut self, ask: &Ask) -> Result<Vec<Answer>, Failure> {
        for rank in &mut self.ranks {
            rank.ask(ask);
        }
        let replies: Vec<Option<Reply>> = self.ranks.iter_mut().map(Rank::answer).collect();
        let gone = replies.iter().position(Option::is_none);
        let (mut answers, mut failures) = (Vec::new(), Vec::new());
        for reply in replies.into_iter().flatten() {
            match reply {
                Ok(answer) => answers.push(answer),
                Err(told) => failures.push(told),
            }
        }
        // What a rank tells of itself is the cause of what the others tell.
        failures.sort_by_key(Told::is_of_another);
        match (failures.into_iter().next(), gone) {
            (Some(cause), _) => Err(cause.into()),
            (None, Some(rank)) => Err(self.ended(rank)),
            (None, None) => Ok(answers),
        }
    }

    /// The process of a rank ended that was asked.
    fn ended(&mut self, rank: usize) -> Failure {
        let how = match self.ranks[rank].end().map(ending) {
            Some(Ending::Exit(code)) => format!("exited with code {code}"),
            Some(Ending::Signal(signal)) => format!("was killed by signal {signal}"),
            None => "ended".to_owned(),
        };
        Failure::usage(Code::RankEnded, format!("the process of rank {rank} {how}"))
    }
}

impl Rank {
    /// Starts the process of a rank. The kernel kills it when the thread ends that calls this.
    fn start(
        rank: u32,
        environment: &Environment,
        endings: &Arc<Endings>,
    ) -> std::io::Result<Self> {
        // What this process runs, even if the file has been replaced since.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("roundelay").envs(environment.of(rank));
        command.args(arguments()).args(args_os().skip(1));
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let asks = child.stdin.take().expect("a pipe");
        let answers = BufReader::new(child.stdout.take().expect("a pipe"));
        let process = match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
            Ok(process) => process,
            Err(errno) => {
                // With nobody to ask it, it ends.
                drop(asks);
                child.wait()?;
                return Err(errno.into());
            }
        };
        let endings = endings.clone();
        let watched = move || watch(child, rank as usize, &endings);
        let watcher = Some(thread::Builder::new().stack_size(1 << 16).spawn(watched)?);
        Ok(Self { asks, answers, process, watcher })
    }

    fn ask(&mut self, ask: &Ask) {
        let mut line = serde_json::to_string(ask).expect("plain data serializes");
        line.push('\n');
        // One that has ended does not answer.
        let _ = self.asks.write_all(line.as_bytes());
    }

    /// None where the process ended instead.
    fn answer(&mut self) -> Option<Reply> {
        let mut line = String::new();
        self.answers.read_line(&mut line).ok()?;
        serde_json::from_str(&line).ok()
    }

    /// Ends the process, unless it has ended, and says how it did.
    fn end(&mut self) -> Option<ExitStatus> {
        let _ = pidfd_send_signal(&self.process, Signal::KILL);
        self.watcher.take()?.join().ok()?.ok()
    }
}

/// Waits for the end of a rank, and tells the others, who are told by it how it ended.
fn watch(mut child: Child, rank: usize, endings: &Endings) -> std::io::Result<ExitStatus> {
    let status = child.wait()?;
    endings.write(rank, ending(status))?;
    Ok(status)
}

fn ending(status: ExitStatus) -> Ending {
    match status.signal() {
        Some(signal) => Ending::Signal(signal),
        None => Ending::Exit(status.code().unwrap_or_default()),
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        for rank in &mut self.ranks {
            let _ = pidfd_send_signal(&rank.process, Signal::KILL);
        }
        for rank in &mut self.ranks {
            rank.end();
        }
    }
}
