//! Calls of a plan on the caller's buffers.

use std::sync::Arc;

use roundelay_core::dtype::ReduceOp;

use super::geometry::{Blocks, EqualBlocks, Stripe, Tiles};
use super::plan::{WorldPlan, WorldRank};
use super::routes::{Attempt, Route};
use super::run_pull::{ALL, CallBlocks, InPlace, OneCount};
use super::strategy::{Chunk, Common, Direct, Strategy, Streams, fused_strategy};
use super::streams::StreamRun;
use super::work_counter::WorkCounter;
use crate::Error;
use crate::lowering::first_call::{WORD, WORDS, exchange};
use crate::lowering::{AnyRankPlan, Bases, Memory, RankCall, RankPart, Segments, UserBuffers};
use crate::recorder::Recorded;
use crate::reduce::{Stores, copy};
use crate::shared_memory::calls::ActiveCall;
use crate::shared_memory::world::memory::arena::{RING, SLOT};
use crate::shared_memory::world::memory::shared_state::CallPosition;
use crate::shared_memory::world::ways::Way;
use crate::shared_memory::world::ways::trials::Measured;

/// The least bytes of a buffer whose pages are looked up before its use: for fewer bytes the system is as quick by
/// itself.
const LARGE: usize = 256 << 10;

impl RankCall for WorldRank {
    fn part(&self) -> &RankPart {
        &self.part
    }

    fn exchange(&self) -> Result<Box<AnyRankPlan>, Error> {
        let exchange = exchange(self.world.nranks())?;
        Ok(Box::new(WorldPlan::new(&self.world, &exchange, WORDS, WORD, ReduceOp::Sum)?))
    }

    fn memory(&self, like: *const u8, words: usize) -> Result<Memory<'_>, Error> {
        match self.world.shared.arena.offset(like, 1) {
            Some(_) => Ok(Memory::lent(self.world.alloc::<u64>(words)?)),
            None => Memory::own(words),
        }
    }

    unsafe fn make(&self, outside: UserBuffers) -> Result<(), Error> {
        if let Some(blocks) = &self.blocks {
            // SAFETY: the caller's promise.
            return unsafe { self.run_blocks(blocks, outside) };
        }
        let mut header = self.header.checks(outside.check);
        header.direct = self.places(outside);
        let attempt = self.routes.attempt();
        let mut active = self.world.begin(header, self.running())?;
        active.patient = self.patient;
        let (way, on_trial) = self.routes.way(&active);
        let route = self.route(way)?;
        active.header = active.header.on_way(way.layout() ^ self.routes.usual.layout());
        // SAFETY: the caller's promise.
        let done = unsafe { self.parts(&mut active, (route, way), outside) };
        if let (Ok(true), true, Some(attempt)) = (&done, on_trial, &attempt) {
            self.note(&mut active, way, attempt);
        }
        let bytes = self.part.lens[1] * self.size;
        // SAFETY: the caller's promise.
        unsafe { self.world.fault.flip(active.number, outside.output, bytes) };
        active.end(done.map(|_| ()))
    }
}

impl WorldRank {
    /// Returns the positions of both buffers in the arena, if they lie there and calls may use them there.
    fn places(&self, outside: UserBuffers) -> Option<[u64; 2]> {
        if !self.can_be_direct() {
            return None;
        }
        let lens = self.part.lens.map(|elements| elements * self.size);
        let starts = [outside.input, outside.output.cast_const()];
        let arena = &self.world.shared.arena;
        let mut places = [0; 2];
        for ((place, at), len) in places.iter_mut().zip(starts).zip(lens) {
            if len > 0 {
                *place = arena.offset(at, len)? as u64;
            }
        }
        // If both buffers are empty, there is nothing to use in the arena.
        (lens != [0, 0] || self.world.nranks() == 1).then_some(places)
    }

    /// Returns the route of a way.
    pub(crate) fn route(&self, way: Way) -> Result<&Route, Error> {
        let routes = &self.routes;
        let Some(cell) = routes.others.get(way.layout() as usize) else { return Ok(&routes.first) };
        if way.layout() == routes.usual.layout() {
            return Ok(&routes.first);
        }
        if cell.get().is_none()
            && let Some(made) = &self.direct
        {
            let call = (Some(self.part.call.count), self.part.call.dtype, self.part.call.op);
            let made = fused_strategy(made, self.world.id(), call, (way.makers, way.tile()))?;
            if let Some((strategy, tiles)) = made {
                _ = cell.set(Route { strategy, tiles });
            }
        }
        Ok(cell.get().unwrap_or(&routes.first))
    }

