//! Calls with a count for each block, whose counts and places are those of the call and not of the plan: one plan serves
//! every vector of counts.
//!
//! A tile is a stripe of every block: all ranks use tiles of one size, and a block that is shorter than its tile leaves
//! the rest of its place empty. So no rank needs to know counts that are not of its own blocks. Each rank tells the
//! counts that it knows and the places of the blocks of its input before another rank reads them.

use std::fmt;
use std::sync::Arc;

use roundelay_core::counts::{Block, RankBlocks};
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::verify::Proved;

use super::geometry::{Stripe, Tiles};
use super::plan::{WorldRank, keeps_blocks};
use super::plan_sharing::Prepared;
use super::pull::{OwnInput, Pull};
use super::strategy::{Strategy, Streams};
use super::streams::StreamRun;
use crate::Error;
use crate::lowered::planned::{check_multiple, extent};
use crate::lowered::{RankCall as _, UserBuffers};
use crate::reduce::Stores;
use crate::shared_memory::calls::ActiveCall;
use crate::shared_memory::world::World;
use crate::shared_memory::world::memory::shared_state::{CallHeader, CallPosition, MOST_TILES};
use crate::shared_memory::world::ways::{Shape, Way};

/// The number of tiles with which a rank says that it reads no other rank's input any more.
const ALL: u64 = MOST_TILES - 1;

/// The part of a process of one host in calls with a count for each block.
pub struct BlocksPlan(WorldRank);

/// The place of the block of another rank's input that this rank reads in a call. The other rank's words about it are
/// read once.
#[derive(Clone, Copy)]
enum Source {
    /// It is staged tile by tile.
    Staged,
    /// It is counted from this address of the other rank's memory.
    Lent(u64, Block),
    /// It is counted from this address of memory that both ranks share.
    Shared(*mut u8, Block),
}

impl fmt::Debug for BlocksPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.part.fmt(f)
    }
}

