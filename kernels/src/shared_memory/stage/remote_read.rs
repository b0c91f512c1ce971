//! One copy by the system instead of two: a rank need not stage an input of medium size where other ranks can read its
//! memory. The rank publishes the input's address, and its call ends when all readers are done. If any rank may not
//! read another rank's memory, all ranks stage as usual.

use std::sync::atomic::Ordering;

use super::geometry::Stripe;
use super::plan::WorldRank;
use super::pull::Pull;
use crate::Error;
use crate::lowering::UserBuffers;
use crate::reduce::Stores;
use crate::shared_memory::calls::ActiveCall;
use crate::shared_memory::meet::ending;
use crate::shared_memory::meet::other_memory::{Unread, read};
use crate::shared_memory::meet::system::refused;
use crate::shared_memory::world::World;
use crate::shared_memory::world::local_state::LocalState;
use crate::shared_memory::world::memory::arena::{ROOM, SLOT};
use crate::shared_memory::world::reach::{CAN, CANNOT, LINE, PLACE, VALUE, VERDICT};
use crate::shared_memory::world::ways::Way;

impl World {
    /// Whether all ranks can read the memory of all other ranks, as far as this rank knows: all ranks have tried, and
    /// no read was refused.
    pub(crate) fn all_reach(&self, local: &mut LocalState) -> bool {
        if !local.stage.reach.all {
            local.stage.reach.all = self.finds_all(local);
        }
        local.stage.reach.all
    }

    fn finds_all(&self, local: &mut LocalState) -> bool {
        let arena = &self.shared.arena;
        let word = |rank: usize, word: usize| arena.word(arena.layout.own(rank, LINE) + word);
        if !local.stage.reach.tried {
            let mut can = true;
            for other in self.others() {
                let place = word(other, PLACE).load(Ordering::Acquire);
                if place == 0 {
                    // Rank `other` has only begun to join.
                    return false;
                }
                let mut found = [0; 8];
                // SAFETY: the bytes are those of the local array `found`.
                let read =
                    unsafe { read(self.peers[other].pid, &[(place, found.as_mut_ptr(), 8)]) };
                let value = word(other, VALUE).load(Ordering::Relaxed);
                can &= read.is_ok() && u64::from_ne_bytes(found) == value;
            }
            local.stage.reach.tried = true;
            word(self.rank, VERDICT).store(if can { CAN } else { CANNOT }, Ordering::Release);
        }
        (0..self.shared.nranks()).all(|rank| word(rank, VERDICT).load(Ordering::Acquire) == CAN)
    }
}

impl WorldRank {
    /// Returns the address of this rank's input, if other ranks are to read it there.
    pub(crate) fn lends(
        &self,
        active: &mut ActiveCall<'_>,
        pull: &Pull,
        way: Way,
        outside: UserBuffers,
    ) -> Option<u64> {
        if !way.lends() || !Self::can_lend(active) {
            return None;
        }
        let [inputs, outputs] = self.part.lens.map(|elements| elements * self.size);
        let (input, output) = (outside.input.addr(), outside.output.addr());
        // In place, this rank overwrites an input that other ranks still read. If data is only copied, the bytes stay
        // the same.
        let [before_input, before_output] = self.part.within;
        let whole = input.wrapping_sub(before_input);
        let same = whole == output.wrapping_sub(before_output)
            && !self.part.call.schedule.collective.reduces();
        let apart = same || input + inputs <= output || output + outputs <= input;
        (apart && !pull.readers.is_empty()).then_some(input as u64)
    }

    /// Whether all ranks can read the memory of all other ranks, and have a core each. Every rank of a call asks this, as
    /// each must have tried.
    pub(crate) fn can_lend(active: &mut ActiveCall<'_>) -> bool {
        let world = active.world;
        // A rank that shares its core has nothing to wait for while other ranks copy, so two copies are quicker there.
        let fits = world.spins && world.shared.nranks() * SLOT <= ROOM;
        fits && world.all_reach(&mut active.local)
    }

    /// Returns a place in this rank's room for a tile of a rank's input; no other rank uses the place.
    pub(crate) fn place_for(&self, rank: usize) -> *mut u8 {
        let arena = &self.world.shared.arena;
        arena.address(arena.layout.room(self.world.rank) + rank * SLOT, SLOT)
    }