    /// Notes the time of a call on a way that is on trial.
    pub(crate) fn note(&self, active: &mut ActiveCall<'_>, way: Way, attempt: &Attempt) {
        let Some((key, shape)) = self.routes.measured else { return };
        let (world, number) = (active.world, active.number);
        world.shared.took(world.rank, number, attempt.0.elapsed());
        if world.rank == 0 {
            let name =
                || format!("{}, {}", self.part.call.schedule.algorithm, self.part.call.name());
            let world = Measured {
                shared: &world.shared,
                choosing: world.options.choosing(),
                can_lend: world.spins,
            };
            active.local.stage.trials.note(&world, (key, shape, name), (number, way));
        }
    }

    /// Makes the call, and returns whether its data went through the arena on the given way.
    ///
    /// # Safety
    /// As for [`RankCall::make`].
    unsafe fn parts(
        &self,
        active: &mut ActiveCall<'_>,
        (route, way): (&Route, Way),
        outside: UserBuffers,
    ) -> Result<bool, Error> {
        let Route { strategy, tiles } = route;
        if matches!(strategy, Strategy::Split(_)) && way.lends_results() && Self::can_lend(active) {
            // Told from the first publication on, as ranks lend only where all ranks do.
            active.header.lent = outside.output.addr() as u64;
            active.header.slot = outside.input.addr() as u64;
        }
        if active.header.direct.is_some() {
            active.publish(0);
            if Self::all_direct(active)?
                && let Some(direct) = self.direct()?
            {
                self.run_direct(active, direct)?;
                return Ok(false);
            }
        }
        // SAFETY: the caller's promise.
        unsafe {
            match strategy {
                Strategy::Pull(pull) => {
                    let lent = self.lends(active, pull, way, outside);
                    active.header.lent = lent.unwrap_or(0);
                    let own = self.reads_in_place(pull, tiles, outside);
                    let in_place = InPlace { own, others: lent.is_some() };
                    self.run_pull(active, (pull, tiles, way), (OneCount, in_place), outside)?;
                }
                Strategy::Common(common) => {
                    self.run_common(active, (common, tiles, way), outside)?;
                }
                Strategy::Split(split) => {
                    self.run_split(active, (split, tiles, way), outside)?;
                }
                Strategy::Streams(streams) => {
                    self.run_streams(active, (streams, tiles, way.stores), &OneCount, outside)?;
                }
            }
        }
        Ok(true)
    }

    /// Copies stripes of a tile of this rank's input to `to`, where other ranks read them, or only this rank.
    ///
    /// # Safety
    /// `outside` has the rank's input; `to` has room for a tile, and no thread reads there.
    pub(crate) unsafe fn copy_in(
        &self,
        stripes: impl Iterator<Item = Stripe>,
        outside: UserBuffers,
        to: *mut u8,
        stores: Stores,
    ) {
        for stripe in stripes {
            // SAFETY: a stripe lies within the caller's buffer and within the tile; buffer and tile do not overlap.
            unsafe {
                let from =
                    outside.input.wrapping_add((stripe.outside as usize).wrapping_mul(self.size));
                let to = to.add(stripe.inside as usize * self.size);
                copy(to, from, stripe.len as usize * self.size, stores);
            }
        }
    }

