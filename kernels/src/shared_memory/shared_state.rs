//! What ranks say of themselves in shared memory, each in lines of its own: which call they are in, how many tiles of
//! it are staged, how many they are done with, and where they stand.
//!
//! A word of another rank is read once and then looked at: what it says is checked wherever it is used as a place.

use roundelay_core::collective::Collective;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;

use super::arena::Arena;
use super::futex::{self, Half};
use crate::lowered::call_name;
use crate::sync::{AtomicU64, Ordering, fence};

/// Bits of a word that count tiles; the others are the number of the call.
const TILES: u32 = 24;

/// The most tiles of a call.
pub(super) const MOST_TILES: u64 = (1 << TILES) - 1;

/// A rank's call, as the others read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallHeader {
    /// Of the schedule and the options: ranks that run other schedules do not fit.
    pub(super) identity: u64,
    /// Elements a unit.
    pub(super) count: u64,
    /// Collective, root, dtype and op.
    shape: u64,
    /// Where the buffers lie, where other ranks can touch them.
    pub(super) direct: Option<[u64; 2]>,
    /// Which of its slots the first tile is in.
    pub(super) slot: u64,
    /// Where the input lies in the rank's own memory, if it is to be read there; else 0.
    pub(super) lent: u64,
}

impl CallHeader {
    pub(super) fn new(
        identity: u64,
        (collective, root): (Collective, RankId),
        (count, dtype, op): (u64, DType, ReduceOp),
    ) -> Self {
        let place = |found: Option<usize>| found.expect("it is in the list of all") as u64;
        let collective = place(Collective::ALL.iter().position(|c| *c == collective));
        let dtype = place(DType::ALL.iter().position(|d| *d == dtype));
        let op = place(ReduceOp::ALL.iter().position(|o| *o == op));
        let shape = u64::from(root.0) << 32 | collective << 16 | dtype << 8 | op;
        Self::of_words([identity, count, shape])
    }

    /// Whether both are the same call.
    pub(super) fn is(&self, other: &Self) -> bool {
        (self.identity, self.count, self.shape) == (other.identity, other.count, other.shape)
    }

    /// The call in words; `None` where no rank makes such a call.
    pub(super) fn name(&self) -> Option<String> {
        let byte = |at: u32| (self.shape >> at) as u8 as usize;
        let collective = *Collective::ALL.get(byte(16))?;
        let (dtype, op) = (*DType::ALL.get(byte(8))?, *ReduceOp::ALL.get(byte(0))?);
        let root = RankId((self.shape >> 32) as u32);
        Some(call_name((collective, root), (self.count, dtype, op)))
    }

    /// What tells it from other calls, as it is kept of a refused one.
    pub(super) fn words(&self) -> [u64; 3] {
        [self.identity, self.count, self.shape]
    }

    pub(super) fn of_words([identity, count, shape]: [u64; 3]) -> Self {
        Self { identity, count, shape, direct: None, slot: 0, lent: 0 }
    }
}

/// Lines of a rank that are not about one call: those of calls. Lines 3 to 5 are for shrinking, 6 for the launch.
#[derive(Clone, Copy)]
enum RankLine {
    Done = 0,
    Bell = 1,
    Place = 2,
}

/// What became of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Here,
    Left,
    Panicked,
}

/// Where a rank stands in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CallPosition {
    pub(super) step: u32,
    /// The statements of the schedule that it runs, counted from 1; 0 where the call has only begun.
    pub(super) at: u32,
}

/// The shared words of a world.
pub(super) struct SharedState {
    pub(super) arena: Arena,
    /// Whether this process's threads meet the barriers of those that fall asleep in other processes.
    registered: bool,
}

/// Threads that sleep: in the arena's first page.
const SLEEPERS: usize = 128;
/// Processes that can make no barrier for others. In the same line, as both are read together.
const ALONE: usize = SLEEPERS + 4;

impl SharedState {
    pub(super) fn new(arena: Arena) -> Self {
        let registered = futex::register();
        if !registered {
            arena.half(ALONE).fetch_add(1, Ordering::SeqCst);
        }
        Self { arena, registered }
    }

