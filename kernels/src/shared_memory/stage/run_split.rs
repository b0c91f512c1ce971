//! Calls in which each rank makes a share of a result for all.

use super::geometry::{Stripe, Tiles};
use super::plan::WorldRank;
use super::run_pull::ALL;
use super::split::Split;
use crate::Error;
use crate::lowering::UserBuffers;
use crate::recorder::Recorded;
use crate::shared_memory::calls::ActiveCall;
use crate::shared_memory::world::memory::arena::SLOT;
use crate::shared_memory::world::memory::shared_state::CallPosition;
use crate::shared_memory::world::ways::Way;

/// Bytes of a piece of a share whose inputs the system copies: they stay in a second cache until they are read.
const PIECE: usize = 128 << 10;

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
        let lent = way.lends_results() && Self::all_lend(active)?;
        let stages = !(lent && way.lends());
        // In its step 2t a rank has staged its tile t, and in its step 2t + 1 it has made its share of it.
        let stage = |active: &mut ActiveCall<'_>, tile: u64| {
            if !stages {
                world.shared.stage(world.rank, active.number, 2 * tile + 1);
                return Ok(());
            }
            let others = (0..n).filter(|maker| *maker != split.rank);
            let stripes = others.flat_map(|maker| split.share(tiles, tile, maker));
            // No rank reads the slot any more: this rank has waited until all had made their shares of its last tile.
            // SAFETY: the caller's promise.
            unsafe {
                let stripes = stripes.map(|(_, stripe)| stripe);
                self.stage(active, 2 * tile, (&split.readers, way.passing()), outside, stripes)
            }
        };
        let staged = active.local.stage.slots;
        stage(active, 0)?;
        for tile in 0..tiles.number {
            for other in world.others() {
                self.tile_of(active, other, 2 * tile)?;
                if stages {
                    let slot = active.local.stage.first[other].wrapping_add(tile);
                    self.point(&split.bases, split.inputs[other], other, slot);
                }
            }
            active.local.stage.made += 1;
            let common = arena.address(arena.layout.common(active.local.stage.made), SLOT);
            for (nth, stripe) in split.share(tiles, tile, split.rank) {
                let piece = if stages { stripe.len } else { (PIECE / self.size) as u64 };
                for piece in stripe.pieces(piece) {
                    if !stages {
                        self.fetch_inputs(active, split, piece)?;
                    }
                    // SAFETY: the caller's promise; all ranks have staged the tile, so all have copied the earlier tile
                    // out of the common place, and the slots stay until this rank has made its share; no other rank
                    // accesses the part of a slot that this share is of, until then.
                    unsafe {
                        let common = (!lent).then_some(common);
                        self.make_piece(active, (split, nth, way), (piece, common), outside);
                    }
                }
            }
            world.shared.stage(world.rank, active.number, 2 * tile + 2);
            if tile + 1 < tiles.number {
                stage(active, tile + 1)?;
            }
            let made = if split.in_place {
                self.slot(world.rank, staged.wrapping_add(tile))
            } else {
                common
            };
            for other in world.others() {
                self.tile_of(active, other, 2 * tile + 1)?;
                let _copy = active.recording.during(Recorded::CopyOut);
                let shares = split.share(tiles, tile, other).map(|(_, stripe)| stripe);
                // SAFETY: the other rank has made its share, which stays in its output until this call ends, and in the
                // common place or in this rank's slot until this rank has staged the tile after next; the stripes lie within
                // the caller's output and within the tile, and no rank reads the shares of others in this rank's output.
                unsafe {
                    if lent {
                        let shares = shares.map(|share| Stripe { inside: share.outside, ..share });
                        let from = active.local.stage.lent[other];
                        self.fetch(active, other, (from, outside.output), shares)?;
                    } else {
                        self.copy_out(shares, made, outside, way.stores);
                    }
                }
            }
        }
        if lent { Self::give_back(active, world.others(), world.others(), ALL) } else { Ok(()) }
    }

    /// Whether all ranks lend their buffers in this call: every rank finds the same, as every rank reads the headers of
    /// all.
    fn all_lend(active: &mut ActiveCall<'_>) -> Result<bool, Error> {
        let mut all = active.header.lent != 0;
        active.publish(0);
        for other in active.world.others() {
            all &= active.meet(other, 0)?.lent != 0;
        }
        Ok(all)
    }

    /// Has the system copy a piece of this rank's share of the inputs of the other ranks.
    fn fetch_inputs(
        &self,
        active: &ActiveCall<'_>,
        split: &Split,
        piece: Stripe,
    ) -> Result<(), Error> {
        for other in active.world.others() {
            let (from, to) = (active.local.stage.first[other], self.place_for(other));
            let copied = Stripe { inside: 0, ..piece };
            // SAFETY: the place has room for a piece, and is this rank's, which makes this call.
            unsafe { self.fetch(active, other, (from, to), std::iter::once(copied))? };
            let inside = piece.inside as usize * self.size;
            split.bases.set(split.inputs[other], to.wrapping_sub(inside));
        }
        Ok(())
    }

    /// Makes a piece of this rank's share of a tile, in its output and in the places from which others copy: those of their
    /// inputs, or the common one, if there is one.
    ///
    /// # Safety
    /// As for [`RankCall::make`](crate::lowering::RankCall::make); the bases of the other ranks' inputs are those of the
    /// piece.
    unsafe fn make_piece(
        &self,
        active: &ActiveCall<'_>,
        (split, nth, way): (&Split, usize, Way),
        (piece, common): (Stripe, Option<*mut u8>),
        outside: UserBuffers,
    ) {
        let (begin, at) = split.places[nth];
        let _step = active.step(CallPosition { step: nth as u32, at });
        let output = piece.base(outside.output, self.size);
        let input = piece.base(outside.input.cast_mut(), self.size);
        split.bases.set(split.inputs[split.rank], input);
        split.bases.set(split.output, output);
        for (rank, copy) in &split.copies {
            let slot = || split.bases.get(split.inputs[*rank]);
            let place = if split.in_place { slot() } else { common.unwrap_or(output) };
            split.bases.set(*copy, place);
        }
        let first = (piece.inside - begin) as usize;
        let elements = first..first + piece.len as usize;
        let (data, partials) = (&split.data, self.partials.address(0));
        // SAFETY: the piece lies within the caller's buffers and the tile; in place, an element of an input is read before
        // the same element of the output is written; only this rank uses the partials.
        unsafe {
            let segment = data.all[nth];
            data.run_with(segment, elements, &split.bases, partials, way.passing(), || false);
        }
    }
}
