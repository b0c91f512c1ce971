//! The launcher's work from the start of its ranks to the end of the last. One thread signals processes and reaps them,
//! so no signal goes to a process that is gone.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use roundelay_core::diagnostics::Code;
use roundelay_kernels::{AFFINITY, share};
use roundelay_topology::host::list;
use rustix::process::{Signal, getpid, set_child_subreaper};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGKILL, SIGQUIT, SIGTERM, SIGTSTP};
use signal_hook::low_level::emulate_default_handler;

use super::endings::{Ending, Endings};
use super::environment::{Environment, not_started, refused};
use super::hosts::{Agents, follow};
use super::job_end::{Cause, told, told_of_one};
use super::processes::{JobProcess, is_left, reap, signal_group, start, wait_for};
use super::{Event, LaunchedProgram};
use crate::error::RunError;

/// The time to end before SIGKILL, for a process that was sent SIGTERM, or that a rank left behind.
const PATIENCE: Duration = Duration::from_secs(1);

pub(super) struct LaunchedJob<'f> {
    asked: &'f LaunchedProgram,
    /// The memory in which ranks of this host read how the others ended.
    endings: Option<Arc<Endings>>,
    processes: Vec<JobProcess>,
    /// Streams of ranks that are relayed.
    open: u32,
    /// The time at which the job has taken too long.
    late: Option<Instant>,
    /// The time at which the ranks are sent SIGTERM.
    term: Option<Instant>,
    /// The time at which the ranks are sent SIGKILL.
    kill: Option<Instant>,
    /// The time after which streams that outlast all ranks are no longer waited for.
    quiet: Option<Instant>,
    cause: Option<Cause>,
    /// Whether a process failed.
    failed: bool,
    /// Whether SIGINT came.
    interrupted: bool,
}

impl<'f> LaunchedJob<'f> {
    /// Starts all ranks, or none.
    pub(super) fn start(
        asked: &'f LaunchedProgram,
        events: &Sender<Event>,
    ) -> Result<Self, RunError> {
        // A process that a rank leaves behind becomes a child of this process.
        set_child_subreaper(Some(getpid()))
            .map_err(|error| refused("the adoption of processes", &error.into()))?;
        let late = asked.timeout.map(|timeout| Instant::now() + timeout);
        let mut job = Self {
            asked,
            endings: None,
            processes: Vec::new(),
            open: 0,
            late,
            term: None,
            kill: None,
            quiet: None,
            cause: None,
            failed: false,
            interrupted: false,
        };
        let started = match &asked.hosts {
            Some(hosts) => job.start_hosts(&Agents::new(asked, hosts)?),
            None => job.start_ranks(events),
        };
        if let Err(error) = started {
            job.end(Signal::KILL);
            for process in job.processes.drain(..) {
                let pid = process.pid;
                // A host's launcher ends with its input.
                drop(process);
                wait_for(pid);
            }
            return Err(error);
        }
        Ok(job)
    }

    fn start_hosts(&mut self, agents: &Agents<'_>) -> Result<(), RunError> {
        let mut first = 0;
        for host in agents.hosts() {
            self.processes.push(agents.start(host, first)?);
            first += host.nranks;
        }
        Ok(())
    }

    fn start_ranks(&mut self, events: &Sender<Event>) -> Result<(), RunError> {
        let asked = self.asked;
        tell_affinity(asked)?;
        let environment = Environment::new(asked.nranks, asked.part.clone())?;
        self.endings = Some(environment.endings.clone());
        if asked.is_led() {
            follow(events).map_err(|error| refused("a thread", &error))?;
        }
        for rank in 0..asked.nranks {
            let rank = start(asked, rank, &environment, events)
                .map_err(|error| not_started(rank, &error))?;
            self.processes.push(rank);
        }
        self.open = if asked.prefix { 2 * asked.nranks } else { 0 };
        Ok(())
    }

    /// Waits for the end of all ranks, and says how they ended if not well. Returns the exit code.
    pub(super) fn wait(mut self, events: &Receiver<Event>) -> u8 {
        while self.goes_on() {
            let next = self.next();
            let waited = next.map(|at| at.saturating_duration_since(Instant::now()));
            let event = match waited {
                Some(time) => events.recv_timeout(time).ok(),
                None => events.recv().ok(),
            };
            match event {
                Some(Event::Signal(SIGCHLD)) => self.reap(),
                Some(Event::Signal(signal)) => self.forward(signal),
                Some(Event::Closed) => self.open -= 1,
                None => {}
            }
            self.keep_times(Instant::now());
        }
        let Some(cause) = self.cause else { return 0 };
        let well = self.processes.iter().all(|rank| rank.ending == Some(Ending::Exit(0)));
        let code = match cause {
            Cause::Asked(_) if well => return 0,
            Cause::Asked(signal) => Ending::Signal(signal).code(),
            Cause::Late(_) => 124,
            Cause::Failed(rank) => self.processes[rank].ending.map_or(1, Ending::code),
        };
        (self.asked.say)(told(cause, &self.processes));
        code
    }

    /// Whether a rank or a stream is still waited for.
    fn goes_on(&mut self) -> bool {
        if self.processes.iter().any(|rank| rank.ending.is_none() || rank.left.is_some()) {
            return true;
        }
        let now = Instant::now();
        self.open > 0 && now < *self.quiet.get_or_insert(now + PATIENCE)
    }

