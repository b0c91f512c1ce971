//! Programs whose processes preload a library: the library, the variable of the loader, and the program that starts
//! them.

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

/// Signals that reach this command alone; the signals of a terminal's keys reach the program by themselves.
const FORWARDED: [i32; 4] = [SIGTERM, SIGHUP, SIGUSR1, SIGUSR2];

/// Runs a program, forwards signals to it, and returns its exit code.
///
/// # Errors
/// A program that cannot be started, and what the system refuses.
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
                // The program may have ended.
                _ = kill_process(pid, signal);
            }
        }
    };
    thread::Builder::new().spawn(forward).map_err(|error| {
        let title = format!("the system refuses a thread for the program's signals: {error}");
        RunError::usage(Code::SystemRefused, title)
    })?;
    let mut child = command.spawn().map_err(|error| {
        let program = command.get_program().display();
        RunError::usage(Code::BadCall, format!("{program} cannot be started: {error}"))
    })?;
    // The thread waits for it.
    _ = started.send(Pid::from_child(&child));
    let status = child.wait().map_err(|error| {
        RunError::usage(Code::SystemRefused, format!("the program is not waited for: {error}"))
    })?;
    Ok(Ending::from(status).code())
}

/// Returns the library and the libraries that a variable of the loader names already, as a list.
pub fn list_with(library: &Path, variable: &str) -> String {
    let library = library.display().to_string();
    match std::env::var(variable) {
        Ok(others) if !others.is_empty() => format!("{library}:{others}"),
        _ => library,
    }
}

/// Returns the library of a package of this project: the one that is given, or the one beside this program.
///
/// # Errors
/// The library is not there, or another user could have written it.
pub fn library(given: Option<&Path>, package: &str) -> Result<PathBuf, RunError> {
    let name = &format!("lib{}.so", package.replace('-', "_"));
    let none = |title: String| {
        let help = format!(
            "build it by `cargo build --release --package {package}`, or say by --library where it is"
        );
        RunError::usage(Code::BadCall, title).with_help(help)
    };
    if let Some(given) = given {
        let file = given.canonicalize();
        let file =
            file.map_err(|error| none(format!("{} cannot be read: {error}", given.display())));
        return preloadable(file?);
    }
    let own = std::env::current_exe().unwrap_or_default();
    let folder = own.parent().unwrap_or(Path::new("."));
    let places = [folder.join(name), folder.join("../lib").join(name)];
    let place = places.iter().find(|place| place.exists());
    let place = place.ok_or_else(|| {
        none(format!("{name} is not beside this command, in {}", folder.display()))
    })?;
    let place = only_own(place);
    preloadable(
        place.map_err(|why| none(format!("{name} beside this command is not used: {why}")))?,
    )
}

/// Refuses a path that the loader would take for several.
fn preloadable(library: PathBuf) -> Result<PathBuf, RunError> {
    let shown = library.display().to_string();
    if !shown.contains([' ', ':']) {
        return Ok(library);
    }
    let title =
        format!("{shown} has a space or a colon, by which the loader divides lists of libraries");
    Err(RunError::usage(Code::BadCall, title).with_help("put the library into another folder"))
}
