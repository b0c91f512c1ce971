//! Calls in which each rank makes its own result.

use super::geometry::{Stripe, Tiles};
use super::plan::WorldRank;
use super::pull::Pull;
use crate::Error;
use crate::lowered::UserBuffers;
use crate::shared_memory::calls::ActiveCall;
use crate::shared_memory::world::memory::shared_state::CallPosition;
use crate::shared_memory::world::ways::Way;

/// The units of this rank's input that a call stages, or all units.
type Staged<'p> = Option<&'p [u64]>;

impl WorldRank {
    /// # Safety
    /// As for [`RankCall::make`].
    pub(crate) unsafe fn run_pull(
        &self,
        active: &mut ActiveCall<'_>,
        (pull, tiles, way): (&Pull, &Tiles, Way),
        outside: UserBuffers,
    ) -> Result<(), Error> {
        let number = tiles.number;
        let lent = self.lends(active, pull, way, outside);
        let in_place = self.reads_in_place(pull, tiles, outside);
        let copies_own = pull.own.is_some() && !in_place;
        let staged: Staged<'_> = if copies_own { None } else { Some(&pull.read) };
        let stages = lent.is_none() && (!pull.readers.is_empty() || copies_own);
        let inputs = |tile: u64| self.staged(tiles, tile, staged);
        let to = (&pull.readers, way.passing());
        active.header.lent = lent.unwrap_or(0);
        let mut fetches = false;
        if stages {
            // SAFETY: the caller's promise.
            unsafe { self.stage(active, 0, to, outside, inputs(0))? };
        } else {
            // A lent input is complete, so all of its tiles count as staged.
            active.publish(if lent.is_some() { number } else { 0 });
        }
        for tile in 0..number {
            if stages && tile + 1 < number {
                // SAFETY: the caller's promise.
                unsafe { self.stage(active, tile + 1, to, outside, inputs(tile + 1))? };
            }
            for source in &pull.sources {
                self.tile_of(active, source.rank, tile)?;
                match active.local.stage.lent[source.rank] {
                    0 => {
                        let slot = active.local.stage.first[source.rank].wrapping_add(tile);
                        self.point(&pull.bases, source.buffer, source.rank, slot);
                    }
                    from => {
                        fetches = true;
                        if source.folded {
                            let units = source.units.iter().copied();
                            let stripes = tiles.stripes_of(tile, units);
                            let copied = self.fetch(active, source.rank, from, stripes)?;
                            pull.bases.set(source.buffer, copied);
                        }
                    }
                }
            }
            match &pull.own {
                Some(own) if copies_own && lent.is_some() => {
                    // SAFETY: the caller's promise.
                    let copied = unsafe { self.fetch_own(&own.source, tiles, outside, tile) };
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
            unsafe { self.pull_tile(active, (pull, tiles, way), (tile, in_place), outside)? };
            if tile + 1 < number {
                active.world.shared.finish(active.world.rank, active.number, tile + 1);
            }
        }
        if pull.sources.is_empty() {
            active.glance(&pull.readers)?;
        }
        if lent.is_some() || fetches {
            Self::give_back(active, pull, lent.is_some(), number)
        } else {
            Ok(())
        }
    }

    /// Returns the stripes of a tile of some units of this rank's input.
    fn staged<'t>(
        &self,
        tiles: &'t Tiles,
        tile: u64,
        units: Staged<'t>,
    ) -> impl Iterator<Item = Stripe> + use<'t> {
        let some = units.filter(|units| units.len() < self.units[0] as usize);
        let all = some.is_none().then(|| tiles.stripes(tile, self.units[0]));
        let some = some.map(|units| tiles.stripes_of(tile, units.iter().copied()));
        all.into_iter().flatten().chain(some.into_iter().flatten())
    }

    /// Whether this rank can read its input where it lies while it writes its output: the two are apart, or each element
    /// is read before the same element is written.
    fn reads_in_place(&self, pull: &Pull, tiles: &Tiles, outside: UserBuffers) -> bool {
        let Some(apart) = pull.own.as_ref().and_then(|own| own.apart.as_deref()) else {
            return false;
        };
        let [inputs, outputs] = self.part.lens.map(|elements| elements * self.size);
        let (input, output) = (outside.input.addr(), outside.output.addr());
        let same = |apart: &i64| tiles.shifted(outside.input, *apart, self.size).addr() == output;
        input + inputs <= output || output + outputs <= input || apart.iter().all(same)
    }

    /// # Safety
    /// As for [`RankCall::make`]; the tiles that the segments read are staged, or this rank may read them where they lie.
    unsafe fn pull_tile(
        &self,
        active: &ActiveCall<'_>,
        (pull, tiles, way): (&Pull, &Tiles, Way),
        (tile, in_place): (u64, bool),
        outside: UserBuffers,
    ) -> Result<(), Error> {
        let partials = self.partials.address(0);
        let own = pull.own.as_ref().filter(|_| in_place);
        let own = own.and_then(|own| Some((own.source.buffer, own.apart.as_deref()?)));
        for ((segment, (begin, at)), step) in pull.data.all.iter().zip(&pull.outputs).zip(0..) {
            let _step = active.step(CallPosition { step, at: *at });
            let end = begin + segment.elements as u64;
            for stripe in tiles.within(tile, *begin, end) {
                if let Some((source, apart)) = pull.copies[step as usize]
                    && let lent @ 1.. = active.local.stage.lent[source]
                {
                    let from =
                        stripe.outside.wrapping_add_signed(apart.wrapping_mul(tiles.whole()));
                    let from = lent.wrapping_add(from.wrapping_mul(self.size as u64));
                    let to = outside.output.wrapping_add(stripe.outside as usize * self.size);
                    // SAFETY: the stripe lies within the caller's output.
                    unsafe {
                        active.read_from(source, &[(from, to, stripe.len as usize * self.size)])?;
                    };
                    continue;
                }
                pull.bases.set(pull.output, stripe.base(outside.output, self.size));
                if let Some((buffer, apart)) = own {
                    let input = tiles.shifted(outside.input, apart[step as usize], self.size);
                    let inside = apart[step as usize].wrapping_mul(tiles.count.cast_signed());
                    let inside = (inside as usize).wrapping_mul(self.size);
                    let base = stripe.base(input.cast_mut(), self.size).wrapping_sub(inside);
                    pull.bases.set(buffer, base);
                }
                let first = (stripe.inside - begin) as usize;
                let elements = first..first + stripe.len as usize;
                // SAFETY: the stripe lies within the caller's output and the staged tiles, which are valid by this
                // function's safety rules; only this rank uses the partials.
                unsafe {
                    let data = &pull.data;
                    data.run_with(*segment, elements, &pull.bases, partials, way.stores, || false);
                }
            }
        }
        Ok(())
    }
}
