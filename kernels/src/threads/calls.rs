//! The calls of ranks that call by themselves: the call that each rank is in, the check that all ranks are in the same
//! call, and the events that end calls for all ranks.
//!
//! Each rank numbers its calls from 1. Before a rank posts anything it publishes its call, number and shape in one word
//! of a cache line of its own; before it takes a signal, moves or reduces anything, it reads the words of all ranks
//! that it will wait for or whose buffers it will touch. Where two ranks have different shapes at one number, the call
//! is *refused*: that number is void for all ranks, each rank is told once, and the next numbers work as before. Any
//! other fault, such as a missed deadline, is a *failure*: it ends all calls, now and later.
//!
//! A rank that leaves a call early first announces it, then waits until no rank is left inside that could still touch
//! its buffers. Entering and leaving are as in Dekker's algorithm: a store, a fence, a look at the other rank's store.

mod active_call;
#[cfg(test)]
mod tests;

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use roundelay_core::ids::RankId;
use roundelay_core::schedule::RANK_LIMIT;

use super::needs::Needs;
use super::record::{Record, Refusal, SHAPE_BITS, SHAPES};
use super::wakeup::{Awaited, Wakeup};
use crate::error::{Differ, Error, Missing};
use crate::options::Options;
use crate::sync::{AtomicBool, AtomicU64, MODELLED, Mutex, Ordering, Padded, fence, lock};
pub(super) use active_call::ActiveCall;
use active_call::Stage;

/// The number of a rank's last calls that other ranks can still read: a rank gets no further ahead of the slowest rank
/// than this. It is small in a model, so that a few calls wrap around it.
const WINDOW: usize = if MODELLED { 2 } else { 8 };

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
    /// The rank's calls, by number modulo [`WINDOW`]. Other ranks read them; only the rank's thread writes them.
    made: Padded<[AtomicU64; WINDOW]>,
    own: Padded<LocalState>,
    wakeup: Padded<Wakeup>,
}

struct LocalState {
    /// Whether a call of this rank is under way.
    taken: AtomicBool,
    /// The number of calls that the rank has made.
    number: AtomicU64,
    /// The call in which the rank may touch buffers of other ranks, or 0.
    inside: AtomicU64,
    /// The last call for which there is room without another look at the other ranks.
    room: AtomicU64,
    /// The number of refusals that the rank has looked through.
    heard: AtomicU64,
}

/// The marks that end calls early. They are read at every tile and wait, and hardly ever written.
struct CallsEnd {
    /// Whether there was a failure.
    failed: AtomicBool,
    /// The number of refused calls.
    refused: AtomicU64,
    /// The numbers of the refused calls in the window.
    void: [AtomicU64; WINDOW],
}

/// Returns the published word of a call: its shape, and above it the number's low bits. A number comes again after 2^40
/// calls, and a word is overwritten after [`WINDOW`] calls.
fn word(number: u64, shape: u32) -> u64 {
    number << SHAPE_BITS | u64::from(shape)
}

/// Returns the shape in a word, if the word is of call `number`.
fn shape(word: u64, number: u64) -> Option<u32> {
    let shape = word & (SHAPES as u64 - 1);
    (word == number << SHAPE_BITS | shape).then_some(shape as u32)
}

