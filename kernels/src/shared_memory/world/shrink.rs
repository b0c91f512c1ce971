//! A world of the surviving ranks: each survivor publishes in its seat that it shrinks, with an id that it made, and
//! waits until every other rank has published this or is gone. The id of the lowest survivor names the new world, which
//! has an arena of its own.

use std::cell::Cell;
use std::sync::TryLockError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::World;
use super::memory::shared_state::Standing;
use super::watch::{self, LOOK, Watch};
use crate::Error;
use crate::shared_memory::meet::ending;
use crate::shared_memory::meet::unique::UniqueId;

/// The line of a seat with the attempt in which the rank is.
const ATTEMPT: usize = 3;
/// The first of the lines with the id that the rank made for its attempt.
const ID: usize = 4;

impl World {
    /// Makes a new world of the ranks that are left, in their order. All of these ranks must call it.
    ///
    /// # Errors
    /// E0405 where a rank that is alive does not come within the deadline; else the errors of [`Self::join`]. After any
    /// of these errors, the call can be repeated. E0412 where another thread is in this call.
    pub fn shrink(&self) -> Result<Self, Error> {
        self.here()?;
        let mut attempt = match self.shrinks.try_lock() {
            Ok(attempt) => attempt,
            Err(TryLockError::WouldBlock) => return Err(Error::RankBusy { rank: self.id() }),
            Err(TryLockError::Poisoned(attempt)) => attempt.into_inner(),
        };
        let (id, survivors) = self.agree(&mut attempt)?;
        // An id serves once, even if the join fails.
        *attempt = attempt.saturating_add(1);
        let rank = survivors.iter().filter(|rank| **rank < self.rank).count();
        let world = Self::join(&id, survivors.len() as u32, rank as u32, self.options())?;
        world.goes_on_as(self);
        Ok(world)
    }

    /// Returns the id of the new world and the surviving ranks. A rank gives up an attempt for a later attempt that
    /// another rank is in.
    fn agree(&self, attempt: &mut u64) -> Result<(UniqueId, Vec<usize>), Error> {
        // One deadline for the waits for all ranks.
        let since = Instant::now();
        loop {
            if self.attempt(self.rank) != *attempt {
                self.tell_attempt(*attempt, &UniqueId::new()?);
            }
            for other in self.others() {
                let left = self.deadline().saturating_sub(since.elapsed());
                // At least enough time to check that the rank is alive.
                let left = left.max(2 * LOOK);
                let meeting = Meeting { world: self, left, gone: Cell::new(false) };
                let there = || self.attempt(other) >= *attempt;
                match watch::wait(&meeting, Some(other), there) {
                    Err(error) if !meeting.gone.get() => return Err(error),
                    _ => {}
                }
            }
            let dead = ending::ended(&self.peers, self.rank)?;
            let left = |rank: &usize| {
                let standing = self.shared.standing(*rank);
                *rank == self.rank || (!dead[*rank] && standing == Standing::Here)
            };
            let survivors: Vec<usize> = (0..self.shared.nranks()).filter(left).collect();
            let latest = survivors.iter().map(|rank| self.attempt(*rank)).max();
            let id = self.id_of(survivors[0]);
            // An equal attempt before and after shows that the id was not rewritten during the read.
            if latest == Some(*attempt) && self.attempt(survivors[0]) == *attempt {
                return Ok((id, survivors));
            }
            *attempt = latest.map_or(*attempt, |latest| latest.max(*attempt));
        }
    }

    /// Returns the latest attempt of a rank; 0 where it is in none.
    fn attempt(&self, rank: usize) -> u64 {
        let arena = &self.shared.arena;
        arena.word(arena.layout.own(rank, ATTEMPT)).load(Ordering::Acquire)
    }

    fn tell_attempt(&self, attempt: u64, id: &UniqueId) {
        let arena = &self.shared.arena;
        let said = arena.word(arena.layout.own(self.rank, ATTEMPT));
        // A rank that reads a part of the new id sees this 0, so it does not take the id for that of the earlier
        // attempt.
        said.store(0, Ordering::SeqCst);
        for (at, bytes) in id.as_bytes().chunks_exact(8).enumerate() {
            let word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            // Release: not before the store of 0.
            arena.word(arena.layout.own(self.rank, ID) + 8 * at).store(word, Ordering::Release);
        }
        // Release: the id is written before the attempt.
        said.store(attempt, Ordering::Release);
        self.shared.wake_all();
    }

    /// Returns the id that a rank made. Bytes that are no id are found when the world is joined.
    fn id_of(&self, rank: usize) -> UniqueId {
        let arena = &self.shared.arena;
        let mut bytes = [0; UniqueId::BYTES];
        for (at, bytes) in bytes.chunks_exact_mut(8).enumerate() {
            // Acquire: the caller's later read of the attempt comes after this read.
            let word = arena.word(arena.layout.own(rank, ID) + 8 * at).load(Ordering::Acquire);
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        UniqueId::from_bytes(bytes)
    }
}

/// A wait for a rank to come or to be gone: both outcomes are good.
struct Meeting<'w> {
    world: &'w World,
    left: Duration,
    gone: Cell<bool>,
}

impl Watch for Meeting<'_> {
    fn world(&self) -> &World {
        self.world
    }

    /// The world has failed already, which is why ranks shrink it.
    fn ends(&self) -> bool {
        false
    }

    fn goes_on(&self) -> Result<(), Error> {
        Ok(())
    }

    fn needs(&self, _: usize) -> bool {
        true
    }

    fn lost(&self, rank: usize, how: &str) -> Error {
        self.gone.set(true);
        Error::Late { what: format!("rank {rank} {how}") }
    }

    fn deadline(&self) -> Duration {
        self.left
    }

    fn late(&self, on: Option<usize>) -> Error {
        let (rank, after) = (self.world.id(), self.world.deadline());
        let on = on.unwrap_or(self.world.rank);
        let pid = self.world.peers[on].pid;
        let what = format!(
            "rank {rank} waited {after:?} for rank {on} (process {pid}), which is alive and does not shrink the world; have all survivors call it"
        );
        Error::Late { what }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::World;
    use crate::Options;

    /// A late rank leaves no more time for the next rank.
    #[test]
    fn all_that_are_missing_have_one_deadline() {
        let deadline = Duration::from_secs(4);
        let worlds = World::together(3, Options::new().deadline(deadline)).expect("a world");
        let [first, second, _third] = &worlds[..] else { panic!("three ranks") };
        let since = Instant::now();
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(deadline / 2);
                second.shrink().expect_err("rank 2 does not come")
            });
            let error = first.shrink().expect_err("rank 2 does not come").to_string();
            let took = since.elapsed();
            assert!(error.contains("rank 0 waited 4s for rank 2"), "{error}");
            assert!(took >= deadline && took < deadline * 3 / 2, "{took:?}");
        });
    }

    #[test]
    fn every_attempt_has_an_id_of_its_own() {
        let worlds = World::together(1, Options::new()).expect("a world");
        let ids = [1, 2, 3].map(|attempt| {
            worlds[0].shrink().expect("one is left");
            assert_eq!(worlds[0].attempt(0), attempt);
            worlds[0].id_of(0)
        });
        assert!(ids[0] != ids[1] && ids[1] != ids[2]);
        ids[2].check().expect("a whole id");
    }
}
