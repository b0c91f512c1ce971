//! A single copy by the system: a rank whose input is of some size need not stage it where the others can read it in its
//! own memory. It says where its input lies, and its call ends when all are done with that. Where any rank may not read
//! another's memory, all stage as ever.

use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use super::arena::{ROOM, SLOT};
use super::calls::ActiveCall;
use super::ending;
use super::geometry::Stripe;
use super::plan::WorldRank;
use super::reach::{CAN, CANNOT, LINE, PLACE, VALUE, VERDICT, read};
use super::strategy::{Pull, ReadSource};
use super::system::refused;
use super::world::{LocalState, World};
use crate::Error;
use crate::lowered::UserBuffers;

/// Bytes of an input for which one copy by the system is quicker than two of our own. Below, a call of the system costs
/// more than it saves; above, memory is what counts.
const WORTH: RangeInclusive<usize> = 48 << 10..=12 << 20;

impl World {
    /// Whether all ranks can read the memory of all others, as far as this one knows: none has refused, and all have
    /// tried.
    pub(super) fn all_reach(&self, local: &mut LocalState) -> bool {
        if !local.reach.all {
            local.reach.all = self.finds_all(local);
        }
        local.reach.all
    }

    fn finds_all(&self, local: &mut LocalState) -> bool {
        let arena = &self.shared.arena;
        let word = |rank: usize, word: usize| arena.word(arena.layout.own(rank, LINE) + word);
        if !local.reach.tried {
            let mut can = true;
            for other in self.others() {
                let place = word(other, PLACE).load(Ordering::Acquire);
                if place == 0 {
                    // It has only begun to join.
                    return false;
                }
                let mut found = [0; 8];
                // SAFETY: the bytes are this function's.
                let read =
                    unsafe { read(self.peers[other].pid, &[(place, found.as_mut_ptr(), 8)]) };
                let value = word(other, VALUE).load(Ordering::Relaxed);
                can &= read.is_ok() && u64::from_ne_bytes(found) == value;
            }
            local.reach.tried = true;
            word(self.rank, VERDICT).store(if can { CAN } else { CANNOT }, Ordering::Release);
        }
        (0..self.shared.nranks()).all(|rank| word(rank, VERDICT).load(Ordering::Acquire) == CAN)
    }
}

impl WorldRank {
    /// Where this rank's input lies, if the others are to read it there.
    pub(super) fn lends(
        &self,
        active: &mut ActiveCall<'_>,
        pull: &Pull,
        outside: UserBuffers,
    ) -> Option<u64> {
        let world = active.world;
        let [inputs, outputs] = self.lens.map(|elements| elements * self.size);
        let (input, output) = (outside.input.addr(), outside.output.addr());
        // In place, what others still read would be overwritten: where data are only copied, by the same bytes.
        let [before_input, before_output] = self.within;
        let whole = input.wrapping_sub(before_input);
        let same =
            whole == output.wrapping_sub(before_output) && !self.call.schedule.collective.reduces();
        let apart = same || input + inputs <= output || output + outputs <= input;
        // Ranks that share a core have nothing to wait for while the others copy: two copies are quicker then.
        let fits = world.spins && world.shared.nranks() * SLOT <= ROOM;
        let worth = apart && fits && !pull.readers.is_empty() && WORTH.contains(&inputs);
        (worth && world.all_reach(&mut active.local)).then_some(input as u64)
    }

    /// A place in this rank's room for a tile of a rank's input: nobody else comes there.
    fn place_for(&self, rank: usize) -> *mut u8 {
        let arena = &self.world.shared.arena;
        arena.address(arena.layout.room(self.world.rank) + rank * SLOT, SLOT)
    }