impl BlocksPlan {
    /// Makes the plan of the rank of `world` for calls of a schedule with a count for each block.
    ///
    /// # Errors
    /// E0319 for a schedule that is right for equal counts alone; else the errors of
    /// [`WorldPlan::new`](super::WorldPlan::new).
    pub fn new(
        world: &Arc<World>,
        proved: &Proved,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<Self, Error> {
        WorldRank::of_blocks(world, proved, dtype, op).map(Self)
    }

    /// Makes a call on bytes that hold the blocks, whose places are counted in elements.
    ///
    /// # Errors
    /// E0402 for a slice that ends before its last block does, E0404 for one that is not aligned, E0406 for a count that
    /// the algorithm does not take; the errors of [calls](crate::Runs#errors-of-calls).
    pub fn run_bytes(
        &self,
        blocks: &RankBlocks,
        input: &[u8],
        output: &mut [u8],
    ) -> Result<(), Error> {
        let (call, rank) = (&self.0.part.call, self.0.world.id());
        let of =
            [("input", blocks.input(), extent(input)), ("output", blocks.output(), extent(output))];
        for (what, blocks, (len, address)) in of {
            let expected = Block::end(blocks) * self.0.size as u64;
            let (given, unit) = (len as u64, "bytes");
            if given < expected {
                return Err(Error::WrongBufferLength { what, rank, given, expected, unit });
            }
            if expected > 0 && !address.is_multiple_of(self.0.size as u64) {
                return Err(Error::MisalignedBuffer { what, rank, dtype: call.dtype });
            }
        }
        let buffers = UserBuffers::new(input.as_ptr(), output.as_mut_ptr());
        // SAFETY: both slices hold the blocks, and are borrowed for the call.
        unsafe { self.run_at(blocks, buffers) }
    }

    /// Returns the number that every count is a multiple of.
    pub fn multiple(&self) -> u64 {
        self.0.running().multiple
    }

    /// Whether the algorithm can run in place: a block of the input is then the same block of the output.
    ///
    /// # Errors
    /// E0408 with the reason.
    pub fn check_in_place(&self) -> Result<(), Error> {
        self.0.part.call.check_in_place()
    }

    /// Makes a call on blocks at addresses: the places of blocks are counted from the addresses of `buffers`.
    ///
    /// # Errors
    /// E0406 for a count that the algorithm does not take; the errors of [calls](crate::Runs#errors-of-calls).
    ///
    /// # Safety
    /// The blocks are valid, aligned and initialized, those of the output writable, and lent for the call. A block of
    /// the input and a block of the output are apart, or the same block of the collective at the same address.
    pub unsafe fn run_at(&self, blocks: &RankBlocks, buffers: UserBuffers) -> Result<(), Error> {
        let rank = &self.0;
        if let Some(first) = rank.first_call()? {
            let first = first.of_blocks(blocks.input(), blocks.output());
            // SAFETY: the blocks of a check lie as the caller's do.
            let make = |buffers| unsafe { rank.run_blocks(blocks, buffers) };
            first.make(buffers, |like, words| rank.memory(like, words), make)?;
        }
        // SAFETY: the caller's promise.
        unsafe { rank.run_blocks(blocks, buffers) }
    }
}

impl WorldRank {
    /// Makes the part of a rank in calls with a count for each block.
    pub(crate) fn of_blocks(
        world: &Arc<World>,
        proved: &Proved,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<Self, Error> {
        keeps_blocks(proved.schedule())?;
        let prepared = Prepared::own(proved.clone());
        let mut rank = Self::new(world, &prepared, None, (dtype, op))?;
        // The optimizer may have moved blocks otherwise.
        keeps_blocks(rank.running())?;
        let call = (rank.part.call.schedule.collective, rank.part.call.schedule.root);
        // Other tiles are another call: all ranks use tiles of one size.
        let identity = rank.header.identity ^ rank.routes.first.tiles.count.rotate_left(32);
        rank.header = CallHeader::of_blocks(identity, call, (0, dtype, op));
        Ok(rank)
    }

    /// # Safety
    /// As for [`BlocksPlan::run_at`].
    pub(crate) unsafe fn run_blocks(
        &self,
        blocks: &RankBlocks,
        buffers: UserBuffers,
    ) -> Result<(), Error> {
        let units = [blocks.input(), blocks.output()].map(|of| of.len() as u32);
        let given = (blocks.collective(), blocks.rank(), blocks.nranks(), units);
        let schedule = self.running();
        if given != (schedule.collective, self.world.id(), schedule.nranks, self.units) {
            let (collective, rank) = (schedule.collective, self.world.id());
            let what = format!("these are no blocks of rank {rank} in this {collective}");
            return Err(Error::BadCounts { what });
        }
        for block in blocks.input().iter().chain(blocks.output()) {
            check_multiple(schedule, block.count)?;
        }
        if self.routes.first.tiles.number_of(blocks.largest()) >= ALL {
            let what = format!("a block of {} elements", blocks.largest());
            return Err(Error::TooLarge { what });
        }
        let mut header = self.header.checks(buffers.check);
        if blocks.all_known() {
            header.count = digest(blocks.told());
        }
        let mut active = self.world.begin(header, self.running())?;
        active.blocks = Some(blocks);
        active.world.shared.tell(active.world.rank, active.number, blocks);
        let call = BlocksCall { rank: self, blocks, buffers };
        // SAFETY: the caller's promise.
        let done = unsafe {
            match &self.routes.first.strategy {
                Strategy::Pull(pull) => call.pull(&mut active, pull),
                Strategy::Streams(streams) => call.streams(&mut active, streams),
                Strategy::Common(_) | Strategy::Split(_) => {
                    unreachable!("ranks own the blocks of an output")
                }
            }
        };
        let len = Block::end(blocks.output()) as usize * self.size;
        // SAFETY: the caller's promise.
        unsafe { self.world.fault.flip(active.number, buffers.output, len) };
        active.end(done)
    }
}

/// Returns a number that differs, with all likelihood, for different vectors.
fn digest(counts: impl Iterator<Item = u64>) -> u64 {
    // The finalizer of SplitMix64.
    let mix = |z: u64| {
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    };
    counts.fold(0, |sum: u64, count| {
        mix(sum.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_add(mix(count)))
    })
}

/// One call of a rank.
struct BlocksCall<'c> {
    rank: &'c WorldRank,
    blocks: &'c RankBlocks,
    buffers: UserBuffers,
}

impl BlocksCall<'_> {
    fn tiling(&self) -> &Tiles {
        &self.rank.routes.first.tiles
    }