    /// Returns the stripes of a tile of this rank's input.
    fn inputs<'t>(&self, tiles: &'t Tiles, tile: u64) -> impl Iterator<Item = Stripe> + 't {
        tiles.stripes(tile, self.units[0], EqualBlocks)
    }

    /// Copies a tile of this rank's output out of shared memory.
    ///
    /// # Safety
    /// `outside` has the rank's output; the tile lies at `from`, and no thread writes there.
    pub(crate) unsafe fn copy_out(
        &self,
        stripes: impl Iterator<Item = Stripe>,
        from: *const u8,
        outside: UserBuffers,
        stores: Stores,
    ) {
        for stripe in stripes {
            // SAFETY: a stripe lies within the caller's buffer and within the tile; buffer and tile do not overlap.
            unsafe {
                let from = from.add(stripe.inside as usize * self.size);
                let to =
                    outside.output.wrapping_add((stripe.outside as usize).wrapping_mul(self.size));
                copy(to, from, stripe.len as usize * self.size, stores);
            }
        }
    }

    /// Returns the stripes of a tile of this rank's output.
    fn outputs<'t>(&self, tiles: &'t Tiles, tile: u64) -> impl Iterator<Item = Stripe> + 't {
        tiles.stripes(tile, self.units[1], EqualBlocks)
    }

    /// Stages a tile in this rank's next slot, as soon as no rank reads that slot any more.
    ///
    /// # Safety
    /// As for [`Self::copy_in`].
    pub(crate) unsafe fn stage(
        &self,
        active: &mut ActiveCall<'_>,
        tile: u64,
        (readers, stores): (&Arc<[usize]>, Stores),
        outside: UserBuffers,
        stripes: impl Iterator<Item = Stripe>,
    ) -> Result<(), Error> {
        let (world, at) = (active.world, active.local.stage.slots);
        let which = (at % RING) as usize;
        let last = &active.local.stage.uses[which];
        for &reader in &*last.readers {
            if !active.is_done(reader, last.number, last.tiles) {
                active.wait(Some(reader), || {
                    world.shared.finished(reader, last.number, last.tiles)
                })?;
            }
        }
        let copy = active.recording.during(Recorded::CopyIn);
        // SAFETY: the caller's promise; all readers are done with the slot.
        unsafe {
            self.copy_in(stripes, outside, self.slot(world.rank, at), stores);
        }
        drop(copy);
        let number = active.number;
        let used = &mut active.local.stage.uses[which];
        (used.number, used.tiles) = (number, tile + 1);
        if !Arc::ptr_eq(&used.readers, readers) {
            used.readers = readers.clone();
        }
        active.local.stage.slots += 1;
        if tile == 0 {
            active.header.slot = at;
            active.publish(1);
        } else {
            world.shared.stage(world.rank, active.number, tile + 1);
        }
        Ok(())
    }

    /// Returns the address of a slot of a rank.
    pub(crate) fn slot(&self, rank: usize, slot: u64) -> *mut u8 {
        let arena = &self.world.shared.arena;
        arena.address(arena.layout.slot(rank, slot), SLOT)
    }

    /// Points a buffer of the code at a staged tile.
    pub(crate) fn point(&self, bases: &Bases, buffer: u32, rank: usize, slot: u64) {
        bases.set(buffer, self.slot(rank, slot));
    }

    /// Waits until rank `source` has staged tile `tile`.
    pub(crate) fn tile_of(
        &self,
        active: &mut ActiveCall<'_>,
        source: usize,
        tile: u64,
    ) -> Result<(), Error> {
        if tile == 0 {
            let theirs = active.meet(source, 1)?;
            (active.local.stage.first[source], active.local.stage.lent[source]) =
                (theirs.slot, theirs.lent);
            return Ok(());
        }
        let (shared, number) = (&self.world.shared, active.number);
        let there = || shared.staged(source, number).is_some_and(|staged| staged > tile);
        if there() { Ok(()) } else { active.wait(Some(source), there) }
    }

    /// # Safety
    /// As for [`RankCall::make`].
    unsafe fn run_common(
        &self,
        active: &mut ActiveCall<'_>,
        (common, tiles, way): (&Common, &Tiles, Way),
        outside: UserBuffers,
    ) -> Result<(), Error> {
        let (world, number) = (active.world, tiles.number);
        let inputs = |tile: u64| self.inputs(tiles, tile);
        let to = (&common.readers, way.passing());
        let arena = &world.shared.arena;
        // A rank stages the tile after next in a slot only when all chunks of the slot's tile are done, so no rank
        // reads the slot.
        // SAFETY: the caller's promise.
        unsafe { self.stage(active, 0, to, outside, inputs(0))? };
        for tile in 0..number {
            if tile + 1 < number {
                // SAFETY: the caller's promise.
                unsafe {
                    self.stage(active, tile + 1, to, outside, inputs(tile + 1))?;
                }
            }
            for other in world.others() {
                self.tile_of(active, other, tile)?;
            }
            active.local.stage.first[world.rank] = active.header.slot;
            for ((rank, buffer), slot) in
                common.inputs.iter().enumerate().zip(&active.local.stage.first)
            {
                self.point(&common.bases, *buffer, rank, slot.wrapping_add(tile));
            }
            active.local.stage.made += 1;
            let place = arena.address(arena.layout.common(active.local.stage.made), SLOT);
            common.bases.set(common.output, place);
            // SAFETY: all ranks have staged the tile, so all have copied out the earlier tile at this place.
            unsafe {
                let chunks = (&common.data, &*common.chunks, way.passing());
                self.make_chunks(active, chunks, &common.bases)?;
            }
            let _copy = active.recording.during(Recorded::CopyOut);
            // SAFETY: all chunks of the tile are done; the tile stays until this rank has staged the tile after next.
            unsafe { self.copy_out(self.outputs(tiles, tile), place, outside, way.stores) };
        }
        Ok(())
    }

    /// Makes chunks until none is left, and returns when all chunks are done.
    ///
    /// # Safety
    /// All ranks have lent the memory at which the bases point for this tile, and are in this call.
    unsafe fn make_chunks(
        &self,
        active: &ActiveCall<'_>,
        (data, chunks, stores): (&Segments, &[Chunk], Stores),
        bases: &Bases,
    ) -> Result<(), Error> {
        let world = active.world;
        let counter = WorkCounter::new(&world.shared, active.local.stage.made, chunks.len());
        while let Some(at) = counter.take() {
            // Another process may have written a wrong number, so the number is checked here.
            let Some(chunk) = chunks.get(at) else { break };
            let _step = active.step(CallPosition { step: at as u32, at: chunk.at });
            let segment = data.all[chunk.segment as usize];
            let partials = self.partials.address(0);
            // SAFETY: chunks are independent, and each is taken once; only this process uses the partials; the caller's
            // promise for the rest.
            let whole = unsafe {
                data.run_with(segment, chunk.elements.clone(), bases, partials, stores, || {
                    active.ends()
                })
            };
            if !whole {
                active.goes_on()?;
            }
            counter.done();
            if counter.are_done() {
                world.shared.ring(world.rank);
            }
        }
        if counter.are_done() { Ok(()) } else { active.wait(None, || counter.are_done()) }
    }

    /// Whether the buffers of all ranks lie in the arena; stores their positions.
    fn all_direct(active: &mut ActiveCall<'_>) -> Result<bool, Error> {
        let world = active.world;
        active.local.stage.places[world.rank] = active.header.direct.unwrap_or_default();
        let mut all = true;
        for other in world.others() {
            match active.meet(other, 0)?.direct {
                Some(theirs) => active.local.stage.places[other] = theirs,
                None => all = false,
            }
        }
        Ok(all)
    }

    fn run_direct(&self, active: &mut ActiveCall<'_>, direct: &Direct) -> Result<(), Error> {
        let arena = &active.world.shared.arena;
        let heaps = arena.layout.heap_of(0);
        for (rank, buffers) in direct.buffers.iter().enumerate() {
            for ((buffer, bytes), place) in buffers.iter().zip(active.local.stage.places[rank]) {
                if *bytes == 0 {
                    continue;
                }
                // Another process wrote this position, which must lie in the heap of `rank`.
                let at = place as usize;
                let heap =
                    arena.layout.heap_of(rank)..arena.layout.heap_of(rank) + arena.layout.heap;
                let inside = heap.contains(&at) && heap.end - at >= *bytes;
                if !inside || !at.is_multiple_of(self.size) {
                    return Err(active.corrupt(format!(
                        "rank {rank} says that a buffer of {bytes} bytes lies at {at} of the arena, whose heaps begin at {heaps}"
                    )));
                }
                if *bytes >= LARGE && active.local.stage.seen.insert((at, *bytes)) {
                    arena.look_up(at, *bytes);
                }
                direct.bases.set(*buffer, arena.address(at, *bytes));
            }
        }
        active.local.stage.made += 1;
        // SAFETY: all ranks have made this call, and their buffers lie in the arena, as was just checked; no rank
        // leaves the call before all chunks are done.
        unsafe {
            let chunks = (&direct.data, &*direct.chunks, direct.data.stores);
            self.make_chunks(active, chunks, &direct.bases)
        }
    }

    /// # Safety
    /// As for [`RankCall::make`], for the blocks of the call.
    pub(crate) unsafe fn run_streams<B: CallBlocks>(
        &self,
        active: &mut ActiveCall<'_>,
        (streams, tiles, stores): (&Streams, &Tiles, Stores),
        blocks: &B,
        outside: UserBuffers,
    ) -> Result<(), Error> {
        let world = active.world;
        let arena = &world.shared.arena;
        let tile_bytes =
            |which: usize| (tiles.count * u64::from(self.units[which])) as usize * self.size;
        let input = arena.address(streams.places[0], tile_bytes(0));
        let output = arena.address(streams.places[1], tile_bytes(1));
        let [_, mut number] = blocks.tiles(tiles);
        let equal = <B::Of<'_> as Blocks>::EQUAL;
        if !equal {
            active.header.slot = number;
        }
        active.publish(0);
        // All ranks are in this call before any rank signals, so a refused call leaves no signal, and no rank uses the
        // scratch of an earlier plan any more.
        for other in world.others() {
            let theirs = active.meet(other, 0)?;
            // All ranks run as many tiles as the rank with the longest block.
            if !equal {
                number = number.max(theirs.slot);
            }
        }
        if number >= ALL {
            return Err(active.corrupt(format!("a rank says that it has {number} tiles")));
        }
        let recording = active.recording;
        let mut run = StreamRun::new(self, streams, active);
        for tile in 0..number {
            let inputs = tiles.stripes(tile, self.units[0], blocks.input());
            let outputs = tiles.stripes(tile, self.units[1], blocks.output());
            // SAFETY: in any sequence of runs, the proof lets the caller write a rank's input when the rank enters a
            // run, and read its output when the rank has left it.
            unsafe {
                let copy = recording.during(Recorded::CopyIn);
                self.copy_in(inputs, outside, input, Stores::Cached);
                drop(copy);
                run.go()?;
                let _copy = recording.during(Recorded::CopyOut);
                self.copy_out(outputs, output, outside, stores);
            }
        }
        Ok(())
    }
}
