//! The calls of ranks that are threads: the words and the wakeup of each rank, and the events that end calls for all ranks.
//! A rank's call is the number of a plan's shape, and the numbers of calls are as for [ranks of all
//! kinds](crate::call_numbers).
//!
//! A rank that leaves a call early first announces it, then waits until no rank is left inside that could still touch
//! its buffers. Entering and leaving are as in Dekker's algorithm: a store, a fence, a look at the other rank's store.

mod active_call;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::sync::{Arc, TryLockError};
use std::time::Duration;

use roundelay_core::ids::RankId;
use roundelay_core::schedule::RANK_LIMIT;

use super::needs::Needs;
use super::record::Record;
use super::wakeup::Wakeup;
use crate::call_numbers::{CallNumbers, CallsSeen, WINDOW, low, word};
use crate::error::{Differ, Error};
use crate::options::Options;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering, Padded, fence, lock};
pub(super) use active_call::ActiveCall;
use active_call::Stage;

/// The calls of ranks that run together, each rank from a thread of its own: plans that share one `Calls` count their
/// ranks' calls together, and fail together.
pub struct Calls {
    ranks: Box<[Seat]>,
    end: Padded<CallsEnd>,
    record: Mutex<Record>,
    pub(super) deadline: Duration,
    /// Whether each rank's thread has a core for itself.
    spins: bool,
    /// The distance from a rank to the next rank that it looks at: steps of it reach all ranks, and not in the order of
    /// their numbers.
    stride: usize,
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calls").field("nranks", &self.ranks.len()).finish_non_exhaustive()
    }
}

/// The calls of one rank, and the wakeup of its thread.
struct Seat {
    /// The words of the rank's calls, by number modulo [`WINDOW`]. Other ranks read them; only the rank's thread writes
    /// them.
    made: Padded<[AtomicU64; WINDOW as usize]>,
    own: Padded<OwnWords>,
    wakeup: Padded<Wakeup>,
}

struct OwnWords {
    /// Held by the thread that makes a call for the rank.
    numbers: Mutex<CallNumbers>,
    /// The number of calls that the rank has made.
    number: AtomicU64,
    /// The call in which the rank may touch buffers of other ranks, or 0.
    inside: AtomicU64,
}

/// The marks that end calls early. They are read at every tile and wait, and hardly ever written.
struct CallsEnd {
    /// Whether there was a failure.
    failed: AtomicBool,
    /// The number of refused calls.
    refused: AtomicU64,
    /// The numbers of the refused calls in two windows.
    void: [AtomicU64; 2 * WINDOW as usize],
}

/// The calls as one rank sees them.
#[derive(Clone, Copy)]
pub(super) struct SeenBy<'c> {
    calls: &'c Calls,
    rank: RankId,
}

impl CallsSeen for SeenBy<'_> {
    fn others(&self) -> impl Iterator<Item = usize> {
        self.calls.others(self.rank).map(RankId::index)
    }

    fn named(&self, rank: usize) -> RankId {
        RankId(rank as u32)
    }

    fn own(&self) -> usize {
        self.rank.index()
    }

    fn number(&self, rank: usize) -> u64 {
        self.calls.ranks[rank].own.0.number.load(Ordering::Acquire)
    }

    fn call_name(&self, rank: usize, number: u64) -> Option<String> {
        let shape = self.calls.ranks[rank].shape(number, Ordering::Relaxed)?;
        Some(lock(&self.calls.record).shapes.name(shape))
    }

    fn is_inside(&self, rank: usize, number: u64) -> bool {
        self.calls.ranks[rank].own.0.inside.load(Ordering::Relaxed) == number
    }

    fn refused(&self) -> u64 {
        self.calls.end.0.refused.load(Ordering::Acquire)
    }

    fn is_void(&self, number: u64) -> bool {
        self.calls.end.0.void[void(number)].load(Ordering::Relaxed) == number
    }

    fn differ(&self, number: u64) -> Differ {
        lock(&self.calls.record).differ(number).expect("a void call has a record").clone()
    }

    fn has_failed(&self) -> bool {
        self.calls.end.0.failed.load(Ordering::Relaxed)
    }

    fn intact(&self) -> Result<(), Error> {
        if !self.has_failed() {
            return Ok(());
        }
        let cause = lock(&self.calls.record).cause.clone();
        let (by, why) = cause.unwrap_or_else(|| (self.rank, "it gave up".to_owned()));
        Err(Error::Abandoned { rank: self.rank, by, why })
    }
}

