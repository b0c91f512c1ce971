//! Jobs of an MPI library whose ranks preload a library: its launcher, the variables of the ranks, and the meeting of the
//! hosts.

mod door;
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

use crate::error::RunError;
use crate::launch::{Ending, Event, listen};
pub use flavour::Flavour;
pub use hosts::are_one;
pub use rendezvous::{NAME as RENDEZVOUS, Rendezvous};

/// Signals that reach this command alone; the signals of a terminal's keys reach the launcher by themselves.
const FORWARDED: [i32; 4] = [SIGTERM, SIGHUP, SIGUSR1, SIGUSR2];

/// Runs the launcher, forwards signals to it, and returns its exit code.
///
/// # Errors
/// A launcher that cannot be started, and what the system refuses.
pub fn run(mut command: Command) -> Result<u8, RunError> {
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
        RunError::usage(Code::SystemRefused, title)
    })?;
    let mut child = command.spawn().map_err(|error| {
        let program = command.get_program().display();
        RunError::usage(Code::BadCall, format!("{program} cannot be started: {error}"))
    })?;
    // The thread waits for it.
    _ = started.send(Pid::from_child(&child));
    let status = child.wait().map_err(|error| {
        RunError::usage(Code::SystemRefused, format!("the launcher is not waited for: {error}"))
    })?;
    Ok(Ending::from(status).code())
}

/// Returns the library and the libraries that are preloaded already, as a list.
pub fn preload_list(library: &Path) -> String {
    let library = library.display().to_string();
    match std::env::var("LD_PRELOAD") {
        Ok(others) if !others.is_empty() => format!("{library}:{others}"),
        _ => library,
    }
}

/// Returns the library that ranks preload: the one that is given, or the one beside this program.
///
/// # Errors
/// The library is not there, or another user could have written it.
pub fn library(given: Option<&Path>) -> Result<PathBuf, RunError> {
    const NAME: &str = "libroundelay_mpi.so";
    let none = |title: String| {
        let failure = RunError::usage(Code::BadCall, title);
        failure.with_help("build it by `cargo build --release --package roundelay-mpi`, or say by --library where it is")
    };
    if let Some(given) = given {
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
