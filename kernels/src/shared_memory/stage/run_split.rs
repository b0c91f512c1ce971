//! Calls in which each rank makes a share of a result for all.

use super::geometry::Tiles;
use super::plan::WorldRank;
use super::split::Split;
use crate::Error;
use crate::lowering::UserBuffers;
use crate::recorder::Recorded;
use crate::shared_memory::calls::ActiveCall;
use crate::shared_memory::world::memory::arena::SLOT;
use crate::shared_memory::world::memory::shared_state::CallPosition;
use crate::shared_memory::world::ways::Way;

impl WorldRank {
    /// # Safety
    /// As for [`RankCall::make`](crate::lowering::RankCall::make).
    pub(crate) unsafe fn run_split(
        &self,
        active: &mut ActiveCall<'_>,
        (split, tiles, way): (&Split, &Tiles, Way),
        outside: UserBuffers,
    ) -> Result<(), Error> {
        let world = active.world;
        let arena = &world.shared.arena;
        let n = world.shared.nranks();
        // In its step 2t a rank has staged its tile t, and in its step 2t + 1 it has made its share of it.
        let stage = |active: &mut ActiveCall<'_>, tile: u64| {
            let others = (0..n).filter(|maker| *maker != split.rank);
            let stripes = others.flat_map(|maker| split.share(tiles, tile, maker));
            // No rank reads the slot any more: this rank has waited until all had made their shares of its last tile.
            // SAFETY: the caller's promise.
            unsafe {
                let stripes = stripes.map(|(_, stripe)| stripe);
                self.stage(active, 2 * tile, (&split.readers, way.passing()), outside, stripes)
            }
        };
        stage(active, 0)?;
        for tile in 0..tiles.number {
            for other in world.others() {
                self.tile_of(active, other, 2 * tile)?;
            }
            active.local.stage.first[world.rank] = active.header.slot;
            for (rank, buffer) in
                split.inputs.iter().enumerate().filter(|(rank, _)| *rank != split.rank)
            {
                self.point(
                    &split.bases,
                    *buffer,
                    rank,
                    active.local.stage.first[rank].wrapping_add(tile),
                );
            }
            active.local.stage.made += 1;
            let common = arena.address(arena.layout.common(active.local.stage.made), SLOT);
            split.bases.set(split.outputs[1], common);
            // SAFETY: the caller's promise; all ranks have staged the tile, so all have copied the earlier tile out of
            // the common place, and the slots stay until this rank has made its share.
            unsafe { self.make_share(active, (split, tiles, way), tile, outside) };
            world.shared.stage(world.rank, active.number, 2 * tile + 2);
            if tile + 1 < tiles.number {
                stage(active, tile + 1)?;
            }
            for other in world.others() {
                self.tile_of(active, other, 2 * tile + 1)?;
                let _copy = active.recording.during(Recorded::CopyOut);
                for (_, stripe) in split.share(tiles, tile, other) {
                    // SAFETY: the other rank has made its share, which stays until this rank has staged the tile after
                    // next; the stripe lies within the caller's output and within the tile.
                    unsafe { self.copy_out(std::iter::once(stripe), common, outside, way.stores) };
                }
            }
        }
        Ok(())
    }

    /// # Safety
    /// As for [`RankCall::make`](crate::lowering::RankCall::make); the bases of the other ranks' inputs and of the common
    /// place are those of the tile.
    unsafe fn make_share(
        &self,
        active: &ActiveCall<'_>,
        (split, tiles, way): (&Split, &Tiles, Way),
        tile: u64,
        outside: UserBuffers,
    ) {
        let partials = self.partials.address(0);
        for (nth, stripe) in split.share(tiles, tile, split.rank) {
            let (begin, at) = split.places[nth];
            let _step = active.step(CallPosition { step: nth as u32, at });
            let input = stripe.base(outside.input.cast_mut(), self.size);
            split.bases.set(split.inputs[split.rank], input);
            split.bases.set(split.outputs[0], stripe.base(outside.output, self.size));
            let first = (stripe.inside - begin) as usize;
            let elements = first..first + stripe.len as usize;
            let segment = split.data.all[nth];
            // SAFETY: the stripe lies within the caller's buffers and the tile; in place, an element of the input is
            // read before the same element of the output is written; only this rank uses the partials.
            unsafe {
                let data = &split.data;
                data.run_with(segment, elements, &split.bases, partials, way.passing(), || false);
            }
        }
    }
}
