//! The words that each rank publishes in shared memory, in lines of its own: its current call, the number of its staged
//! tiles, the number of tiles that it is done with, and its position in the schedule.
//!
//! A rank reads a word of another rank once, and checks the value wherever the value serves as a position.

use roundelay_core::collective::Collective;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::RankId;

use super::arena::Arena;
use super::words::{self, Half};
use crate::call_numbers::{LOW, low, word};
use crate::lowering::{call_name, check_name};
use crate::sync::{AtomicU64, MODELLED, Ordering, fence};

/// The most tiles of a call: the low bits of a word count them, and the other bits hold the number of the call.
pub(crate) const MOST_TILES: u64 = (1 << LOW) - 1;

/// The bit of a header's shape for a count for each block.
const BLOCKS: u64 = 1 << 24;

/// The bit of a header's shape for a call that is a check.
const CHECK: u64 = 1 << 25;

/// The first of the bits of a header's shape for the way of the call's data.
const WAY: u32 = 26;

/// The collective and the root of a call, and its count, dtype and op. A call with a count for each block has no one count.
pub type CallShape = ((Collective, RankId), (Option<u64>, DType, ReduceOp));

/// The description of a rank's call that other ranks read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallHeader {
    /// A hash of the schedule and the options: ranks with different identities run different schedules.
    pub(crate) identity: u64,
    /// Elements per unit.
    pub(crate) count: u64,
    /// Collective, root, dtype and op.
    shape: u64,
    /// The positions of the input and the output in the arena, if other ranks can access both there.
    pub(crate) direct: Option<[u64; 2]>,
    /// The number of the rank's slot that holds the first tile; where each rank makes a share of inputs that no rank stages,
    /// the address of the input.
    pub(crate) slot: u64,
    /// The address of the input in the rank's own memory, if other ranks are to read it there; of the output, where each
    /// rank makes a share and other ranks are to read that there; else 0.
    pub(crate) lent: u64,
}

impl CallHeader {
    pub(crate) fn new(
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

    /// Makes the header of a call with a count for each block, of which `digest` is one where every rank knows all.
    pub(crate) fn of_blocks(
        identity: u64,
        call: (Collective, RankId),
        (digest, dtype, op): (u64, DType, ReduceOp),
    ) -> Self {
        let header = Self::new(identity, call, (digest, dtype, op));
        Self { shape: header.shape | BLOCKS, ..header }
    }

    /// Says which way the data goes, by a number below 64: ranks on ways that differ must not read each other's tiles.
    pub(crate) fn on_way(self, layout: u64) -> Self {
        Self { shape: self.shape | layout << WAY, ..self }
    }

    /// Makes the call a check, if it is one: then it is another call.
    pub(crate) fn checks(self, check: bool) -> Self {
        Self { shape: self.shape | if check { CHECK } else { 0 }, ..self }
    }

    /// Whether the call has a count for each block.
    pub(crate) fn has_blocks(&self) -> bool {
        self.shape & BLOCKS != 0
    }

    /// Whether the calls are the same but for their counts.
    pub(crate) fn differs_in_count_alone(&self, other: &Self) -> bool {
        (self.identity, self.shape) == (other.identity, other.shape)
    }

    /// Whether both headers describe the same call.
    pub(crate) fn is(&self, other: &Self) -> bool {
        (self.identity, self.count, self.shape) == (other.identity, other.count, other.shape)
    }

    /// Returns the collective of the call; `None` if the words describe no call.
    pub(crate) fn collective(&self) -> Option<Collective> {
        Collective::ALL.get((self.shape >> 16) as u8 as usize).copied()
    }

    /// Returns the shape of the call; `None` if the words describe no call.
    pub(crate) fn call(&self) -> Option<CallShape> {
        let byte = |at: u32| (self.shape >> at) as u8 as usize;
        let collective = self.collective()?;
        let (dtype, op) = (*DType::ALL.get(byte(8))?, *ReduceOp::ALL.get(byte(0))?);
        let root = RankId((self.shape >> 32) as u32);
        let count = (!self.has_blocks()).then_some(self.count);
        Some(((collective, root), (count, dtype, op)))
    }

    /// Returns the name of the call; `None` if the words describe no call.
    pub(crate) fn name(&self) -> Option<String> {
        let name = self.call().map(|(call, shape)| call_name(call, shape))?;
        Some(if self.shape & CHECK == 0 { name } else { check_name(&name) })
    }

    /// Returns the words that identify the call; the record of a refused call holds them.
    pub(crate) fn words(&self) -> [u64; 3] {
        [self.identity, self.count, self.shape]
    }

    pub(crate) fn of_words([identity, count, shape]: [u64; 3]) -> Self {
        Self { identity, count, shape, direct: None, slot: 0, lent: 0 }
    }
}

/// The lines of a rank's seat behind the lines of its calls. Lines 3 to 5 are for shrinking, line 6 is for the launch
/// and for reads of inputs in place.
#[derive(Clone, Copy)]
enum RankLine {
    Done = 0,
    Bell = 1,
    Place = 2,
    Process = 7,
}

/// Whether a rank is still in the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Here,
    Left,
    Panicked,
}

