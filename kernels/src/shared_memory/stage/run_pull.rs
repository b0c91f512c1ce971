//! Calls in which each rank makes its own result: the one loop over tiles for calls with one count and for calls with a
//! count for each block. A tile is a stripe of every block. All ranks use tiles of one size, and a block that is shorter
//! than its tile leaves the rest of its place empty, so no rank needs to know counts that are not of its own blocks.

use super::geometry::{Blocks, EqualBlocks, Stripe, Tiles};
use super::plan::WorldRank;
use super::pull::{Pull, ReadSource};
use crate::Error;
use crate::lowering::UserBuffers;
use crate::shared_memory::calls::ActiveCall;
use crate::shared_memory::world::memory::shared_state::{CallPosition, MOST_TILES};
use crate::shared_memory::world::ways::Way;

/// The number of tiles with which a rank says that it reads no other rank's input any more.
pub(crate) const ALL: u64 = MOST_TILES - 1;

/// The blocks of a rank's call.
pub(crate) trait CallBlocks {
    /// The blocks of one buffer.
    type Of<'b>: Blocks
    where
        Self: 'b;

    /// Returns the blocks of this rank's input.
    fn input(&self) -> Self::Of<'_>;

    /// Returns the blocks of this rank's output.
    fn output(&self) -> Self::Of<'_>;

    /// Returns the blocks of the input of rank `source` that this rank reads.
    fn theirs(&self, source: usize) -> Self::Of<'_>;

    /// Returns the number of tiles of this rank's input, and of all of its blocks.
    fn tiles(&self, tiles: &Tiles) -> [u64; 2];

    /// Returns the number of tiles that this rank reads of the input of rank `source`.
    fn tiles_of(&self, tiles: &Tiles, source: usize) -> u64;

    /// Takes what another rank has told about its input, which it has published.
    ///
    /// # Errors
    /// The error of a rank that tells what no correct rank tells.
    fn take(&mut self, active: &mut ActiveCall<'_>, source: &ReadSource) -> Result<(), Error>;

    /// Returns the address here of the input of rank `source`, if it lies in memory that both ranks share.
    fn shared(&self, source: usize) -> Option<*mut u8>;
}

/// The uses of this rank's input where it lies.
#[derive(Clone, Copy)]
pub(crate) struct InPlace {
    /// Whether this rank reads it there.
    pub(crate) own: bool,
    /// Whether other ranks read it there, so that nothing is staged.
    pub(crate) others: bool,
}

/// The blocks of a call with one count.
pub(crate) struct OneCount;

impl CallBlocks for OneCount {
    type Of<'b> = EqualBlocks;

    fn input(&self) -> EqualBlocks {
        EqualBlocks
    }

    fn output(&self) -> EqualBlocks {
        EqualBlocks
    }

    fn theirs(&self, _source: usize) -> EqualBlocks {
        EqualBlocks
    }

    fn tiles(&self, tiles: &Tiles) -> [u64; 2] {
        [tiles.number; 2]
    }

    fn tiles_of(&self, tiles: &Tiles, _source: usize) -> u64 {
        tiles.number
    }

    fn take(&mut self, _active: &mut ActiveCall<'_>, _source: &ReadSource) -> Result<(), Error> {
        Ok(())
    }

    fn shared(&self, _source: usize) -> Option<*mut u8> {
        None
    }
}

impl WorldRank {
    /// # Safety
    /// As for [`RankCall::make`](crate::lowering::RankCall::make), for the blocks of the call.
    pub(crate) unsafe fn run_pull<B: CallBlocks>(
        &self,
        active: &mut ActiveCall<'_>,
        (pull, tiles, way): (&Pull, &Tiles, Way),
        (mut blocks, in_place): (B, InPlace),
        outside: UserBuffers,
    ) -> Result<(), Error> {
        let [own_tiles, number] = blocks.tiles(tiles);
        let copies_own = pull.own.is_some() && !in_place.own;
        let units = if copies_own { None } else { Some(&*pull.read) };
        let stages = !in_place.others && (!pull.readers.is_empty() || copies_own);
        let to = (&pull.readers, way.passing());
        let (mut fetches, mut shares) = (false, false);
        if stages {
            let inputs = self.staged(tiles, 0, units, blocks.input());
            // SAFETY: the caller's promise.
            unsafe { self.stage(active, 0, to, outside, inputs)? };
        } else {
            // An input that lies where others read it is complete, so all of its tiles count as staged.
            active.publish(if in_place.others { own_tiles } else { 0 });
        }
        for tile in 0..number {
            if stages && tile + 1 < own_tiles {
                let inputs = self.staged(tiles, tile + 1, units, blocks.input());
                // SAFETY: the caller's promise.
                unsafe { self.stage(active, tile + 1, to, outside, inputs)? };
            }
            for source in &pull.sources {
                if tile > 0 && tile >= blocks.tiles_of(tiles, source.rank) {
                    continue;
                }
                self.tile_of(active, source.rank, tile)?;
                if tile == 0 {
                    blocks.take(active, source)?;
                }
                if blocks.shared(source.rank).is_some() {
                    // Each stripe has an address of its own.
                    shares = true;
                    continue;
                }
                match active.local.stage.lent[source.rank] {
                    0 => {
                        let slot = active.local.stage.first[source.rank].wrapping_add(tile);
                        self.point(&pull.bases, source.buffer, source.rank, slot);
                    }
                    from => {
                        fetches = true;
                        if source.folded {
                            let units = source.units.iter().copied();
                            let stripes = tiles.stripes_of(tile, units, blocks.theirs(source.rank));
                            let to = self.place_for(source.rank);
                            // SAFETY: the stripes lie within a tile, for which the place has room; the place is this
                            // rank's, which makes this call.
                            unsafe { self.fetch(active, source.rank, (from, to), stripes)? };
                            pull.bases.set(source.buffer, to);
                        }
                    }
                }
            }
            match &pull.own {
                Some(own) if copies_own && !stages => {
                    let units = own.source.units.iter().copied();
                    let stripes = tiles.stripes_of(tile, units, blocks.input());
                    // SAFETY: the caller's promise.
                    let copied = unsafe { self.fetch_own(stripes, outside) };
                    pull.bases.set(own.source.buffer, copied);
                }
                Some(own) if copies_own => {
                    let (buffer, slot) = (own.source.buffer, active.header.slot + tile);
                    self.point(&pull.bases, buffer, self.world.rank, slot);
                }
                _ => {}
            }
            // SAFETY: the caller's promise; the sources have staged their tiles, and use the slots again only when
            // this rank is done with them.
            unsafe {
                let own = in_place.own;
                self.pull_tile(active, (pull, tiles, way), (&blocks, tile, own), outside)?;
            };
            if tile + 1 < number {
                active.world.shared.finish(active.world.rank, active.number, tile + 1);
            }
        }
        if pull.sources.is_empty() {
            active.glance(&pull.readers)?;
        }
        if shares {
            // The owner of the memory leaves a failed call, and may then write there.
            active.goes_on()?;
        }
        if in_place.others || fetches {
            let readers = pull.readers.iter().copied().filter(|_| in_place.others);
            Self::give_back(active, readers, pull.sources.iter().map(|source| source.rank), ALL)
        } else {
            Ok(())
        }
    }

