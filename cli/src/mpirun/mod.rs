//! `roundelay mpirun`: an unchanged MPI program, whose ranks preload the library that takes over collectives.

mod door;
mod flags;
mod flavour;
mod hosts;
mod rendezvous;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;

use roundelay_core::diagnostics::Code;
use roundelay_kernels::trust::only_own;
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGTERM, SIGUSR1, SIGUSR2};

use crate::called;
use crate::launch::{Ending, Event, listen};
use crate::report::Failure;
use crate::streams::say;
pub(crate) use flags::MpirunFlags;
use flavour::Flavour;
use rendezvous::Rendezvous;

/// Signals that reach this command alone; the signals of a terminal's keys reach the launcher by themselves.
const FORWARDED: [i32; 4] = [SIGTERM, SIGHUP, SIGUSR1, SIGUSR2];

/// Runs the launcher, and returns its exit code.
pub(crate) fn main(flags: &MpirunFlags) -> Result<u8, Failure> {
    called::alone()?;
    let library = library(flags)?;
    let (flavour, version) = Flavour::of(&flags.launcher)?;
    let rendezvous = Rendezvous::open(hosts::are_one(&flags.launcher, &flags.command))?;
    let mut variables =
        vec![("LD_PRELOAD", preloaded(&library)), ("ROUNDELAY_MPI", flags.mode.name().to_owned())];
    if flags.all {
        variables.push(("ROUNDELAY_MPI_TAKE", "all".to_owned()));
    }
    if flags.report {
        variables.push(("ROUNDELAY_REPORT", "1".to_owned()));
    }
    if let Some(text) = &flags.algorithm {
        variables.push(("ROUNDELAY_ALGORITHM", text.clone()));
    }
    say(format!("roundelay: {} is {version}", flags.launcher.display()));
    let meeting = rendezvous.text();
    // The secret word is not printed.
    let shown = (rendezvous::NAME, meeting.split(' ').next().unwrap_or_default().to_owned());
    for (name, value) in variables.iter().chain([&shown]) {
        say(format!("roundelay: ranks have {name}={value}"));
    }
    let mut command = Command::new(&flags.launcher);
    flavour.set(&mut command, &variables);
    flavour.entrust(&mut command, (rendezvous::NAME, meeting), &flags.command);
    rendezvous.serve()?;
    run(command)
}

/// Runs the launcher, and forwards signals to it.
fn run(mut command: Command) -> Result<u8, Failure> {
    let (sender, events) = channel();
    listen(&sender)?;
    let (started, child) = channel();
    let forward = move || {
        let Ok(pid) = child.recv() else { return };
        for event in events {
            if let Event::Signal(signal) = event
                && FORWARDED.contains(&signal)
                && let Some(signal) = Signal::from_named_raw(signal)
            {
                // The launcher may have ended.
                _ = kill_process(pid, signal);
            }
        }
    };
    thread::Builder::new().spawn(forward).map_err(|error| {
        let title = format!("the system refuses a thread for the launcher's signals: {error}");
        Failure::usage(Code::SystemRefused, title)
    })?;
    let mut child = command.spawn().map_err(|error| {
        let program = command.get_program().display();
        Failure::usage(Code::BadCall, format!("{program} cannot be started: {error}"))
    })?;
    // The thread waits for it.
    _ = started.send(Pid::from_child(&child));
    let status = child.wait().map_err(|error| {
        Failure::usage(Code::SystemRefused, format!("the launcher is not waited for: {error}"))
    })?;
    Ok(Ending::from(status).code())
}

/// Returns the library and the libraries that are preloaded already, as a list.
fn preloaded(library: &Path) -> String {
    let library = library.display().to_string();
    match std::env::var("LD_PRELOAD") {
        Ok(others) if !others.is_empty() => format!("{library}:{others}"),
        _ => library,
    }
}

/// Returns the library that ranks preload.
fn library(flags: &MpirunFlags) -> Result<PathBuf, Failure> {
    const NAME: &str = "libroundelay_mpi.so";
    let none = |title: String| {
        let failure = Failure::usage(Code::BadCall, title);
        failure.with_help("build it by `cargo build --release --package roundelay-mpi`, or say by --library where it is")
    };
    if let Some(given) = &flags.library {
        let file = given.canonicalize();
        return file.map_err(|error| none(format!("{} cannot be read: {error}", given.display())));
    }
    let own = std::env::current_exe().unwrap_or_default();
    let folder = own.parent().unwrap_or(Path::new("."));
    let places = [folder.join(NAME), folder.join("../lib").join(NAME)];
    let place = places.iter().find(|place| place.exists());
    let place = place.ok_or_else(|| {
        none(format!("{NAME} is not beside this command, in {}", folder.display()))
    })?;
    only_own(place).map_err(|why| none(format!("{NAME} beside this command is not used: {why}")))
}
