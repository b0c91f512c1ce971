//! A result that all ranks get, of which each rank makes a share for all. A rank stages only the parts of its input that
//! other ranks fold, reads its own part where it lies, and writes its share both to its own output and to the place from
//! which the other ranks copy it.

use std::sync::Arc;

use roundelay_core::ids::RankId;
use roundelay_core::schedule::{Buffer, Schedule};

use super::arena::{LINE, SLOT};
use super::calls::ActiveCall;
use super::geometry::{Stripe, Tiles};
use super::plan::WorldRank;
use super::shared_state::CallPosition;
use super::strategy::SegmentStatements;
use super::ways::Way;
use crate::Error;
use crate::lowered::{Bases, Code, Move, Operand, PARTIAL, Segments, UserBuffers};

/// The code with which a rank makes its share.
pub(super) struct Split {
    data: Segments,
    bases: Bases,
    /// The place of each segment in the output, in elements of a tile, and the segment's statements, counted from 1.
    places: Box<[(u64, u32)]>,
    /// The number of each rank's input in the code.
    inputs: Box<[u32]>,
    /// The numbers of this rank's output and of the common place in the code.
    outputs: [u32; 2],
    rank: usize,
    /// The ranks that must be done with a slot before it is used again: none, as all have then made their shares.
    readers: Arc<[usize]>,
}

impl Split {
    /// Makes the code of a rank, of a schedule in which all ranks get the same result; `None` where an element of the
    /// result is not made of the elements of the inputs at the same place.
    pub(super) fn new(
        code: &Code,
        schedule: &Schedule,
        rank: RankId,
        stands: &SegmentStatements,
    ) -> Option<Self> {
        let all = &code.segments;
        let ranks = || (0..schedule.nranks).map(RankId);
        let inputs: Box<[u32]> =
            ranks().map(|rank| code.buffers.index(Buffer::Input, rank)).collect();
        // Every rank has the result, so the number of another rank's output can stand for the common place.
        let other = ranks().find(|other| *other != rank)?;
        let outputs = [rank, other].map(|rank| code.buffers.index(Buffer::Output, rank));
        let (mut moves, mut operands) = (Vec::new(), Vec::new());
        for m in &all.moves {
            let (srcs, dsts) = all.of(*m).split_at(m.srcs as usize);
            let first = operands.len() as u32;
            operands.extend_from_slice(srcs);
            let kept = |dst: &&Operand| dst.buffer == PARTIAL || outputs.contains(&dst.buffer);
            operands.extend(dsts.iter().filter(kept));
            let dsts = (operands.len() - first as usize - srcs.len()) as u8;
            moves.push(Move { first, dsts, ..*m });
        }
        let data = Segments { moves: moves.into(), operands: operands.into(), ..all.clone() };
        let mut places = Vec::new();
        for (segment, stands) in all.all.iter().zip(&stands.0) {
            let of = |rank| all.destinations(*segment, code.buffers.index(Buffer::Output, rank));
            let [begin] = of(rank)[..] else { return None };
            let read = |input: &u32| all.sources(*segment, *input) == [begin];
            if !ranks().all(|rank| of(rank) == [begin]) || !inputs.iter().all(read) {
                return None;
            }
            places.push((begin, *stands));
        }
        let bases = Bases::new(code.buffers.len.len());
        Some(Self {
            data,
            bases,
            places: places.into(),
            inputs,
            outputs,
            rank: rank.index(),
            readers: Arc::default(),
        })
    }

    pub(super) fn data(&self) -> &Segments {
        &self.data
    }

    /// Returns the stripes of a tile that a rank makes, with the number of the segment of each.
    fn share<'s>(
        &'s self,
        tiles: &'s Tiles,
        tile: u64,
        maker: usize,
    ) -> impl Iterator<Item = (usize, Stripe)> + 's {
        let line = (LINE / self.data.kernel.size()).max(1) as u64;
        let n = self.inputs.len() as u64;
        self.places.iter().enumerate().flat_map(move |(nth, (begin, _))| {
            let elements = self.data.all[nth].elements as u64;
            let lines = elements.div_ceil(line);
            let at = |share: u64| begin + (lines * share / n * line).min(elements);
            let (from, to) = (at(maker as u64), at(maker as u64 + 1));
            let stripes = tiles.within(tile, *begin, begin + elements);
            stripes.filter_map(move |stripe| Some((nth, stripe.clipped(from, to)?)))
        })
    }
}

impl WorldRank {
    /// # Safety
    /// As for [`RankCall::make`](crate::lowered::RankCall::make).
    pub(super) unsafe fn run_split(
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
            active.local.first[world.rank] = active.header.slot;
            for (rank, buffer) in
                split.inputs.iter().enumerate().filter(|(rank, _)| *rank != split.rank)
            {
                self.point(
                    &split.bases,
                    *buffer,
                    rank,
                    active.local.first[rank].wrapping_add(tile),
                );
            }
            active.local.made += 1;
            let common = arena.address(arena.layout.common(active.local.made), SLOT);
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
    /// As for [`RankCall::make`](crate::lowered::RankCall::make); the bases of the other ranks' inputs and of the common
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
            active.stand(CallPosition { step: nth as u32, at });
            let shifted = |base: *mut u8| {
                let shift = (stripe.outside as usize).wrapping_sub(stripe.inside as usize);
                base.wrapping_add(shift.wrapping_mul(self.size))
            };
            split.bases.set(split.inputs[split.rank], shifted(outside.input.cast_mut()));
            let first = (stripe.inside - begin) as usize;
            let elements = first..first + stripe.len as usize;
            let segment = split.data.all[nth];
            split.bases.set(split.outputs[0], shifted(outside.output));
            // SAFETY: the stripe lies within the caller's buffers and the tile; in place, an element of the input is
            // read before the same element of the output is written; only this rank uses the partials.
            unsafe {
                let data = &split.data;
                data.run_with(segment, elements, &split.bases, partials, way.passing(), || false);
            }
        }
    }
}
