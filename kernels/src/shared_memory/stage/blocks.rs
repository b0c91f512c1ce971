//! Calls with a count for each block, whose counts and places are those of the call and not of the plan: one plan serves
//! every vector of counts.
//!
//! Each rank tells the counts that it knows and the places of the blocks of its input before another rank reads them.

use std::sync::Arc;
use std::{fmt, slice};

use roundelay_core::counts::{Block, RankBlocks};
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::verify::Proved;

use super::geometry::{OwnCounts, Tiles};
use super::plan::{WorldRank, keeps_blocks};
use super::plan_sharing::Prepared;
use super::pull::{Pull, ReadSource};
use super::routes::Route;
use super::run_pull::{ALL, CallBlocks, InPlace};
use super::strategy::Strategy;
use crate::Error;
use crate::lowering::plan_call::{check_multiple, extent};
use crate::lowering::{RankCall as _, UserBuffers};
use crate::shared_memory::calls::ActiveCall;
use crate::shared_memory::world::World;
use crate::shared_memory::world::memory::shared_state::CallHeader;
use crate::shared_memory::world::ways::{Shape, Way};

/// The part of a process of one host in calls with a count for each block.
pub struct BlocksPlan(WorldRank);

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
    /// [`WorldPlan::new`](super::plan::WorldPlan::new).
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
            header.count = digest(blocks.compared_counts());
        }
        let mut active = self.world.begin(header, self.running())?;
        active.blocks = Some(blocks);
        active.world.shared.tell(active.world.rank, active.number, blocks);
        let Route { strategy, tiles } = &self.routes.first;
        let bytes =
            |of: &[Block]| of.iter().map(|block| block.count).sum::<u64>() as usize * self.size;
        let (input, output) = (bytes(blocks.input()), bytes(blocks.output()));
        let way = Way::usual(Shape { bytes: input, output, ..Shape::EMPTY });
        let call = BlocksCall::new(blocks, self.size);
        // SAFETY: the caller's promise.
        let done = unsafe {
            match strategy {
                Strategy::Pull(pull) => {
                    // A block of the input is apart from the output, or is the same block of it.
                    let own = pull.own.as_ref().is_none_or(|own| own.apart.is_some());
                    let others = self.offers(&mut active, (pull, way), blocks, buffers);
                    let in_place = InPlace { own, others };
                    self.run_pull(&mut active, (pull, tiles, way), (call, in_place), buffers)
                }
                Strategy::Streams(streams) => {
                    self.run_streams(&mut active, (streams, tiles, way.stores), &call, buffers)
                }
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

    /// Says in the header of a call where other ranks read this rank's input, if they are to read it where it lies.
    fn offers(
        &self,
        active: &mut ActiveCall<'_>,
        (pull, way): (&Pull, Way),
        blocks: &RankBlocks,
        buffers: UserBuffers,
    ) -> bool {
        if pull.readers.is_empty() {
            return false;
        }
        let stays = self.stays(blocks, buffers);
        let shared = self.shared(blocks.input(), buffers).filter(|_| stays);
        // All ranks look whether they can read each other's memory where any of them may lend.
        let most = blocks.compared_counts().max().unwrap_or(0) as usize * self.size;
        let any = Way::usual(Shape { bytes: most, ..Shape::EMPTY });
        let reach = (any.lends() || way.lends()) && Self::can_lend(active);
        let lends = stays && shared.is_none() && reach && way.lends();
        active.header.direct = shared.map(|at| [at, 0]);
        active.header.lent = if lends { buffers.input.addr() as u64 } else { 0 };
        lends || shared.is_some()
    }

    /// Whether other ranks may read this rank's input where it lies until the call ends: the output does not overwrite
    /// it, or overwrites it by the same bytes.
    fn stays(&self, blocks: &RankBlocks, buffers: UserBuffers) -> bool {
        let span = |from: *const u8, blocks: &[Block]| {
            let filled = || blocks.iter().filter(|block| block.count > 0);
            let at =
                |element: u64| from.addr().wrapping_add((element as usize).wrapping_mul(self.size));
            let first = filled().map(|block| at(block.start)).min();
            let end = filled().map(|block| at(block.start + block.count)).max();
            first.zip(end)
        };
        let input = span(buffers.input, blocks.input());
        let output = span(buffers.output, blocks.output());
        match (input, output) {
            (Some((first, end)), Some((begin, last))) => {
                end <= begin || last <= first || !self.part.call.schedule.collective.reduces()
            }
            _ => true,
        }
    }

    /// Returns the position of the input in the arena, if all of its blocks lie there.
    fn shared(&self, blocks: &[Block], buffers: UserBuffers) -> Option<u64> {
        let arena = &self.world.shared.arena;
        let size = self.size as u64;
        let mut position = None;
        for block in blocks.iter().filter(|block| block.count > 0) {
            let from = block.start.wrapping_mul(size);
            let at = buffers.input.wrapping_add(from as usize);
            let at = arena.offset(at, (block.count * size) as usize)?;
            position = Some((at as u64).wrapping_sub(from));
        }
        position
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
    blocks: &'c RankBlocks,
    /// Bytes of an element.
    size: u64,
    /// The block of each rank's input that this rank reads, and the address here of that rank's input where it lies in
    /// memory that both ranks share. The other rank's words about them are read once.
    sources: Box<[Source]>,
}

#[derive(Clone, Copy)]
struct Source {
    unit: u64,
    block: Block,
    shared: Option<*mut u8>,
}

impl<'c> BlocksCall<'c> {
    fn new(blocks: &'c RankBlocks, size: usize) -> Self {
        let none = Source { unit: 0, block: Block::default(), shared: None };
        Self { blocks, size: size as u64, sources: vec![none; blocks.nranks() as usize].into() }
    }

    /// Returns the block of this rank's output to which the input of a rank contributes.
    fn taken(&self, source: usize) -> Block {
        let output = self.blocks.output();
        if output.len() == 1 { output[0] } else { output[source] }
    }
}

impl CallBlocks for BlocksCall<'_> {
    type Of<'b>
        = OwnCounts<'b>
    where
        Self: 'b;

    fn input(&self) -> OwnCounts<'_> {
        OwnCounts { first: 0, blocks: self.blocks.input() }
    }

    fn output(&self) -> OwnCounts<'_> {
        OwnCounts { first: 0, blocks: self.blocks.output() }
    }

    fn theirs(&self, source: usize) -> OwnCounts<'_> {
        let Source { unit, block, .. } = &self.sources[source];
        OwnCounts { first: *unit, blocks: slice::from_ref(block) }
    }

    fn tiles(&self, tiles: &Tiles) -> [u64; 2] {
        let most = |blocks: &[Block]| blocks.iter().map(|block| block.count).max().unwrap_or(0);
        let [input, output] = [self.blocks.input(), self.blocks.output()]
            .map(|blocks| tiles.number_of(most(blocks)).max(1));
        [input, input.max(output)]
    }

    fn tiles_of(&self, tiles: &Tiles, source: usize) -> u64 {
        tiles.number_of(self.taken(source).count)
    }

    fn take(&mut self, active: &mut ActiveCall<'_>, source: &ReadSource) -> Result<(), Error> {
        let (rank, unit) = (source.rank, source.units[0]);
        let shared = &active.world.shared;
        let start = shared.start(rank, active.number, unit as usize);
        let block = Block { start, count: self.taken(rank).count };
        let position = shared.header(rank, active.number).direct;
        let shared =
            position.map(|[at, _]| base_of(active, rank, at, (block, self.size))).transpose()?;
        if shared.is_some() {
            active.local.stage.lent[rank] = 0;
        }
        self.sources[rank] = Source { unit, block, shared };
        Ok(())
    }

    fn shared(&self, source: usize) -> Option<*mut u8> {
        self.sources[source].shared
    }
}

/// Returns the address of a block in memory that both ranks share, less its place.
fn base_of(
    active: &ActiveCall<'_>,
    source: usize,
    position: u64,
    (block, size): (Block, u64),
) -> Result<*mut u8, Error> {
    let arena = &active.world.shared.arena;
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
