//! A rank's stay in a call, and how it leaves.

use std::cell::Cell;

use roundelay_core::ids::RankId;

use super::{Calls, slot};
use crate::error::Error;
use crate::sync::{Ordering, fence, pause};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The call was not published.
    Outside,
    /// It was: others may touch the rank's buffers, and it theirs.
    Inside,
    /// The rank has left.
    Gone,
}

/// A rank's presence in a call. It ends when nobody can touch the rank's buffers any more: after a run that came
/// to its end the proof says so; else all others must have left too.
pub(crate) struct Visit<'c> {
    pub(super) calls: &'c Calls,
    pub(crate) rank: RankId,
    /// Of the call.
    pub(crate) number: u64,
    pub(super) stage: Cell<Stage>,
}

impl Visit<'_> {
    /// Whether the call ends early.
    pub(crate) fn ends(&self) -> bool {
        self.calls.ends(self.number)
    }

    /// The end of the call, with what became of it.
    pub(crate) fn end(self, result: Result<(), Error>) -> Result<(), Error> {
        let calls = self.calls;
        let own = &calls.seat(self.rank).own.0;
        // What is done is done, but if the call is void nobody needs to wait for the next to say so.
        let void = &calls.end.0.void[slot(self.number)];
        let result = match result {
            Ok(()) if void.load(Ordering::Relaxed) == self.number => {
                calls.goes_on(self.rank, self.number)
            }
            result => result,
        };
        let inside = self.stage.replace(Stage::Gone) == Stage::Inside;
        if inside {
            // Release: what it did to others' buffers comes before what these do when they see it gone.
            own.inside.store(0, Ordering::Release);
        }
        match &result {
            Err(Error::CallsDiffer(_)) if inside => calls.outlast(self.rank, Some(self.number)),
            Err(_) if inside => calls.outlast(self.rank, None),
            _ => {}
        }
        own.taken.store(false, Ordering::Release);
        result
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let (calls, rank) = (self.calls, self.rank);
        if self.stage.replace(Stage::Gone) == Stage::Gone {
            return;
        }
        // A panic; who failed first is the one to name.
        let message = "its thread panicked in a call".to_owned();
        calls.give_up(rank, || Error::WorkerPanicked { message });
        calls.seat(rank).own.0.inside.store(0, Ordering::Release);
        calls.outlast(rank, None);
        calls.seat(rank).own.0.taken.store(false, Ordering::Release);
    }
}

impl Calls {
    /// Returns when no other rank is inside that call, or any: its end has been said, so whoever enters now
    /// leaves again, and whoever is inside hears of it at its next tile or wait.
    fn outlast(&self, rank: RankId, number: Option<u64>) {
        // Against the fence in `publish`: either they see the end, or we see them inside.
        fence(Ordering::SeqCst);
        let inside = |other: RankId| {
            // Acquire: what it did there is done.
            match self.seat(other).own.0.inside.load(Ordering::Acquire) {
                0 => false,
                at => number.is_none_or(|number| number == at),
            }
        };
        while self.others(rank).any(inside) {
            pause();
        }
    }
}