impl Seat {
    /// Returns the shape of call `number`, if its word can be read.
    fn shape(&self, number: u64, order: Ordering) -> Option<u32> {
        low(self.made.0[slot(number)].load(order), number).map(|shape| shape as u32)
    }
}

fn slot(number: u64) -> usize {
    (number % WINDOW) as usize
}

fn void(number: u64) -> usize {
    (number % (2 * WINDOW)) as usize
}

/// Returns a number without a common factor with `n`, whose multiples fall far from each other: of the first numbers
/// from the golden section of `n` on, the number for which the quotients of Euclid's algorithm have the smallest sum.
fn stride(n: usize) -> usize {
    let quotients = |stride: usize| {
        let (mut a, mut b, mut sum) = (n, stride, 0);
        while b != 0 {
            sum += a / b;
            (a, b) = (b, a % b);
        }
        (a == 1).then_some((sum, stride))
    };
    let golden = n * 618 / 1000;
    let near = (golden.max(1)..n.max(2)).take(64);
    near.filter_map(quotients).min().map_or(1, |(_, stride)| stride)
}

impl Calls {
    /// Makes the calls of `nranks` ranks, whose waits end with the deadline of `options`.
    ///
    /// # Errors
    /// [`Error::NoRanks`] (E0409) for 0 ranks, or more than a schedule can have; [`Error::BadOption`] (E0406) for
    /// options that no run can have.
    pub fn new(nranks: u32, options: Options) -> Result<Arc<Self>, Error> {
        options.check()?;
        if nranks == 0 || nranks > RANK_LIMIT {
            return Err(Error::NoRanks { nranks });
        }
        let cores = std::thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let zero = |_| AtomicU64::new(0);
        let seat = |_| Seat {
            made: Padded(std::array::from_fn(zero)),
            own: Padded(OwnWords {
                numbers: Mutex::new(CallNumbers::default()),
                number: AtomicU64::new(0),
                inside: AtomicU64::new(0),
            }),
            wakeup: Padded(Wakeup::new()),
        };
        Ok(Arc::new(Self {
            ranks: (0..nranks).map(seat).collect(),
            end: Padded(CallsEnd {
                failed: AtomicBool::new(false),
                refused: AtomicU64::new(0),
                void: std::array::from_fn(zero),
            }),
            record: Mutex::new(Record::default()),
            deadline: options.deadline,
            spins: nranks <= cores,
            stride: stride(nranks as usize),
        }))
    }

    /// Returns the number of ranks.
    pub fn nranks(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// Reserves a number for calls of one shape, which messages call `name`.
    pub(super) fn add_shape(&self, name: String) -> Result<u32, Error> {
        lock(&self.record).shapes.add(name)
    }

    pub(super) fn remove_shape(&self, shape: u32) {
        lock(&self.record).shapes.remove(shape);
    }

    /// Whether another rank has made a call of this shape that a slower rank may still come to. Right only while no
    /// rank makes a call of this shape.
    pub(super) fn awaits(&self, shape: u32) -> bool {
        let slowest = self.slowest().1;
        let made = |number| {
            self.ranks.iter().any(|seat| seat.shape(number, Ordering::Relaxed) == Some(shape))
        };
        (slowest..=slowest + WINDOW).any(made)
    }

    /// Returns the rank that made the fewest calls, and their number.
    fn slowest(&self) -> (RankId, u64) {
        let numbers = self.ranks.iter().map(|seat| seat.own.0.number.load(Ordering::Acquire));
        let least = (0..).map(RankId).zip(numbers).min_by_key(|(_, number)| *number);
        least.expect("there is a rank")
    }

    fn seat(&self, rank: RankId) -> &Seat {
        &self.ranks[rank.index()]
    }

    /// Returns all other ranks, in another order for each rank, so that no rank is the first for all. Ranks often come
    /// in the order of their numbers: a rank that waited for them in this order would be woken by each.
    fn others(&self, rank: RankId) -> impl Iterator<Item = RankId> + '_ {
        let n = self.ranks.len();
        (1..n).map(move |d| RankId(((rank.index() + d * self.stride) % n) as u32))
    }

