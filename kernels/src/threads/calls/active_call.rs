//! A call that a rank is in, and how the rank leaves it.

use std::cell::Cell;

use roundelay_core::ids::RankId;

use super::Calls;
use crate::call_numbers::{CallNumbers, CallsSeen as _};
use crate::error::Error;
use crate::sync::{MutexGuard, Ordering, fence, pause};

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
    pub(super) numbers: MutexGuard<'c, CallNumbers>,
}

impl ActiveCall<'_> {
    /// Whether the call ends early.
    pub(crate) fn ends(&self) -> bool {
        self.calls.seen_by(self.rank).ends(self.number)
    }

    /// Fails with the reason if the call ends early.
    pub(crate) fn goes_on(&self) -> Result<(), Error> {
        self.calls.seen_by(self.rank).goes_on(self.number)
    }

    /// Checks that the rank may make its next call, and waits for room for it.
    pub(super) fn make_room(&mut self) -> Result<(), Error> {
        let seen = self.calls.seen_by(self.rank);
        self.numbers.hear(&seen)?;
        seen.intact()?;
        while let Some((who, needs)) = self.numbers.awaited(&seen) {
            let (ready, failed) = (|| seen.number(who) >= needs, || seen.has_failed());
            let who = RankId(who as u32);
            self.calls.wait_for_call(self.rank, self.number, who, ready, failed)?;
            seen.intact()?;
        }
        Ok(())
    }

    /// Ends the call, and returns its result.
    pub(crate) fn end(mut self, result: Result<(), Error>) -> Result<(), Error> {
        let calls = self.calls;
        let result = calls.seen_by(self.rank).outcome(self.number, result);
        let inside = self.stage.replace(Stage::Gone) == Stage::Inside;
        if inside {
            // Release: the rank's accesses to other ranks' buffers come before those ranks' accesses after they see it
            // gone.
            calls.seat(self.rank).own.0.inside.store(0, Ordering::Release);
        }
        match &result {
            Err(Error::CallsDiffer(_)) if inside => calls.outlast(self.rank, Some(self.number)),
            Err(_) if inside => calls.outlast(self.rank, None),
            _ => {}
        }
        self.numbers.note(&result);
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
