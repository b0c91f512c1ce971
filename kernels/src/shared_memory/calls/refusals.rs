//! Refused calls: the numbers that are void for all ranks, because two ranks made different calls, or one rank could make
//! none. A rank that had left a refused call before it was known hears of it at its next call, or when it leaves.

use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use roundelay_core::collective::Collective;
use roundelay_core::counts::block_name;
use roundelay_core::ids::RankId;
use roundelay_core::schedule::{Schedule, text};

use crate::Error;
use crate::call_numbers::CallsSeen;
use crate::error::Differ;
use crate::shared_memory::meet::{ending, system};
use crate::shared_memory::world::World;
use crate::shared_memory::world::failure;
use crate::shared_memory::world::memory::arena::RECORD;
use crate::shared_memory::world::memory::shared_state::{CallHeader, MOST_TILES, Standing};
use crate::shared_memory::world::watch::LOOK;
use crate::sync::{AtomicU64, MODELLED, Ordering};

/// The place of the number of refused calls, in the arena's first page.
const REFUSED: usize = 192;
/// States of the record of a refused call, in the low two bits of its first word; the call's number is above them.
const WRITING: u64 = 1;
const WRITTEN: u64 = 2;
/// The word of a record with the length of the reason for which a rank made no call; the text follows it.
const REASON: usize = 12;
/// The most bytes of a reason.
const MOST_REASON: usize = RECORD - 8 * (REASON + 1);
/// How long a rank that leaves sleeps between looks at the other ranks.
const NAP: Duration = Duration::from_micros(200);

/// The schedule of a rank that makes no call.
static NOTHING: LazyLock<Schedule> = LazyLock::new(|| {
    let text = "schedule Nothing Broadcast nranks 1 root 0\nrank 0 stream 0\n";
    text::parse(text).expect("a schedule without ops")
});

/// The calls as this rank sees them.
impl CallsSeen for World {
    fn others(&self) -> impl Iterator<Item = usize> {
        World::others(self)
    }

    fn named(&self, rank: usize) -> RankId {
        World::named(self, rank)
    }

    fn own(&self) -> usize {
        self.rank
    }

    fn number(&self, rank: usize) -> u64 {
        self.shared.number(rank)
    }

    fn call_name(&self, rank: usize, number: u64) -> Option<String> {
        self.shared.staged(rank, number)?;
        self.shared.header(rank, number).name()
    }

    fn is_inside(&self, rank: usize, number: u64) -> bool {
        !self.shared.finished(rank, number, MOST_TILES)
    }

    fn refused(&self) -> u64 {
        self.refusals().load(Ordering::Acquire)
    }

    fn is_void(&self, number: u64) -> bool {
        self.void(number, 0).load(Ordering::Relaxed) >> 2 == number
    }

    fn differ(&self, number: u64) -> Differ {
        let since = Instant::now();
        while self.void(number, 0).load(Ordering::Acquire) != number << 2 | WRITTEN {
            // The rank that writes the record may have ended.
            if since.elapsed() > LOOK {
                break;
            }
            thread::yield_now();
        }
        let word = |at: usize| self.void(number, at).load(Ordering::Relaxed);
        let known = |rank: u64| (rank as usize).min(self.shared.nranks() - 1);
        let ranks = [word(1), word(2)].map(|rank| self.named(known(rank)));
        let headers =
            [[word(3), word(4), word(5)], [word(6), word(7), word(8)]].map(CallHeader::of_words);
        let calls = [0, 1].map(|at: usize| {
            let name = headers[at].name().unwrap_or_else(|| "no call that there is".to_owned());
            let [identity, other] = [headers[at].identity, headers[1 - at].identity];
            let same = headers[1 - at].name().is_some_and(|other| other == name);
            // The calls have one name, and different schedules or counts.
            if same && identity != other {
                format!("{name} by schedule {identity:016x}")
            } else if let Some(block) = word(9).checked_sub(1).filter(|_| headers[at].has_blocks())
            {
                let of = headers[at].collective().unwrap_or(Collective::AllGather);
                let block = block_name(of, self.nranks(), block);
                format!("{name} with {} elements in {block}", word(10 + at))
            } else {
                name
            }
        });
        let text = self.shared.arena.layout.void(number) + 8 * (REASON + 1);
        let reason = match (word(REASON) as usize).min(MOST_REASON) {
            0 => None,
            len => Some(self.shared.arena.load_text(text, len)),
        };
        let reason = reason.map(|text| String::from_utf8_lossy(&text).into_owned());
        Differ { number, ranks, calls, reason, late: None }
    }

    fn has_failed(&self) -> bool {
        failure::has_failed(&self.shared.arena)
    }

    fn intact(&self) -> Result<(), Error> {
        World::intact(self)
    }
}

