//! The connection of a rank to the root, and the news that come on it: which rank is gone, or has ended all calls.

use std::io;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use roundelay_core::ids::RankId;
use rustix::event::{PollFd, PollFlags, poll};

use super::door::timespec;
use super::root::Word;
use super::secure::Secure;
use crate::Error;
use crate::error::Ended;

/// The connection to the root.
pub(super) struct Control(Mutex<State>);

pub(super) struct State {
    rank: u32,
    pub(super) secure: Secure,
    /// Whether the root has left, so that an end of the connection means nothing.
    left: bool,
    /// The rank that is gone or has ended all calls, in words.
    pub(super) gone: Option<Error>,
}

impl Control {
    /// Takes the connection of a rank to the root.
    pub(super) fn new(rank: u32, secure: Secure) -> Self {
        Self(Mutex::new(State { rank, secure, left: false, gone: None }))
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rank that is gone or has ended all calls, as the root says.
    pub(super) fn gone(&self) -> Option<Error> {
        let Ok(mut state) = self.0.try_lock() else { return None };
        while state.gone.is_none() && !state.left && state.is_ready() {
            if state
                .secure
                .patient_for(Duration::from_secs(5))
                .and_then(|()| state.hear().map(drop))
                .is_err()
            {
                state.gone = Some(gone(0, "the process at which the ranks met ended"));
            }
        }
        state.gone.clone()
    }

    /// Has the root tell all ranks that this one ended all calls.
    pub(super) fn abort(&self, why: &str) {
        /// The characters of a reason that travel.
        const MOST: usize = 1000;
        let why: String = why.chars().take(MOST).collect();
        let mut state = self.state();
        let word = Word::Abort(state.rank, format!("it aborted: {why}"));
        // A root that cannot be told is gone, of which all ranks hear.
        let patient = state.secure.patient_for(Duration::from_secs(5));
        _ = patient.and_then(|()| state.secure.send(&word.bytes()));
    }

    /// The address by which this process reached the root.
    pub(super) fn local(&self) -> Option<SocketAddr> {
        self.state().secure.stream.local_addr().ok()
    }
}

impl State {
    /// Whether the root has said something, or is gone.
    fn is_ready(&self) -> bool {
        let mut fds = [PollFd::new(&self.secure.stream, PollFlags::IN | PollFlags::RDHUP)];
        poll(&mut fds, Some(&timespec(Duration::ZERO))).is_ok_and(|ready| ready > 0)
    }

    /// Hears the next message, and keeps its meaning for all later calls.
    pub(super) fn hear(&mut self) -> io::Result<Word> {
        let word = Word::read(&self.secure.receive()?)?;
        match &word {
            Word::Gone(rank, host) => {
                let ended = format!("its process on host {host} ended");
                self.gone.get_or_insert_with(|| gone(*rank, &ended));
            }
            Word::Abort(by, why) => {
                let [rank, by] = [self.rank, *by].map(RankId);
                self.gone.get_or_insert(Error::Abandoned { rank, by, why: why.clone() });
            }
            Word::Bye => self.left = true,
            _ => {}
        }
        Ok(word)
    }
}

/// Returns E0428 for a rank of another host.
pub(super) fn gone(rank: u32, why: &str) -> Error {
    Error::RankEnded(Box::new(Ended {
        rank: RankId(rank),
        pid: 0,
        number: 0,
        what: format!("rank {rank} is gone: {why}; all ranks' calls fail from here on"),
    }))
}

impl Drop for Control {
    fn drop(&mut self) {
        // A thread that panics does not leave: it is gone.
        if !thread::panicking() {
            let state = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
            _ = state.secure.patient_for(Duration::from_secs(1));
            let said = state.secure.send(&Word::Bye.bytes()).is_ok();
            // The root may be in this process, and tells the others first.
            while said && state.rank == 0 && !matches!(state.hear(), Ok(Word::Bye) | Err(_)) {}
        }
    }
}
