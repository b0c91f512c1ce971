//! A thread that looks after the processes of the other ranks: where one ends, the kernels of all ranks end.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;

use super::super::control::Control;
use crate::shared_memory::World;

/// The time from the end of a process to the end of kernels: their waits are recorded meanwhile.
const PAUSE: Duration = Duration::from_millis(20);

/// The control blocks of the plans that are alive.
type Controls = Arc<Mutex<Vec<Weak<Control>>>>;

/// The thread, which ends with this value.
pub(super) struct Watcher {
    controls: Controls,
    end: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Begins to look after the other ranks of `world`.
    pub(super) fn new(world: &Arc<World>) -> Result<Self, crate::Error> {
        let refused = |what: &str, error: &dyn std::fmt::Display| crate::Error::SystemRefused {
            what: format!("the system refuses {what} that looks after other ranks: {error}"),
        };
        let event = |errno: Errno| refused("an event of the thread", &errno);
        let end = eventfd(0, EventfdFlags::CLOEXEC).map_err(event)?;
        let stop = end.try_clone().map_err(|error| refused("an event of the thread", &error))?;
        let controls = Controls::default();
        let (world, all) = (world.clone(), controls.clone());
        let thread = thread::Builder::new().name("roundelay watch".to_owned());
        let thread = thread.spawn(move || watch(&world, &stop, &all));
        let thread = Some(thread.map_err(|error| refused("a thread", &error))?);
        Ok(Self { controls, end, thread })
    }

    /// Adds the control block of a plan.
    pub(super) fn add(&self, control: &Arc<Control>) {
        let mut controls = self.controls.lock().unwrap_or_else(PoisonError::into_inner);
        controls.retain(|control| control.strong_count() > 0);
        controls.push(Arc::downgrade(control));
    }

    /// Has the kernels of all plans end.
    pub(super) fn abort(&self) {
        abort(&self.controls);
    }
}

fn abort(controls: &Controls) {
    let controls = controls.lock().unwrap_or_else(PoisonError::into_inner);
    controls.iter().filter_map(Weak::upgrade).for_each(|control| control.abort());
}

/// Waits for the end of a process, or of the watch.
fn watch(world: &World, stop: &OwnedFd, controls: &Controls) {
    // A rank that leaves in order is watched no more.
    let mut watched: Vec<_> = world.pidfds().collect();
    loop {
        let mut fds = vec![PollFd::new(stop, PollFlags::IN)];
        fds.extend(watched.iter().map(|(_, fd)| PollFd::from_borrowed_fd(*fd, PollFlags::IN)));
        match poll(&mut fds, None) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            // Without the watch, kernels end at their deadline.
            Err(_) => return,
        }
        if !fds[0].revents().is_empty() {
            return;
        }
        if world.find_lost().is_some() {
            thread::sleep(PAUSE);
            return abort(controls);
        }
        let ended: Vec<bool> = fds[1..].iter().map(|fd| !fd.revents().is_empty()).collect();
        let mut ended = ended.into_iter();
        watched.retain(|_| !ended.next().unwrap_or(false));
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        // An event takes a write of 8 bytes at any time.
        let _ = rustix::io::write(self.end.as_fd(), &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