/// The position of a rank in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CallPosition {
    pub(crate) step: u32,
    /// The statements of the schedule at which the rank is, counted from 1; 0 at the beginning of the call.
    pub(crate) at: u32,
}

/// A long wait of a rank, for processes that look from outside and for the search for circles of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wait {
    /// The moment at which the wait began, in ticks.
    pub(crate) since: u64,
    /// The rank for which the rank waits, if it waits for one.
    pub(crate) on: Option<usize>,
    /// The number of the call in which the rank waits; 0 beside calls.
    pub(crate) number: u64,
    /// The number of the call that the awaited rank must make, without which the wait cannot end; 0 where the wait is
    /// for something else.
    pub(crate) needs: u64,
    /// Whether a function of the caller's runs meanwhile.
    pub(crate) progress: bool,
}

/// The words in the arena that the ranks of a world share.
pub(crate) struct SharedState {
    pub(crate) arena: Arena,
    /// Whether the threads of this process take part in the barriers that sleeping threads of other processes request.
    registered: bool,
}

/// The place of the number of sleeping threads, in the arena's first page.
const SLEEPERS: usize = 128;
/// The place of the number of processes that take no part in requested barriers. It lies in the line of `SLEEPERS`, as
/// both words are read together.
const ALONE: usize = SLEEPERS + 4;

impl SharedState {
    pub(crate) fn new(arena: Arena) -> Self {
        let registered = words::register();
        if !registered {
            arena.half(ALONE).fetch_add(1, Ordering::SeqCst);
        }
        Self { arena, registered }
    }

    /// Returns the words for a process that is no rank.
    pub(crate) fn of_observer(arena: Arena) -> Self {
        Self { arena, registered: false }
    }

    pub(crate) fn nranks(&self) -> usize {
        self.arena.layout.nranks
    }

    fn own(&self, rank: usize, line: RankLine, word: usize) -> &AtomicU64 {
        self.arena.word(self.arena.layout.own(rank, line as usize) + 8 * word)
    }

    fn call(&self, rank: usize, number: u64, word: usize) -> &AtomicU64 {
        self.arena.word(self.arena.layout.call(rank, number) + 8 * word)
    }

    /// Publishes call `number` of this process's rank, with `staged` tiles staged.
    pub(crate) fn publish(&self, rank: usize, number: u64, header: &CallHeader, staged: u64) {
        let [identity, count, shape] = header.words();
        let (direct, places) = (header.direct.is_some(), header.direct.unwrap_or_default());
        let place = header.slot << 1 | u64::from(direct);
        let words = [identity, count, shape, place, places[0], places[1], header.lent];
        for (at, word) in (1..).zip(words) {
            self.call(rank, number, at).store(word, Ordering::Relaxed);
        }
        // Release: a rank that may begin a later call because of this number sees all that this rank did before.
        self.own(rank, RankLine::Done, 1).store(number, Ordering::Release);
        self.stage(rank, number, staged);
    }