    /// Returns the earliest time at which the job must act.
    fn next(&self) -> Option<Instant> {
        let times = [self.late, self.term, self.kill, self.quiet];
        times.into_iter().chain(self.processes.iter().map(|rank| rank.left)).flatten().min()
    }

    fn keep_times(&mut self, now: Instant) {
        let passed = |time: &mut Option<Instant>| time.take_if(|at| *at <= now).is_some();
        if passed(&mut self.late) && self.running().next().is_some() {
            let timeout = self.asked.timeout.unwrap_or_default();
            self.cause.get_or_insert(Cause::Late(timeout));
            self.end(Signal::TERM);
            self.kill_by(now + self.asked.grace);
        }
        if passed(&mut self.term) {
            self.end(Signal::TERM);
            self.kill_by(now + PATIENCE);
        }
        if passed(&mut self.kill) {
            self.end(Signal::KILL);
            if self.processes.iter().any(JobProcess::may_be_deaf) {
                self.kill_by(now + PATIENCE);
            }
        }
        for rank in &mut self.processes {
            if passed(&mut rank.left) && is_left(rank.pid) {
                signal_group(rank.pid, Signal::KILL);
                rank.left = Some(now + PATIENCE);
            }
        }
    }

    /// Lets SIGKILL come at this time, if not before.
    fn kill_by(&mut self, at: Instant) {
        self.kill = Some(self.kill.map_or(at, |before| before.min(at)));
    }

    fn reap(&mut self) {
        let now = Instant::now();
        while let Some((pid, ending)) = reap() {
            let its = |rank: &JobProcess| rank.pid == pid && rank.ending.is_none();
            // Other processes were left behind by ranks.
            if let Some(rank) = self.processes.iter().position(its) {
                self.ended(rank, ending, now);
            }
        }
        for rank in &mut self.processes {
            rank.left = rank.left.filter(|_| is_left(rank.pid));
        }
    }

    fn ended(&mut self, at: usize, ending: Ending, now: Instant) {
        let rank = &mut self.processes[at];
        rank.ending = Some(ending);
        rank.left = Some(now + PATIENCE);
        if let Some(endings) = &self.endings {
            // A write to memory cannot fail.
            endings.write(at, ending).expect("the endings have a word for each rank");
        }
        if ending == Ending::Exit(0) {
            return;
        }
        let cause = *self.cause.get_or_insert(Cause::Failed(at));
        if !self.asked.keep_going && !self.failed {
            self.term = Some(now + self.asked.grace);
        }
        let others_go_on = self.asked.keep_going && matches!(cause, Cause::Failed(_));
        if others_go_on && self.processes[at].ended_by.is_none() {
            (self.asked.say)(told_of_one(&self.processes[at]));
        }
        self.failed = true;
    }

    /// Passes a signal on to all ranks.
    fn forward(&mut self, number: i32) {
        if number == SIGKILL || number == SIGINT && self.interrupted {
            self.end(Signal::KILL);
            return self.kill_by(Instant::now() + PATIENCE);
        }
        self.interrupted |= number == SIGINT;
        let forwarded = Signal::from_named_raw(number).expect("a forwarded signal has a name");
        for rank in self.running() {
            rank.signal(forwarded);
        }
        if [SIGINT, SIGQUIT, SIGTERM, SIGHUP].contains(&number) {
            self.cause.get_or_insert(Cause::Asked(number));
        }
        if [SIGTERM, SIGHUP].contains(&number) {
            self.kill_by(Instant::now() + self.asked.grace);
        }
        if number == SIGTSTP && !self.asked.is_led() {
            // SIGCONT wakes this process, and then goes to the ranks.
            let _ = emulate_default_handler(SIGTSTP);
        }
    }

    /// Ends the ranks that run, unless SIGKILL is on its way to them.
    fn end(&mut self, by: Signal) {
        let ends =
            |rank: &&mut JobProcess| by == Signal::KILL || rank.ended_by != Some(Signal::KILL);
        for rank in self.running().filter(ends) {
            rank.signal(by);
            rank.ended_by = Some(by);
        }
    }

    fn running(&mut self) -> impl Iterator<Item = &mut JobProcess> {
        self.processes.iter_mut().filter(|rank| rank.ending.is_none())
    }
}

/// Says on which processors each rank stays, where the variable of affinity asks for that.
fn tell_affinity(asked: &LaunchedProgram) -> Result<(), RunError> {
    match std::env::var(AFFINITY).as_deref() {
        Ok("report") => {
            let first = asked.part.as_ref().map_or(0, |part| part.first);
            for rank in 0..asked.nranks {
                let cpus = share(rank, asked.nranks);
                let stays = match cpus.len() {
                    0 => "stays where the system puts it".to_owned(),
                    1 => format!("stays on processor {}", list(&cpus)),
                    _ => format!("stays on processors {}", list(&cpus)),
                };
                (asked.say)(format!("rank {} {stays}", first + rank));
            }
            Ok(())
        }
        Ok("" | "on" | "off") | Err(_) => Ok(()),
        Ok(other) => {
            let title = format!("{AFFINITY} is on, off or report, and not `{other}`");
            Err(RunError::usage(Code::BadFlag, title))
        }
    }
}