fn slot(number: u64) -> usize {
    number as usize % WINDOW
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
            own: Padded(LocalState {
                taken: AtomicBool::new(false),
                number: AtomicU64::new(0),
                inside: AtomicU64::new(0),
                room: AtomicU64::new(0),
                heard: AtomicU64::new(0),
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
        let numbers = (slowest..).take(WINDOW + 1);
        let made = |number| {
            self.ranks.iter().any(|seat| {
                seat.made.0[slot(number)].load(Ordering::Relaxed) == word(number, shape)
            })
        };
        numbers.into_iter().any(made)
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

    /// Makes the rank's next call, of shape `shape`, as soon as all ranks in `needs` have made a call of the same
    /// shape; `place` sets the addresses of the rank's buffers.
    pub(super) fn enter(
        &self,
        rank: RankId,
        shape: u32,
        needs: &Needs,
        place: impl FnOnce(),
    ) -> Result<ActiveCall<'_>, Error> {
        let own = &self.seat(rank).own.0;
        if own.taken.swap(true, Ordering::Acquire) {
            return Err(Error::RankBusy { rank });
        }
        let number = own.number.load(Ordering::Relaxed) + 1;
        // Its drop leaves the call on a panic, too.
        let active = ActiveCall { calls: self, rank, number, stage: Cell::new(Stage::Outside) };
        let entered = self.may_call(rank, number).and_then(|()| {
            place();
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
            self.goes_on(rank, number)
        });
        match entered {
            Ok(()) => Ok(active),
            Err(error) => Err(active.end(Err(error)).expect_err("an error stays an error")),
        }
    }

    /// Checks that no call failed and that the rank has been told of all refusals, and waits for room for its next
    /// call.
    fn may_call(&self, rank: RankId, number: u64) -> Result<(), Error> {
        let own = &self.seat(rank).own.0;
        if self.end.0.failed.load(Ordering::Relaxed) {
            return Err(self.abandoned(rank));
        }
        if self.end.0.refused.load(Ordering::Acquire) != own.heard.load(Ordering::Relaxed) {
            let mut record = lock(&self.record);
            if let Some(late) = record.tell_late(rank, number) {
                return Err(Error::CallsDiffer(late));
            }
            if !record.keeps_for(rank) {
                own.heard.store(self.end.0.refused.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
        if number > own.room.load(Ordering::Relaxed) {
            self.make_room(rank, number)?;
        }
        Ok(())
    }

    /// Waits until no rank reads the word any more that this call's word overwrites.
    fn make_room(&self, rank: RankId, number: u64) -> Result<(), Error> {
        let window = WINDOW as u64;
        let slowest = || {
            let others = self.others(rank);
            let numbers = others.map(|other| self.seat(other).own.0.number.load(Ordering::Acquire));
            numbers.min().unwrap_or(u64::MAX - window)
        };
        let failed = || self.end.0.failed.load(Ordering::Relaxed);
        // A rank in a call is done with the words of the call before.
        let ready = || failed() || slowest() + window > number;
        let met = ready() || self.listen_for(rank, Awaited::Any, ready);
        if failed() {
            return Err(self.abandoned(rank));
        }
        if !met {
            return Err(self.give_up(rank, || self.missing(rank, number)));
        }
        self.seat(rank).own.0.room.store(slowest() + window - 1, Ordering::Relaxed);
        Ok(())
    }

    fn publish(&self, rank: RankId, number: u64, shape: u32) {
        let seat = self.seat(rank);
        // Release: the rank has read other ranks' words of earlier calls before.
        seat.own.0.number.store(number, Ordering::Release);
        seat.own.0.inside.store(number, Ordering::Relaxed);
        // Release: the addresses of its buffers are set, and its caller has written the buffers.
        seat.made.0[slot(number)].store(word(number, shape), Ordering::Release);
        // Pairs with the fences of ranks that fall asleep, and of ranks that end this call.
        fence(Ordering::SeqCst);
        for other in self.others(rank) {
            self.seat(other).wakeup.0.called(rank);
        }
    }

    /// Waits until `other` has made this call, and compares its shape with `mine`.
    fn meet(&self, rank: RankId, number: u64, mine: u32, other: RankId) -> Result<(), Error> {
        let made = &self.seat(other).made.0[slot(number)];
        // Acquire: the buffers of `other` are lent from here on.
        let theirs = || shape(made.load(Ordering::Acquire), number);
        loop {
            match theirs() {
                Some(theirs) if theirs == mine => return Ok(()),
                Some(theirs) => {
                    return Err(self.refuse(rank, number, [(rank, mine), (other, theirs)]));
                }
                None => {}
            }
            let ready = || theirs().is_some() || self.ends(number);
            let met = self.listen_for(rank, Awaited::One(other), ready);
            self.goes_on(rank, number)?;
            if !met && theirs().is_none() {
                return Err(self.give_up(rank, || self.missing(rank, number)));
            }
        }
    }

    /// Waits until `ready()` is true, which other ranks bring about within this call, or until the deadline; returns
    /// whether it is.
    pub(super) fn listen(&self, rank: RankId, ready: impl Fn() -> bool) -> bool {
        self.listen_for(rank, Awaited::Nobody, ready)
    }

    /// Waits as [`Self::listen`] does, where calls of the ranks `awaited` may bring it about, too.
    fn listen_for(&self, rank: RankId, awaited: Awaited, ready: impl Fn() -> bool) -> bool {
        self.seat(rank).wakeup.0.wait(ready, awaited, self.spins, self.deadline)
    }

    /// Wakes this rank's thread, after a change that it may wait for, and a fence.
    pub(super) fn wake(&self, rank: RankId) {
        self.seat(rank).wakeup.0.wake();
    }

    /// Whether call `number` ends early.
    pub(super) fn ends(&self, number: u64) -> bool {
        let CallsEnd { failed, void, .. } = &self.end.0;
        failed.load(Ordering::Relaxed) || void[slot(number)].load(Ordering::Relaxed) == number
    }

    /// Returns the error for which call `number` ends early, if it does.
    pub(super) fn goes_on(&self, rank: RankId, number: u64) -> Result<(), Error> {
        if !self.ends(number) {
            return Ok(());
        }
        let told = lock(&self.record).tell(rank, number);
        Err(told.map_or_else(|| self.abandoned(rank), Error::CallsDiffer))
    }

    /// Makes a call void for all ranks. The first rank that finds the difference records it.
    fn refuse(&self, rank: RankId, number: u64, found: [(RankId, u32); 2]) -> Error {
        let mut record = lock(&self.record);
        if let Some(told) = record.tell(rank, number) {
            return Error::CallsDiffer(told);
        }
        let mut found = found.map(|(rank, shape)| (rank, record.shapes.name(shape)));
        found.sort_by_key(|(rank, _)| *rank);
        let [(first, mine), (second, theirs)] = found;
        let (ranks, calls) = ([first, second], [mine, theirs]);
        let differ = Differ { number, ranks, calls, reason: None, late: None };
        record.refuse(Refusal::new(differ.clone(), self.nranks(), rank));
        self.end.0.void[slot(number)].store(number, Ordering::Relaxed);
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
        if first { error } else { self.abandoned(rank) }
    }

    /// Wakes all other ranks, after one call or all calls ended.
    fn wake_all(&self, rank: RankId) {
        // Pairs with the fences of ranks that fall asleep.
        fence(Ordering::SeqCst);
        for other in self.others(rank) {
            self.wake(other);
        }
    }

    /// Returns the error of a rank after another rank gave up.
    fn abandoned(&self, rank: RankId) -> Error {
        let cause = lock(&self.record).cause.clone();
        let (by, why) = cause.unwrap_or_else(|| (rank, "it gave up".to_owned()));
        Error::Abandoned { rank, by, why }
    }

    /// Returns the error for a wait in call `number` that came to its deadline, if a rank has made fewer calls and so
    /// is to blame.
    pub(super) fn late(&self, rank: RankId, number: u64) -> Option<Error> {
        (self.slowest().1 < number).then(|| self.missing(rank, number))
    }

    /// Returns the error of rank `rank`, which waits in call `number`, or before it, for ranks of which the slowest is
    /// to blame.
    fn missing(&self, rank: RankId, number: u64) -> Error {
        let (missing, made) = self.slowest();
        // The slowest rank may have made the call just now.
        let made = made.min(number - 1);
        let record = lock(&self.record);
        let name = |of: RankId, number: u64| {
            let word = self.seat(of).made.0[slot(number)].load(Ordering::Relaxed);
            Some(record.shapes.name(shape(word, number)?))
        };
        let mut others = (0..self.nranks()).map(RankId);
        let call = others.find_map(|other| name(other, made + 1));
        let busy = self.seat(missing).own.0.inside.load(Ordering::Relaxed) == made && made != 0;
        let last = (made != 0).then(|| (made, name(missing, made).unwrap_or_default()));
        let after = self.deadline;
        let waits_in = number;
        let call = call.unwrap_or_default();
        Error::Missing(Box::new(Missing {
            rank,
            waits_in,
            missing,
            number: made + 1,
            call,
            last,
            busy,
            after,
            circle: None,
        }))
    }
}

impl Drop for Calls {
    /// Reports the void calls from which a rank had returned, if that rank made no call after them.
    fn drop(&mut self) {
        for (rank, differ) in lock(&self.record).untold() {
            eprintln!(
                "roundelay: rank {rank} returned from a call that was void: {differ} [E0414]"
            );
        }
    }
}