    /// Copies stripes of another rank's buffer, at `from` in that rank's memory, to their places in a tile at `to`.
    ///
    /// # Safety
    /// The places of the stripes at `to` are writable, and no other thread accesses them meanwhile.
    pub(crate) unsafe fn fetch(
        &self,
        active: &ActiveCall<'_>,
        source: usize,
        (from, to): (u64, *mut u8),
        stripes: impl Iterator<Item = Stripe>,
    ) -> Result<(), Error> {
        let size = self.size as u64;
        let stretch = |stripe: Stripe| {
            let from = from.wrapping_add(stripe.outside.wrapping_mul(size));
            (from, to.wrapping_add((stripe.inside * size) as usize), (stripe.len * size) as usize)
        };
        let stretches: Vec<_> = stripes.map(stretch).collect();
        // SAFETY: the caller's promise.
        unsafe { active.read_from(source, &stretches) }
    }

    /// Copies the part that this rank needs of a tile of its own input, which it has not staged, and returns the
    /// address of the copy.
    ///
    /// # Safety
    /// `outside` has the rank's input, and the stripes lie in it.
    pub(crate) unsafe fn fetch_own(
        &self,
        stripes: impl Iterator<Item = Stripe>,
        outside: UserBuffers,
    ) -> *mut u8 {
        let to = self.place_for(self.world.rank);
        // SAFETY: the caller's promise; the place has room for a tile, and is this rank's.
        unsafe { self.copy_in(stripes, outside, to, Stores::Cached) };
        to
    }

    /// Waits until the ranks `readers` are done with `tiles` tiles of this rank's lent memory, and checks that those of
    /// the ranks `sources` whose memory this rank has read were alive until then.
    pub(crate) fn give_back(
        active: &ActiveCall<'_>,
        readers: impl Iterator<Item = usize>,
        sources: impl Iterator<Item = usize>,
        tiles: u64,
    ) -> Result<(), Error> {
        let (world, number) = (active.world, active.number);
        world.shared.finish(world.rank, number, tiles);
        for reader in readers {
            active.wait(Some(reader), || world.shared.finished(reader, number, tiles))?;
        }
        let fetched: Vec<usize> =
            sources.filter(|rank| active.local.stage.lent[*rank] != 0).collect();
        active.were_there(&fetched, tiles)
    }
}

impl ActiveCall<'_> {
    /// Copies stretches of a rank's memory, each given by its address there, its address here and its bytes.
    ///
    /// # Safety
    /// The memory here is writable, and no other thread accesses it meanwhile.
    pub(crate) unsafe fn read_from(
        &self,
        rank: usize,
        stretches: &[(u64, *mut u8, usize)],
    ) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        match unsafe { read(self.world.peers[rank].pid, stretches) } {
            Ok(()) => Ok(()),
            // The process ended, and the wait for it finds out how.
            Err(Unread::Ended) => self.wait(Some(rank), || false),
            // This rank could read that memory when it tried. A process that gives up rights later, as by another
            // user's number, can no longer be read.
            Err(Unread::Forbidden(errno)) => {
                let rank = self.world.named(rank);
                let what = format!("to read the memory of rank {rank} (process_vm_readv)");
                Err(self.world.give_up_for(refused(what, errno)))
            }
            Err(Unread::Absent(errno)) => {
                // The owner of the memory leaves a call that was refused.
                self.goes_on()?;
                let (rank, from) = (self.world.named(rank), stretches[0].0);
                Err(self.corrupt(format!(
                    "rank {rank} says that its data lies at {from:#x} of its memory, which the system does not read: {errno}"
                )))
            }
        }
    }

    /// Checks that the ranks `read`, whose memory this rank has read, are alive or done with `tiles` tiles.
    pub(crate) fn were_there(&self, read: &[usize], tiles: u64) -> Result<(), Error> {
        if read.is_empty() {
            return Ok(());
        }
        let (world, number) = (self.world, self.number);
        // The owner of the memory leaves a failed call, and may then write there.
        self.goes_on()?;
        let dead = ending::ended(&world.peers, world.rank);
        let dead = dead.map_err(|error| world.give_up_for(error))?;
        for &rank in read.iter().filter(|rank| dead[**rank]) {
            let left = || world.shared.finished(rank, number, tiles);
            if !left() {
                // Another process may have had the process id at the time of the read.
                self.wait(Some(rank), left)?;
            }
        }
        Ok(())
    }
}