    /// Publishes that this process's rank has passed call `number`, which was refused before the rank published it.
    pub(crate) fn skip(&self, rank: usize, number: u64) {
        self.own(rank, RankLine::Done, 1).store(number, Ordering::Release);
        self.finish(rank, number, MOST_TILES);
    }

    /// Publishes that `staged` tiles of call `number` are staged.
    pub(crate) fn stage(&self, rank: usize, number: u64, staged: u64) {
        // Release: the staged tiles and the header are written before the count.
        self.call(rank, number, 0).store(word(number, staged), Ordering::Release);
        self.ring(rank);
    }

    /// Returns the number of tiles of call `number` that `rank` has staged; `None` before the rank has published that
    /// call.
    pub(crate) fn staged(&self, rank: usize, number: u64) -> Option<u64> {
        low(self.call(rank, number, 0).load(Ordering::Acquire), number)
    }

    /// Returns the header of call `number` of `rank`, which the rank has published according to [`Self::staged`].
    pub(crate) fn header(&self, rank: usize, number: u64) -> CallHeader {
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

    /// Returns the number of calls that a rank has published.
    pub(crate) fn number(&self, rank: usize) -> u64 {
        self.own(rank, RankLine::Done, 1).load(Ordering::Acquire)
    }

    /// Publishes that this process's rank is done with `tiles` tiles of call `number`, and with all earlier calls.
    pub(crate) fn finish(&self, rank: usize, number: u64, tiles: u64) {
        // Release: this rank's reads of other ranks' tiles come before this store.
        self.own(rank, RankLine::Done, 0).store(word(number, tiles), Ordering::Release);
        self.ring(rank);
    }

    /// Whether a rank is done with `tiles` tiles of call `number`.
    pub(crate) fn finished(&self, rank: usize, number: u64, tiles: u64) -> bool {
        self.own(rank, RankLine::Done, 0).load(Ordering::Acquire) >= word(number, tiles)
    }

    pub(crate) fn standing(&self, rank: usize) -> Standing {
        match self.own(rank, RankLine::Done, 2).load(Ordering::Acquire) {
            1 => Standing::Left,
            2 => Standing::Panicked,
            _ => Standing::Here,
        }
    }

    /// Publishes that this process's rank makes no more calls.
    pub(crate) fn leave(&self, rank: usize, panicked: bool) {
        self.own(rank, RankLine::Done, 2).store(1 + u64::from(panicked), Ordering::Release);
        self.wake_all();
    }

    /// Stores the position of this process's rank, for error messages of other ranks.
    pub(crate) fn stand(&self, rank: usize, place: CallPosition) {
        let word = u64::from(place.at) << 32 | u64::from(place.step);
        self.own(rank, RankLine::Place, 0).store(word, Ordering::Relaxed);
    }

    pub(crate) fn place(&self, rank: usize) -> CallPosition {
        let word = self.own(rank, RankLine::Place, 0).load(Ordering::Relaxed);
        CallPosition { step: word as u32, at: (word >> 32) as u32 }
    }

    /// Stores the wait of this process's rank, or that it does not wait any more.
    pub(crate) fn tell_wait(&self, rank: usize, wait: Option<&Wait>) {
        let word = wait.and_then(|wait| wait.on).map_or(0, |on| on as u64 + 1);
        self.own(rank, RankLine::Place, 1).store(word, Ordering::Relaxed);
        // In a model no process looks from outside.
        if !MODELLED {
            let words = wait.map_or([0; 4], |wait| {
                [wait.since, wait.number, wait.needs, u64::from(wait.progress)]
            });
            for (at, word) in (2..).zip(words) {
                self.own(rank, RankLine::Place, at).store(word, Ordering::Release);
            }
        }
    }

    /// Returns the wait of a rank, if it waits for long.
    pub(crate) fn told_wait(&self, rank: usize) -> Option<Wait> {
        let word = |at| self.own(rank, RankLine::Place, at).load(Ordering::Acquire);
        let since = word(2);
        let on = (word(1) as usize).checked_sub(1).filter(|on| *on < self.nranks());
        let wait = Wait { since, on, number: word(3), needs: word(4), progress: word(5) != 0 };
        (since != 0 && word(2) == since).then_some(wait)
    }

    /// Stores the process of this process's rank, and the name of the rank in messages.
    pub(crate) fn introduce(&self, rank: usize, pid: u32, name: RankId) {
        self.own(rank, RankLine::Process, 0).store(u64::from(pid), Ordering::Relaxed);
        self.own(rank, RankLine::Process, 1).store(u64::from(name.0), Ordering::Relaxed);
    }

    /// Returns the process of a rank, 0 where the rank has not stored it, and the name of the rank in messages.
    pub(crate) fn introduced(&self, rank: usize) -> (u32, RankId) {
        let word = |at| self.own(rank, RankLine::Process, at).load(Ordering::Relaxed) as u32;
        (word(0), RankId(word(1)))
    }

    /// Returns the last rank of the chain of waits that begins with `rank`: each rank of the chain waits for the next.
    pub(crate) fn behind(&self, mut rank: usize) -> usize {
        for _ in 0..self.nranks() {
            let word = self.own(rank, RankLine::Place, 1).load(Ordering::Relaxed) as usize;
            match word.checked_sub(1).filter(|next| *next < self.nranks()) {
                Some(next) => rank = next,
                None => break,
            }
        }
        rank
    }

    /// Returns the ranks that wait for `rank`.
    pub(crate) fn waiting_for(&self, rank: usize) -> Vec<RankId> {
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

    /// Wakes the sleeping threads of the other ranks, after a change for which these threads may wait.
    pub(crate) fn ring(&self, rank: usize) {
        if self.any_sleeps() {
            self.wake_others(rank);
        }
    }

    /// Whether any thread sleeps, read after a change: either this read sees the sleeper, or the sleeper sees the
    /// change.
    ///
    /// A thread that falls asleep has the system make a barrier in all registered processes, because calls ring often
    /// and hardly ever sleep. If any process is not registered, threads that ring make their own barriers. A process
    /// that has just joined may not have counted itself yet; its wake-up can be missed, but a sleep also ends by its
    /// timeout.
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

    /// Wakes the sleeping threads of `rank`, after a change for which they may wait. `rank` may be this process's rank,
    /// in another thread.
    pub(crate) fn ring_for(&self, rank: usize) {
        if self.any_sleeps() {
            self.wake(rank);
        }
    }

    /// Wakes all sleeping threads of a rank: one thread may be in a call while other threads wait for messages.
    fn wake(&self, rank: usize) {
        if self.asleep(rank).load(Ordering::Relaxed) != 0 {
            self.bell(rank).fetch_add(1, Ordering::Relaxed);
            words::wake(self.bell(rank));
        }
    }

    /// Wakes the sleeping threads of all ranks.
    pub(crate) fn wake_all(&self) {
        fence(Ordering::SeqCst);
        self.wake_others(usize::MAX);
    }

    /// Sleeps unless `ready()`, until another thread rings, for `nanoseconds` at most.
    pub(crate) fn sleep(&self, rank: usize, nanoseconds: i64, mut ready: impl FnMut() -> bool) {
        let heard = self.bell(rank).load(Ordering::Relaxed);
        self.asleep(rank).fetch_add(1, Ordering::Relaxed);
        self.sleepers().fetch_add(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        // The system refuses this where it refuses `register`; there, threads that ring make their own barriers.
        words::barrier();
        if !ready() {
            words::wait(self.bell(rank), heard, nanoseconds);
        }
        self.asleep(rank).fetch_sub(1, Ordering::Relaxed);
        self.sleepers().fetch_sub(1, Ordering::Relaxed);
    }
}