    /// Returns the calls as a rank sees them.
    pub(super) fn seen_by(&self, rank: RankId) -> SeenBy<'_> {
        SeenBy { calls: self, rank }
    }

    /// Makes the rank's next call, of shape `shape`, as soon as all ranks in `needs` have made a call of the same
    /// shape; `place` sets the addresses of the rank's buffers.
    pub(super) fn enter(
        &self,
        rank: RankId,
        shape: u32,
        needs: &Needs,
        place: impl FnOnce(),
    ) -> Result<ActiveCall<'_>, Error> {
        let numbers = match self.seat(rank).own.0.numbers.try_lock() {
            Ok(numbers) => numbers,
            Err(TryLockError::WouldBlock) => return Err(Error::RankBusy { rank }),
            // A panic in a call has ended all calls.
            Err(TryLockError::Poisoned(numbers)) => numbers.into_inner(),
        };
        let number = numbers.made + 1;
        // Its drop leaves the call on a panic, too.
        let mut active =
            ActiveCall { calls: self, rank, number, stage: Cell::new(Stage::Outside), numbers };
        let entered = active.make_room().and_then(|()| {
            place();
            active.numbers.made = number;
            self.publish(rank, number, shape);
            active.stage.set(Stage::Inside);
            match needs {
                Needs::All => {
                    let mut others = self.others(rank);
                    others.try_for_each(|other| self.meet(rank, number, shape, other))
                }
                Needs::Some(needs) => {
                    needs.iter().try_for_each(|other| self.meet(rank, number, shape, *other))
                }
            }?;
            // After the fence of `publish`: a rank that ends this call sees this rank inside, or this rank sees the
            // end.
            self.seen_by(rank).goes_on(number)
        });
        match entered {
            Ok(()) => Ok(active),
            Err(error) => Err(active.end(Err(error)).expect_err("an error stays an error")),
        }
    }

    fn publish(&self, rank: RankId, number: u64, shape: u32) {
        let seat = self.seat(rank);
        // Release: the rank has read other ranks' words of earlier calls before.
        seat.own.0.number.store(number, Ordering::Release);
        seat.own.0.inside.store(number, Ordering::Relaxed);
        // Release: the addresses of its buffers are set, and its caller has written the buffers.
        seat.made.0[slot(number)].store(word(number, u64::from(shape)), Ordering::Release);
        // Pairs with the fences of ranks that fall asleep, and of ranks that end this call.
        fence(Ordering::SeqCst);
        for other in self.others(rank) {
            self.seat(other).wakeup.0.called(rank);
        }
    }

    /// Waits until `other` has made this call, and compares its shape with `mine`.
    fn meet(&self, rank: RankId, number: u64, mine: u32, other: RankId) -> Result<(), Error> {
        // Acquire: the buffers of `other` are lent from here on.
        let theirs = || self.seat(other).shape(number, Ordering::Acquire);
        let ends = || self.seen_by(rank).ends(number);
        loop {
            match theirs() {
                Some(theirs) if theirs == mine => return Ok(()),
                Some(theirs) => {
                    return Err(self.refuse(rank, number, [(rank, mine), (other, theirs)]));
                }
                None => self.wait_for_call(rank, number, other, || theirs().is_some(), ends)?,
            }
            self.seen_by(rank).goes_on(number)?;
        }
    }

    /// Waits in call `number` until `ready()`, which rank `other` brings about as it makes a call, or `ends()`.
    fn wait_for_call(
        &self,
        rank: RankId,
        number: u64,
        other: RankId,
        ready: impl Fn() -> bool,
        ends: impl Fn() -> bool,
    ) -> Result<(), Error> {
        if self.listen_for(rank, Some(other), || ready() || ends()) || ready() {
            return Ok(());
        }
        Err(self.give_up(rank, || self.missing(rank, number)))
    }

    /// Waits until `ready()` is true, which other ranks bring about within this call, or until the deadline; returns
    /// whether it is.
    pub(super) fn listen(&self, rank: RankId, ready: impl Fn() -> bool) -> bool {
        self.listen_for(rank, None, ready)
    }

    /// Waits as [`Self::listen`] does, where a call of the rank `awaited` may bring it about, too.
    fn listen_for(&self, rank: RankId, awaited: Option<RankId>, ready: impl Fn() -> bool) -> bool {
        self.seat(rank).wakeup.0.wait(ready, awaited, self.spins, self.deadline)
    }

    /// Wakes this rank's thread, after a change that it may wait for, and a fence.
    pub(super) fn wake(&self, rank: RankId) {
        self.seat(rank).wakeup.0.wake();
    }

    /// Makes a call void for all ranks. The first rank that finds the difference records it.
    fn refuse(&self, rank: RankId, number: u64, mut found: [(RankId, u32); 2]) -> Error {
        found.sort_by_key(|(rank, _)| *rank);
        let mut record = lock(&self.record);
        if let Some(differ) = record.differ(number) {
            return Error::CallsDiffer(Box::new(differ.clone()));
        }
        let calls = found.map(|(_, shape)| record.shapes.name(shape));
        let ranks = found.map(|(rank, _)| rank);
        let differ = Differ { number, ranks, calls, reason: None, late: None };
        record.refuse(differ.clone());
        self.end.0.void[void(number)].store(number, Ordering::Relaxed);
        self.end.0.refused.fetch_add(1, Ordering::Release);
        drop(record);
        self.wake_all(rank);
        Error::CallsDiffer(Box::new(differ))
    }

    /// Ends all calls with the error of `why`. If another rank has ended them before, the error that is returned blames
    /// that rank.
    pub(super) fn give_up(&self, rank: RankId, why: impl FnOnce() -> Error) -> Error {
        // Not under the lock: `why` may read the record.
        let error = why();
        let first = {
            let mut record = lock(&self.record);
            let first = record.cause.is_none();
            record.cause.get_or_insert_with(|| (rank, error.text()));
            first
        };
        self.end.0.failed.store(true, Ordering::Relaxed);
        self.wake_all(rank);
        if first { error } else { self.seen_by(rank).intact().err().unwrap_or(error) }
    }

    /// Wakes all other ranks, after one call or all calls ended.
    fn wake_all(&self, rank: RankId) {
        // Pairs with the fences of ranks that fall asleep.
        fence(Ordering::SeqCst);
        for other in self.others(rank) {
            self.wake(other);
        }
    }

    /// Returns the error for a wait in call `number` that came to its deadline, if a rank has made fewer calls and so
    /// is to blame.
    pub(super) fn late(&self, rank: RankId, number: u64) -> Option<Error> {
        (self.slowest().1 < number).then(|| self.missing(rank, number))
    }

    /// Returns the error of rank `rank`, which waits in call `number`, or before it, for ranks of which the slowest is
    /// to blame.
    fn missing(&self, rank: RankId, number: u64) -> Error {
        let slowest = self.slowest().0.index();
        self.seen_by(rank).missing((number, None), slowest, (self.deadline, None))
    }
}

impl Drop for Calls {
    /// Reports the void calls from which a rank had returned, if that rank made no call after them.
    fn drop(&mut self) {
        for rank in (0..self.nranks()).map(RankId) {
            let mut numbers = lock(&self.seat(rank).own.0.numbers);
            while let Err(Error::CallsDiffer(mut differ)) = numbers.hear(&self.seen_by(rank)) {
                // There is no next call in whose place it comes.
                differ.late = None;
                eprintln!(
                    "roundelay: rank {rank} returned from a call that was void: {differ} [E0414]"
                );
            }
        }
    }
}