impl World {
    fn refusals(&self) -> &AtomicU64 {
        self.shared.arena.word(REFUSED)
    }

    fn void(&self, number: u64, word: usize) -> &AtomicU64 {
        self.shared.arena.word(self.shared.arena.layout.void(number) + 8 * word)
    }

    /// Returns the error of an earlier refused call, if this rank has not returned it yet.
    pub(crate) fn refusal(&self) -> Option<Error> {
        self.enter().ok()?.call.numbers.hear(self).err()
    }

    /// Makes a call void for all ranks, and returns the error: for two ranks with their calls and their counts of a block,
    /// whose number is one less than given, or for one rank that makes no call, given twice with its reason. The first
    /// rank that finds the call void writes the record.
    pub(crate) fn make_void(
        &self,
        number: u64,
        mut found: [(usize, CallHeader, u64); 2],
        (block, reason): (u64, &str),
    ) -> Error {
        found.sort_by_key(|(rank, ..)| *rank);
        let state = self.void(number, 0);
        let before = state.load(Ordering::Relaxed);
        let writing = number << 2 | WRITING;
        let first = before >> 2 != number
            && state.compare_exchange(before, writing, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if first {
            let ranks = found.map(|(rank, ..)| rank as u64);
            let words = found.map(|(_, header, _)| header.words());
            let words = ranks.into_iter().chain(words.into_iter().flatten());
            let counts = found.map(|(.., count)| count);
            let arena = &self.shared.arena;
            let text = arena.layout.void(number) + 8 * (REASON + 1);
            let len = arena.store_beginning(text, reason, MOST_REASON);
            let words = words.chain([block]).chain(counts).chain([len as u64]);
            for (at, word) in (1..).zip(words) {
                self.void(number, at).store(word, Ordering::Relaxed);
            }
            state.store(number << 2 | WRITTEN, Ordering::Release);
            self.refusals().fetch_add(1, Ordering::Release);
            self.shared.wake_all();
        }
        Error::CallsDiffer(Box::new(self.differ(number)))
    }

    /// Makes this rank's next call void for all ranks, for a reason in words: the rank cannot make it, so the other ranks
    /// get the reason (E0414) from theirs at once. It counts as a call of this rank.
    ///
    /// # Errors
    /// E0414 where this rank had left an earlier call that was void, which it is told in place of this call; else the
    /// errors of a call.
    pub fn refuse(&self, reason: &str) -> Result<(), Error> {
        let active = self.begin(CallHeader::of_words([0, 0, u64::MAX]), &NOTHING)?;
        let void = (self.rank, active.header, 0);
        let error = self.make_void(active.number, [void; 2], (0, reason));
        _ = active.end(Err(error));
        Ok(())
    }

    /// Returns when all other ranks are done with this rank's last call, have left or have ended, and after half of the
    /// deadline at the latest: a rank that leaves hears so of a call that was void.
    ///
    /// # Errors
    /// E0414 where a call was void and this rank had returned from it; E0412 while a call of this rank is under way.
    pub fn farewell(&self) -> Result<(), Error> {
        let mut local = self.enter()?;
        let (number, shared) = (local.call.numbers.made, &self.shared);
        // In a model time does not pass.
        let mut waits = number > 0 && !MODELLED;
        let (since, mut looked, mut dead) = (Instant::now(), None::<Instant>, Vec::new());
        while waits && !self.ends(number) && since.elapsed() < self.deadline() / 2 {
            if looked.is_none_or(|looked| looked.elapsed() >= LOOK) {
                looked = Some(Instant::now());
                dead = ending::ended(&self.peers, self.rank).unwrap_or_default();
            }
            waits = self.others().any(|other| {
                !shared.finished(other, number, MOST_TILES)
                    && matches!(shared.standing(other), Standing::Here)
                    && !dead.get(other).is_some_and(|dead| *dead)
            });
            if waits {
                thread::sleep(NAP);
            }
        }
        let since = Instant::now();
        while local.call.numbers.is_about_to_hear(self) && !MODELLED && since.elapsed() < LOOK {
            thread::yield_now();
        }
        let mut heard = local.call.numbers.hear(self);
        if let Err(Error::CallsDiffer(differ)) = &mut heard {
            // There is no next call in whose place it comes.
            differ.late = None;
        }
        heard
    }

    /// Says farewell for a rank that cannot return an error any more: the error is written to the standard error of this
    /// process, which then ends with code 1.
    pub fn depart(&self) {
        let Err(error @ Error::CallsDiffer(_)) = self.farewell() else { return };
        let rank = self.named(self.rank);
        eprintln!("roundelay: rank {rank} returned from a call that was void: {error}");
        // A process that has all ranks as threads got the error in another thread.
        if self.peers.iter().any(|peer| peer.pid != std::process::id()) {
            system::fail_at_exit();
        }
    }
}