    /// Copies what this rank needs of a tile of another's input, which lies at `from` in that one's memory, and returns
    /// where it is now.
    pub(super) fn fetch(
        &self,
        active: &ActiveCall<'_>,
        source: &ReadSource,
        from: u64,
        tile: u64,
    ) -> Result<*mut u8, Error> {
        let to = self.place_for(source.rank);
        let size = self.size as u64;
        let stretch = |stripe: Stripe| {
            let from = from.wrapping_add(stripe.outside * size);
            (from, to.wrapping_add((stripe.inside * size) as usize), (stripe.len * size) as usize)
        };
        let units = source.units.iter().copied();
        let stretches: Vec<_> = self.tiles.stripes_of(tile, units).map(stretch).collect();
        // SAFETY: stripes lie within a tile, for which the place has room; it is this rank's, whose call this is.
        unsafe { active.read_from(source.rank, &stretches)? };
        Ok(to)
    }

    /// Copies what this rank needs of a tile of its own input, which it has not staged, and returns where it is now.
    ///
    /// # Safety
    /// `outside` has the rank's input.
    pub(super) unsafe fn fetch_own(
        &self,
        source: &ReadSource,
        outside: UserBuffers,
        tile: u64,
    ) -> *mut u8 {
        let to = self.place_for(source.rank);
        // SAFETY: the caller's promise; the place is this rank's, with room for a tile.
        unsafe { self.copy_in(tile, source.units.iter().copied(), outside, to) };
        to
    }

    /// Returns when the others are done with what this rank lent them, and makes sure of what it read itself: that all
    /// whose memory it was were there until then.
    pub(super) fn give_back(
        &self,
        active: &ActiveCall<'_>,
        pull: &Pull,
        lent: bool,
    ) -> Result<(), Error> {
        let (world, number, tiles) = (active.world, active.number, self.tiles.number);
        world.shared.finish(world.rank, number, tiles);
        if lent {
            for &reader in &*pull.readers {
                let done = || world.shared.finished(reader, number, tiles);
                active.wait(Some(reader), done)?;
            }
        }
        let fetched = pull.sources.iter().map(|source| source.rank);
        let fetched: Vec<usize> = fetched.filter(|rank| active.local.lent[*rank] != 0).collect();
        active.were_there(&fetched, tiles)
    }
}

impl ActiveCall<'_> {
    /// Copies stretches of a rank's memory: where each lies there, where it goes here, and its bytes.
    ///
    /// # Safety
    /// What lies here is writable and nobody else's meanwhile.
    pub(super) unsafe fn read_from(
        &self,
        rank: usize,
        stretches: &[(u64, *mut u8, usize)],
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        match unsafe { read(self.world.peers[rank].pid, stretches) } {
            Ok(()) => Ok(()),
            // It ended, and whoever waits for it finds out how.
            Err(Errno::SRCH) => self.wait(Some(rank), || false),
            // It could when it tried. Who gives up rights later, as by another user's number, is no longer read.
            Err(errno @ (Errno::PERM | Errno::ACCESS)) => {
                let rank = self.world.named(rank);
                let what = format!("to read the memory of rank {rank} (process_vm_readv)");
                Err(self.world.give_up_for(refused(what, errno)))
            }
            Err(errno) => {
                let (rank, from) = (self.world.named(rank), stretches[0].0);
                Err(self.corrupt(format!(
                    "rank {rank} says that its data lies at {from:#x} of its memory, which the system does not read: {errno}"
                )))
            }
        }
    }

    /// Makes sure that ranks whose memory this one has read were there until then, or are done with so many tiles.
    pub(super) fn were_there(&self, read: &[usize], tiles: u64) -> Result<(), Error> {
        if read.is_empty() {
            return Ok(());
        }
        let (world, number) = (self.world, self.number);
        // The owner ends a call that fails, and may then write there.
        self.goes_on()?;
        let dead = ending::ended(&world.peers, world.rank);
        let dead = dead.map_err(|error| world.give_up_for(error))?;
        for &rank in read.iter().filter(|rank| dead[**rank]) {
            let left = || world.shared.finished(rank, number, tiles);
            if !left() {
                // Its number may have been another process's when it was read.
                self.wait(Some(rank), left)?;
            }
        }
        Ok(())
    }
}