    pub(super) fn nranks(&self) -> usize {
        self.arena.layout.nranks
    }

    fn own(&self, rank: usize, line: RankLine, word: usize) -> &AtomicU64 {
        self.arena.word(self.arena.layout.own(rank, line as usize) + 8 * word)
    }

    fn call(&self, rank: usize, number: u64, word: usize) -> &AtomicU64 {
        self.arena.word(self.arena.layout.call(rank, number) + 8 * word)
    }

    /// Makes a call of this process's rank known, with so many tiles staged.
    pub(super) fn publish(&self, rank: usize, number: u64, header: &CallHeader, staged: u64) {
        let [identity, count, shape] = header.words();
        let (direct, places) = (header.direct.is_some(), header.direct.unwrap_or_default());
        let place = header.slot << 1 | u64::from(direct);
        let words = [identity, count, shape, place, places[0], places[1], header.lent];
        for (at, word) in (1..).zip(words) {
            self.call(rank, number, at).store(word, Ordering::Relaxed);
        }
        self.own(rank, RankLine::Done, 1).store(number, Ordering::Relaxed);
        self.stage(rank, number, staged);
    }

    /// Says that so many tiles of the call are staged.
    pub(super) fn stage(&self, rank: usize, number: u64, staged: u64) {
        // Release: the tiles are there, and what the call is.
        self.call(rank, number, 0).store(number << TILES | staged, Ordering::Release);
        self.ring(rank);
    }

    /// How many tiles of that call a rank has staged; `None` before it has made it.
    pub(super) fn staged(&self, rank: usize, number: u64) -> Option<u64> {
        let word = self.call(rank, number, 0).load(Ordering::Acquire);
        (word >> TILES == number).then_some(word & MOST_TILES)
    }

    /// A rank's call of that number, which [`Self::staged`] has found made.
    pub(super) fn header(&self, rank: usize, number: u64) -> CallHeader {
        let word = |at| self.call(rank, number, at).load(Ordering::Relaxed);
        let (place, places) = (word(4), [word(5), word(6)]);
        let direct = (place & 1 == 1).then_some(places);
        CallHeader {
            direct,
            slot: place >> 1,
            lent: word(7),
            ..CallHeader::of_words([word(1), word(2), word(3)])
        }
    }

    /// The number of calls that a rank has made.
    pub(super) fn number(&self, rank: usize) -> u64 {
        self.own(rank, RankLine::Done, 1).load(Ordering::Acquire)
    }

    /// Says that this process's rank is done with so many tiles of a call, and with all calls before.
    pub(super) fn finish(&self, rank: usize, number: u64, tiles: u64) {
        // Release: what it read of others' tiles, it has read.
        self.own(rank, RankLine::Done, 0).store(number << TILES | tiles, Ordering::Release);
        self.ring(rank);
    }

    /// Whether a rank is done with that many tiles of a call.
    pub(super) fn finished(&self, rank: usize, number: u64, tiles: u64) -> bool {
        self.own(rank, RankLine::Done, 0).load(Ordering::Acquire) >= number << TILES | tiles
    }

    pub(super) fn standing(&self, rank: usize) -> Standing {
        match self.own(rank, RankLine::Done, 2).load(Ordering::Acquire) {
            1 => Standing::Left,
            2 => Standing::Panicked,
            _ => Standing::Here,
        }
    }

    /// Says that this process's rank makes no more calls.
    pub(super) fn leave(&self, rank: usize, panicked: bool) {
        self.own(rank, RankLine::Done, 2).store(1 + u64::from(panicked), Ordering::Release);
        self.wake_all();
    }

    /// Notes where this process's rank stands, for whoever has to tell of its end.
    pub(super) fn stand(&self, rank: usize, place: CallPosition) {
        let word = u64::from(place.at) << 32 | u64::from(place.step);
        self.own(rank, RankLine::Place, 0).store(word, Ordering::Relaxed);
    }

