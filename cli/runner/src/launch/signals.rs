//! The signals that the launcher takes.

use std::fs::read_to_string;
use std::sync::mpsc::Sender;
use std::thread;

use signal_hook::consts::{
    SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2,
};
use signal_hook::iterator::Signals;

use super::Event;
use super::environment::refused;
use crate::error::RunError;

/// The signals that are forwarded to the ranks.
pub(super) const FORWARDED: [i32; 8] =
    [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT];

/// Sends an event for each signal from now on.
pub fn listen(events: &Sender<Event>) -> Result<(), RunError> {
    let ignored = ignored();
    // Signals that this process was started to ignore, as by `nohup`, its ranks ignore too.
    let taken = FORWARDED.into_iter().filter(|signal| ignored & (1 << (signal - 1)) == 0);
    let mut signals =
        Signals::new(taken.chain([SIGCHLD])).map_err(|error| refused("signals", &error))?;
    let events = events.clone();
    let forward = move || {
        // A closed channel means that the process is about to end.
        signals.forever().all(|signal| events.send(Event::Signal(signal)).is_ok())
    };
    thread::Builder::new().spawn(forward).map_err(|error| refused("a thread", &error))?;
    Ok(())
}

/// Returns a bit for each signal, from 1 on.
fn ignored() -> u64 {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