    /// Returns the stripes of a tile of some units of this rank's input, or of all.
    fn staged<'t, B: Blocks>(
        &self,
        tiles: &'t Tiles,
        tile: u64,
        units: Option<&'t [u64]>,
        blocks: B,
    ) -> impl Iterator<Item = Stripe> + use<'t, B> {
        let some = units.filter(|units| units.len() < self.units[0] as usize);
        let all = some.is_none().then(|| tiles.stripes(tile, self.units[0], blocks));
        let some = some.map(|units| tiles.stripes_of(tile, units.iter().copied(), blocks));
        all.into_iter().flatten().chain(some.into_iter().flatten())
    }

    /// Whether this rank can read its input where it lies while it writes its output, in a call with one count: the two are
    /// apart, or each element is read before the same element is written.
    pub(crate) fn reads_in_place(&self, pull: &Pull, tiles: &Tiles, outside: UserBuffers) -> bool {
        let Some(apart) = pull.own.as_ref().and_then(|own| own.apart.as_deref()) else {
            return false;
        };
        let [inputs, outputs] = self.part.lens.map(|elements| elements * self.size);
        let (input, output) = (outside.input.addr(), outside.output.addr());
        let same = |apart: &i64| tiles.shifted(outside.input, *apart, self.size).addr() == output;
        input + inputs <= output || output + outputs <= input || apart.iter().all(same)
    }

    /// # Safety
    /// As for [`Self::run_pull`]; the tiles that the segments read are staged, or this rank may read them where they lie.
    unsafe fn pull_tile<B: CallBlocks>(
        &self,
        active: &ActiveCall<'_>,
        (pull, tiles, way): (&Pull, &Tiles, Way),
        (blocks, tile, in_place): (&B, u64, bool),
        outside: UserBuffers,
    ) -> Result<(), Error> {
        let (size, partials) = (self.size, self.partials.address(0));
        let own = pull.own.as_ref().filter(|_| in_place);
        let own = own.and_then(|own| Some((own.source.buffer, own.apart.as_deref()?)));
        for ((segment, (begin, at)), step) in pull.data.all.iter().zip(&pull.outputs).zip(0..) {
            let _step = active.step(CallPosition { step, at: *at });
            let end = begin + segment.elements as u64;
            for part in tiles.within(tile, *begin, end, blocks.output()) {
                let stripe = part.stripe;
                if let Some((source, apart)) = pull.copies[step as usize]
                    && let lent @ 1.. = active.local.stage.lent[source]
                    && let Some(theirs) = blocks.theirs(source).beside(tiles, tile, part, apart)
                {
                    let from = lent.wrapping_add(theirs.outside.wrapping_mul(size as u64));
                    let to = outside.output.wrapping_add(stripe.outside as usize * size);
                    // SAFETY: the stripe lies within the caller's output.
                    unsafe { active.read_from(source, &[(from, to, stripe.len as usize * size)])? };
                    continue;
                }
                pull.bases.set(pull.output, stripe.base(outside.output, size));
                if let Some((buffer, apart)) = own
                    && let apart = apart[step as usize]
                    && let Some(mine) = blocks.input().beside(tiles, tile, part, apart)
                {
                    pull.bases.set(buffer, mine.base(outside.input.cast_mut(), size));
                }
                for source in &pull.sources {
                    let Some(base) = blocks.shared(source.rank) else { continue };
                    let apart = source.units[0].cast_signed() - part.unit.cast_signed();
                    let theirs = blocks.theirs(source.rank).beside(tiles, tile, part, apart);
                    if let Some(theirs) = theirs {
                        pull.bases.set(source.buffer, theirs.base(base, size));
                    }
                }
                let first = (stripe.inside - begin) as usize;
                let elements = first..first + stripe.len as usize;
                // SAFETY: the stripe lies within the caller's output and the staged tiles, or the blocks of other ranks,
                // which are valid by this function's safety rules; only this rank uses the partials.
                unsafe {
                    let data = &pull.data;
                    data.run_with(*segment, elements, &pull.bases, partials, way.stores, || false);
                }
            }
        }
        Ok(())
    }
}