    pub(super) fn place(&self, rank: usize) -> CallPosition {
        let word = self.own(rank, RankLine::Place, 0).load(Ordering::Relaxed);
        CallPosition { step: word as u32, at: (word >> 32) as u32 }
    }

    /// Notes for whom this process's rank waits.
    pub(super) fn waits_for(&self, rank: usize, other: Option<usize>) {
        let word = other.map_or(0, |other| other as u64 + 1);
        self.own(rank, RankLine::Place, 1).store(word, Ordering::Relaxed);
    }

    /// The rank that is behind a wait for `rank`: on from a rank that waits to the one that it waits for, as long as that
    /// waits, too.
    pub(super) fn behind(&self, mut rank: usize) -> usize {
        for _ in 0..self.nranks() {
            let word = self.own(rank, RankLine::Place, 1).load(Ordering::Relaxed) as usize;
            match word.checked_sub(1).filter(|next| *next < self.nranks()) {
                Some(next) => rank = next,
                None => break,
            }
        }
        rank
    }

    /// The ranks that wait for that one.
    pub(super) fn waiting_for(&self, rank: usize) -> Vec<RankId> {
        let waits = |other: &u32| {
            self.own(*other as usize, RankLine::Place, 1).load(Ordering::Relaxed) == rank as u64 + 1
        };
        (0..self.nranks() as u32).filter(waits).map(RankId).collect()
    }

    fn bell(&self, rank: usize) -> &Half {
        self.arena.half(self.arena.layout.own(rank, RankLine::Bell as usize))
    }

    fn asleep(&self, rank: usize) -> &Half {
        self.arena.half(self.arena.layout.own(rank, RankLine::Bell as usize) + 4)
    }

    fn sleepers(&self) -> &Half {
        self.arena.half(SLEEPERS)
    }

    /// After something changed that others may wait for.
    pub(super) fn ring(&self, rank: usize) {
        if self.any_sleeps() {
            self.wake_others(rank);
        }
    }

    /// Whether any thread sleeps, as seen after what changed: either it is seen here, or it sees what changed.
    ///
    /// Whoever falls asleep has the system make a barrier in all processes that are registered, as calls ring often and
    /// hardly ever sleep. Where that is refused to any of them, all make their own. One that has just joined may not
    /// have said so yet: a sleep ends by itself, too.
    fn any_sleeps(&self) -> bool {
        if self.registered && self.arena.half(ALONE).load(Ordering::Relaxed) == 0 {
            std::sync::atomic::compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
        self.sleepers().load(Ordering::Relaxed) != 0
    }

    #[cold]
    fn wake_others(&self, rank: usize) {
        for other in (0..self.nranks()).filter(|other| *other != rank) {
            self.wake(other);
        }
    }

    /// After something changed that one rank may wait for, which may be this one's own by another thread.
    pub(super) fn ring_for(&self, rank: usize) {
        if self.any_sleeps() {
            self.wake(rank);
        }
    }

    /// Wakes all threads of a rank that sleep: one may be in a call, and others wait for messages.
    fn wake(&self, rank: usize) {
        if self.asleep(rank).load(Ordering::Relaxed) != 0 {
            self.bell(rank).fetch_add(1, Ordering::Relaxed);
            futex::wake(self.bell(rank));
        }
    }

    /// Wakes all that sleep.
    pub(super) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        self.wake_others(usize::MAX);
    }

    /// Sleeps unless `ready()`, until somebody rings or after so many nanoseconds.
    pub(super) fn sleep(&self, rank: usize, nanoseconds: i64, mut ready: impl FnMut() -> bool) {
        let heard = self.bell(rank).load(Ordering::Relaxed);
        self.asleep(rank).fetch_add(1, Ordering::Relaxed);
        self.sleepers().fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // Refused where processes do not register either: then they make their own, as above.
        futex::barrier();
        if !ready() {
            futex::wait(self.bell(rank), heard, nanoseconds);
        }
        self.asleep(rank).fetch_sub(1, Ordering::Relaxed);
        self.sleepers().fetch_sub(1, Ordering::Relaxed);
    }
}