    /// Returns the number of tiles of some blocks.
    fn tiles(&self, blocks: &[Block]) -> u64 {
        let most = blocks.iter().map(|block| block.count).max().unwrap_or(0);
        self.tiling().number_of(most)
    }

    /// Returns the stripes of a tile of this rank's input.
    fn inputs(&self, tile: u64) -> impl Iterator<Item = Stripe> + '_ {
        self.tiling().stripes_of_blocks(tile, (0..).zip(self.blocks.input().iter().copied()))
    }

    /// Whether other ranks may read this rank's input where it lies until the call ends: the output does not overwrite
    /// it, or overwrites it by the same bytes.
    fn stays(&self) -> bool {
        let size = self.rank.size;
        let span = |from: *const u8, blocks: &[Block]| {
            let filled = || blocks.iter().filter(|block| block.count > 0);
            let at = |element: u64| from.addr().wrapping_add((element as usize).wrapping_mul(size));
            let first = filled().map(|block| at(block.start)).min();
            let end = filled().map(|block| at(block.start + block.count)).max();
            first.zip(end)
        };
        let input = span(self.buffers.input, self.blocks.input());
        let output = span(self.buffers.output, self.blocks.output());
        match (input, output) {
            (Some((first, end)), Some((begin, last))) => {
                end <= begin || last <= first || !self.rank.part.call.schedule.collective.reduces()
            }
            _ => true,
        }
    }

    /// Returns the position of the input in the arena, if all of its blocks lie there.
    fn shared(&self) -> Option<u64> {
        let arena = &self.rank.world.shared.arena;
        let size = self.rank.size as u64;
        let mut position = None;
        for block in self.blocks.input().iter().filter(|block| block.count > 0) {
            let from = block.start.wrapping_mul(size);
            let at = self.buffers.input.wrapping_add(from as usize);
            let at = arena.offset(at, (block.count * size) as usize)?;
            position = Some((at as u64).wrapping_sub(from));
        }
        position
    }

    /// Returns the block of another rank's input that this rank reads, which lies where that rank said.
    fn block_of(&self, active: &ActiveCall<'_>, source: usize, unit: u64) -> Block {
        let start = active.world.shared.start(source, active.number, unit as usize);
        Block { start, count: self.taken(source).count }
    }

    /// Returns the block of this rank's output to which the input of a rank contributes.
    fn taken(&self, source: usize) -> Block {
        let output = self.blocks.output();
        if output.len() == 1 { output[0] } else { output[source] }
    }

    /// Returns the address of a block in memory that both ranks share, less its place.
    fn base_of(
        &self,
        active: &ActiveCall<'_>,
        source: usize,
        position: u64,
        block: Block,
    ) -> Result<*mut u8, Error> {
        let (arena, size) = (&active.world.shared.arena, self.rank.size as u64);
        if block.count == 0 {
            return Ok(std::ptr::null_mut());
        }
        // Another process wrote these numbers, which must lie in its heap.
        let from = block.start.wrapping_mul(size);
        let at = position.wrapping_add(from);
        let (heap, bytes) = (arena.layout.heap_of(source) as u64, block.count * size);
        let end = heap + arena.layout.heap as u64;
        if at < heap || at >= end || end - at < bytes || !at.is_multiple_of(size) {
            let what = format!(
                "rank {source} says that a block of {bytes} bytes lies at {at} of the arena, whose heap begins at {heap}"
            );
            return Err(active.corrupt(what));
        }
        Ok(arena.address(at as usize, bytes as usize).wrapping_sub(from as usize))
    }

    /// # Safety
    /// As for [`BlocksPlan::run_at`].
    unsafe fn pull(&self, active: &mut ActiveCall<'_>, pull: &Pull) -> Result<(), Error> {
        let (rank, size) = (self.rank, self.rank.size);
        let own_tiles = self.tiles(self.blocks.input()).max(1);
        let tiles = own_tiles.max(self.tiles(self.blocks.output()));
        let read = !pull.readers.is_empty();
        let stays = read && self.stays();
        let shared = self.shared().filter(|_| stays);
        let bytes =
            self.blocks.input().iter().map(|block| block.count).sum::<u64>() as usize * size;
        // All ranks look whether they can read each other's memory where any of them may lend.
        let most = self.blocks.told().max().unwrap_or(0) as usize * size;
        let way = |bytes| Way::usual(Shape { bytes, output: bytes, shares: false });
        let reach =
            read && (way(most).lends() || way(bytes).lends()) && WorldRank::can_lend(active);
        let lends = stays && shared.is_none() && reach && way(bytes).lends();
        active.header.direct = shared.map(|at| [at, 0]);
        active.header.lent = if lends { self.buffers.input.addr() as u64 } else { 0 };
        let stages = read && shared.is_none() && !lends;
        if stages {
            // SAFETY: the caller's promise.
            unsafe {
                rank.stage(
                    active,
                    0,
                    (&pull.readers, Stores::Cached),
                    self.buffers,
                    self.inputs(0),
                )?;
            };
        } else {
            // An input that lies where others read it is complete, so all of its tiles count as staged.
            active.publish(own_tiles);
        }
        let mut sources = vec![Source::Staged; active.world.shared.nranks()];
        let mut fetched = Vec::new();
        for tile in 0..tiles {
            if stages && tile + 1 < own_tiles {
                // SAFETY: the caller's promise.
                unsafe {
                    let stripes = self.inputs(tile + 1);
                    rank.stage(
                        active,
                        tile + 1,
                        (&pull.readers, Stores::Cached),
                        self.buffers,
                        stripes,
                    )?;
                }
            }
            for source in &pull.sources {
                let from = source.rank;
                if tile > 0 && tile >= self.tiling().number_of(self.taken(from).count) {
                    continue;
                }
                rank.tile_of(active, from, tile)?;
                if tile == 0 {
                    let block = self.block_of(active, from, source.units[0]);
                    let header = active.world.shared.header(from, active.number);
                    sources[from] = match (header.direct, header.lent) {
                        (Some([at, _]), _) => {
                            Source::Shared(self.base_of(active, from, at, block)?, block)
                        }
                        (None, 0) => Source::Staged,
                        (None, lent) => {
                            fetched.push(from);
                            Source::Lent(lent, block)
                        }
                    };
                }
                match sources[from] {
                    Source::Staged => {
                        let slot = active.local.stage.first[from].wrapping_add(tile);
                        rank.point(&pull.bases, source.buffer, from, slot);
                    }
                    Source::Lent(at, block) => {
                        let unit = source.units[0];
                        let of = std::iter::once((unit, block));
                        let stripes = self.tiling().stripes_of_blocks(tile, of);
                        pull.bases.set(source.buffer, rank.fetch(active, from, at, stripes)?);
                    }
                    // Each stripe has an address of its own.
                    Source::Shared(..) => {}
                }
            }
            // SAFETY: the caller's promise; the sources have staged their tiles, and use the slots again only when
            // this rank is done with them.
            unsafe { self.pull_tile(active, pull, tile, &sources) };
            if tile + 1 < tiles {
                active.world.shared.finish(active.world.rank, active.number, tile + 1);
            }
        }
        if pull.sources.is_empty() {
            active.glance(&pull.readers)?;
        }
        if sources.iter().any(|source| matches!(source, Source::Shared(..))) {
            // The owner of the memory leaves a failed call, and may then write there.
            active.goes_on()?;
        }
        if read && !stages || !fetched.is_empty() {
            return WorldRank::give_back(active, pull, read && !stages, ALL);
        }
        Ok(())
    }

    /// # Safety
    /// As for [`BlocksPlan::run_at`]; the tiles that the segments read are there.
    unsafe fn pull_tile(
        &self,
        active: &ActiveCall<'_>,
        pull: &Pull,
        tile: u64,
        sources: &[Source],
    ) {
        let (rank, tiles) = (self.rank, self.tiling());
        let output = self.blocks.output();
        let bytes = output.iter().map(|block| block.count).sum::<u64>() as usize * rank.size;
        let stores = Way::usual(Shape { output: bytes, ..Shape::EMPTY }).stores;
        let data = &pull.data;
        let partials = rank.partials.address(0);
        for ((segment, (begin, at)), step) in data.all.iter().zip(&pull.outputs).zip(0..) {
            let end = begin + segment.elements as u64;
            for unit in begin / tiles.count..end.div_ceil(tiles.count) {
                let block = output[unit as usize];
                for cell in tiles.cells_within(unit, *begin, end) {
                    let Some(stripe) = tiles.stripe_of_block(tile, unit, block, cell) else {
                        continue;
                    };
                    let _step = active.step(CallPosition { step, at: *at });
                    pull.bases.set(pull.output, stripe.base(self.buffers.output, rank.size));
                    for source in &pull.sources {
                        let Source::Shared(base, from) = sources[source.rank] else { continue };
                        let theirs = tiles.stripe_of_block(tile, source.units[0], from, cell);
                        if let Some(theirs) = theirs {
                            pull.bases.set(source.buffer, theirs.base(base, rank.size));
                        }
                    }
                    if let Some(OwnInput { source: own, .. }) = &pull.own {
                        let from = self.blocks.input()[own.units[0] as usize];
                        let mine = tiles.stripe_of_block(tile, own.units[0], from, cell);
                        if let Some(mine) = mine {
                            let base = self.buffers.input.cast_mut();
                            pull.bases.set(own.buffer, mine.base(base, rank.size));
                        }
                    }
                    let first = (stripe.inside - begin) as usize;
                    let elements = first..first + stripe.len as usize;
                    // SAFETY: the stripe lies within the caller's output, and within the staged tiles or the blocks
                    // of other ranks, which are valid by this function's safety rules; only this rank uses the
                    // partials. Blocks of the input and the output are apart or the same.
                    unsafe {
                        data.run_with(*segment, elements, &pull.bases, partials, stores, || false);
                    }
                }
            }
        }
    }

    /// # Safety
    /// As for [`BlocksPlan::run_at`].
    unsafe fn streams(&self, active: &mut ActiveCall<'_>, streams: &Streams) -> Result<(), Error> {
        let (rank, world) = (self.rank, active.world);
        let mut tiles = self.tiles(self.blocks.input()).max(self.tiles(self.blocks.output()));
        // All ranks run as many tiles as the rank with the longest block.
        active.header.slot = tiles;
        active.publish(0);
        // All ranks are in this call before any rank signals, as in calls with one count.
        for other in world.others() {
            tiles = tiles.max(active.meet(other, 0)?.slot);
        }
        if tiles >= ALL {
            return Err(active.corrupt(format!("a rank says that it has {tiles} tiles")));
        }
        let arena = &world.shared.arena;
        let bytes = |which: usize| (self.tiling().count * u64::from(rank.units[which])) as usize;
        let [input, output] =
            [0, 1].map(|which| arena.address(streams.places[which], bytes(which) * rank.size));
        let mut run = StreamRun::new(rank, streams, active);
        for tile in 0..tiles {
            let out = (0..).zip(self.blocks.output().iter().copied());
            let out = self.tiling().stripes_of_blocks(tile, out);
            // SAFETY: as in calls with one count; the stripes lie within the caller's blocks.
            unsafe {
                rank.copy_in(self.inputs(tile), self.buffers, input, Stores::Cached);
                run.go()?;
                rank.copy_out(out, output, self.buffers, Stores::Cached);
            }
        }
        Ok(())
    }
}
