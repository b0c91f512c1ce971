//! A call that a rank is in, and how the rank leaves it.

use std::cell::Cell;

use roundelay_core::ids::RankId;

use super::{Calls, slot};
use crate::error::Error;
use crate::sync::{Ordering, fence, pause};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The call is not published yet.
    Outside,
    /// The call is published: other ranks may touch the rank's buffers, and the rank theirs.
    Inside,
    /// The rank has left the call.
    Gone,
}

/// A call that a rank is in. It ends when no other rank can touch the rank's buffers any more: after a complete run the
/// proof ensures this; else all other ranks must have left, too.
pub(crate) struct ActiveCall<'c> {
    pub(super) calls: &'c Calls,
    pub(crate) rank: RankId,
    /// The number of the call.
    pub(crate) number: u64,
    pub(super) stage: Cell<Stage>,
}

impl ActiveCall<'_> {
    /// Whether the call ends early.
    pub(crate) fn ends(&self) -> bool {
        self.calls.ends(self.number)
    }

    /// Ends the call, and returns its result.
    pub(crate) fn end(self, result: Result<(), Error>) -> Result<(), Error> {
        let calls = self.calls;
        let own = &calls.seat(self.rank).own.0;
        // The rank has done its part, but if the call is void, it is told so now and not in place of its next call.
        let void = &calls.end.0.void[slot(self.number)];
        let result = match result {
            Ok(()) if void.load(Ordering::Relaxed) == self.number => {
                calls.goes_on(self.rank, self.number)
            }
            result => result,
        };
        let inside = self.stage.replace(Stage::Gone) == Stage::Inside;
        if inside {
            // Release: the rank's accesses to other ranks' buffers come before those ranks' accesses after they see it
            // gone.
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

impl Drop for ActiveCall<'_> {
    fn drop(&mut self) {
        let (calls, rank) = (self.calls, self.rank);
        if self.stage.replace(Stage::Gone) == Stage::Gone {
            return;
        }
        // A panic; the error names the rank that failed first.
        let message = "its thread panicked in a call".to_owned();
        calls.give_up(rank, || Error::WorkerPanicked { message });
        calls.seat(rank).own.0.inside.store(0, Ordering::Release);
        calls.outlast(rank, None);
        calls.seat(rank).own.0.taken.store(false, Ordering::Release);
    }
}

impl Calls {
    /// Waits until no other rank is inside call `number`, or inside any call if that is `None`. The end is announced
    /// before: a rank that enters now leaves again, and a rank inside sees the end at its next tile or wait.
    fn outlast(&self, rank: RankId, number: Option<u64>) {
        // Pairs with the fence in `publish`: either other ranks see the end, or this rank sees them inside.
        fence(Ordering::SeqCst);
        let inside = |other: RankId| {
            // Acquire: the other rank's accesses in that call are done.
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
