//! Calls with a count for each block, whose blocks lie anywhere.

use std::ffi::c_int;

use roundelay::{Call, RankId, World};
use roundelay_core::collective::Alias;
use roundelay_core::counts::{Block, RankBlocks};
use roundelay_kernels::{UserBuffers, bytes_of, bytes_of_mut};

use crate::buffers;
use crate::codes;
use crate::requests::{self, Ended};
use crate::status::{Outcome, bad, null};

/// The blocks of a buffer as C has them: an address, and an array each of counts and of places, or no places where the
/// blocks are packed.
#[derive(Clone, Copy)]
pub(crate) struct GivenBlocks {
    pub(crate) at: *mut u8,
    pub(crate) counts: *const u64,
    pub(crate) starts: *const i64,
}

/// A call with a count for each block, and its buffers.
pub(crate) struct PlacedBlocks {
    call: Call,
    blocks: RankBlocks,
    input: *mut u8,
    output: *mut u8,
    /// Whether a block of the input lies in the output.
    in_place: bool,
}

// SAFETY: the blocks may be read and written from any thread; no other code accesses them until the call is done.
unsafe impl Send for PlacedBlocks {}

impl GivenBlocks {
    /// Reads `units` blocks, with places that are not negative, and the address that they are counted from.
    ///
    /// # Safety
    /// Arrays that are not null have `units` elements.
    unsafe fn read(
        self,
        units: u32,
        size: usize,
        [name, counts]: [&str; 2],
    ) -> Outcome<(Vec<Block>, *mut u8)> {
        let units = units as usize;
        if units == 0 {
            return Ok((Vec::new(), self.at));
        }
        // SAFETY: the caller's promise; the address need not be aligned.
        let counts: Vec<u64> = unsafe {
            let bytes = buffers::read(self.counts.cast(), 8 * units, counts)?;
            bytes.chunks_exact(8).map(word).map(u64::from_ne_bytes).collect()
        };
        let (mut blocks, mut at) = (Block::packed(counts.iter().copied()), self.at);
        if !self.starts.is_null() {
            // SAFETY: the caller's promise.
            let starts = unsafe { buffers::read(self.starts.cast(), 8 * units, "starts") }?;
            let starts = starts.chunks_exact(8).map(word).map(i64::from_ne_bytes);
            let starts: Vec<i64> = starts.collect();
            let filled = starts.iter().zip(&counts).filter(|(_, count)| **count > 0);
            let first = filled.map(|(start, _)| *start).min().unwrap_or(0);
            for (block, start) in blocks.iter_mut().zip(&starts) {
                // A block without elements has no place.
                let place = start.wrapping_sub(first).cast_unsigned();
                block.start = if block.count > 0 { place } else { 0 };
            }
            at = at.wrapping_offset((first as isize).wrapping_mul(size.cast_signed()));
        }
        if self.at.is_null() && counts.iter().any(|count| *count > 0) {
            return Err(null(name));
        }
        Ok((blocks, at))
    }
}

fn word(bytes: &[u8]) -> [u8; 8] {
    bytes.try_into().expect("8 bytes each")
}

impl PlacedBlocks {
    /// Makes a call of the rank of `world`: in place where the addresses say so.
    ///
    /// # Safety
    /// The arrays of counts and places have as many elements as the collective has blocks.
    pub(crate) unsafe fn new(
        world: &World,
        (collective, dtype, op, root): (c_int, c_int, c_int, u32),
        input: GivenBlocks,
        output: GivenBlocks,
    ) -> Outcome<Self> {
        let collective = codes::collective(collective)?;
        let (dtype, op) = (codes::dtype(dtype)?, codes::op(op)?);
        let call = Call { collective, root, count: 0, dtype, op };
        let (nranks, rank) = (world.nranks(), RankId(world.rank().id()));
        let root = RankId(if collective.is_rooted() { root } else { 0 });
        if root.0 >= nranks {
            return Err(roundelay::EngineError::NoSuchRank { rank: root, nranks }.into());
        }
        let units = [
            collective.input_units(rank, nranks, root),
            collective.output_units(rank, nranks, root),
        ];
        let size = dtype.size();
        // SAFETY: the caller's promise.
        let ((inputs, input), (outputs, output)) = unsafe {
            (
                input.read(units[0], size, ["input", "input_counts"])?,
                output.read(units[1], size, ["output", "output_counts"])?,
            )
        };
        let blocks = RankBlocks::new(collective, root, rank, nranks, inputs, outputs);
        let blocks = blocks.map_err(roundelay::Error::from)?;
        for (what, at, of) in
            [("input", input, blocks.input()), ("output", output, blocks.output())]
        {
            if Block::end(of) > 0 && !at.addr().is_multiple_of(size) {
                let error = roundelay::EngineError::MisalignedBuffer { what, rank, dtype };
                return Err(error.into());
            }
        }
        let mut made = Self { call, blocks, input, output, in_place: false };
        made.in_place = made.overlaps(root)?;
        Ok(made)
    }

    /// Returns the bytes of memory that a block has.
    fn span(&self, at: *mut u8, block: Block) -> std::ops::Range<usize> {
        let size = self.call.dtype.size() as u64;
        let first = at.addr().wrapping_add((block.start * size) as usize);
        first..first.wrapping_add((block.count * size) as usize)
    }

    /// Whether a block of the input is the same block of the output, which it may be in place.
    ///
    /// # Errors
    /// E0406 where blocks overlap otherwise.
    fn overlaps(&self, root: RankId) -> Outcome<bool> {
        let spans = |at, blocks: &[Block]| {
            let mut all: Vec<_> = (0..)
                .zip(blocks)
                .filter(|(_, block)| block.count > 0)
                .map(|(unit, block)| (self.span(at, *block), unit))
                .collect();
            all.sort_unstable_by_key(|(span, _)| span.start);
            all
        };
        let inputs = spans(self.input, self.blocks.input());
        let outputs = spans(self.output, self.blocks.output());
        let rank = self.blocks.rank();
        let allowed = match self.call.collective.alias(rank, root) {
            Alias::Apart => None,
            Alias::InputInOutput(unit) => Some((0, unit)),
            Alias::OutputInInput(unit) => Some((unit, 0)),
        };
        let mut in_place = false;
        for (input, of_input) in &inputs {
            // Blocks of an output are apart, so their ends are in the order of their begins.
            let first = outputs.partition_point(|(output, _)| output.end <= input.start);
            for (output, of_output) in &outputs[first..] {
                if output.start >= input.end {
                    break;
                }
                if allowed != Some((*of_input, *of_output)) || input != output {
                    let what = format!(
                        "block {of_input} of the input and block {of_output} of the output of {} overlap",
                        self.call.collective
                    );
                    let fix =
                        "keep them apart, or place them as roundelay.h says of calls in place";
                    return Err(bad(what, fix));
                }
                in_place = true;
            }
        }
        Ok(in_place)
    }

    /// Makes the call.
    ///
    /// # Safety
    /// The blocks are valid, and no other code accesses them meanwhile.
    pub(crate) unsafe fn run(&self, world: &World) -> Result<(), roundelay::Error> {
        world.settle()?;
        let Some(plan) = world.blocks_plan(self.call)? else {
            // SAFETY: the caller's promise.
            return unsafe { self.run_packed(world) };
        };
        if self.in_place {
            plan.check_in_place()?;
        }
        // SAFETY: the caller's promise; blocks are apart or the same, as was checked.
        Ok(unsafe { plan.run_at(&self.blocks, UserBuffers::new(self.input, self.output)) }?)
    }

    /// Makes the call on copies, one block behind the other.
    ///
    /// # Safety
    /// As for [`Self::run`].
    unsafe fn run_packed(&self, world: &World) -> Result<(), roundelay::Error> {
        let (size, blocks) = (self.call.dtype.size() as u64, &self.blocks);
        let counts = |of: &[Block]| of.iter().map(|block| block.count).collect::<Vec<_>>();
        let bytes = |of: &[Block]| of.iter().map(|block| block.count * size).sum::<u64>() as usize;
        let (inputs, outputs) = (bytes(blocks.input()), bytes(blocks.output()));
        // Aligned for every element type.
        let [mut input, mut output] = [inputs, outputs].map(|bytes| vec![0_u64; bytes.div_ceil(8)]);
        let mut rest = &mut bytes_of_mut(&mut input)[..inputs];
        for block in blocks.input().iter().filter(|block| block.count > 0) {
            let (to, after) = rest.split_at_mut((block.count * size) as usize);
            let from = self.input.wrapping_add((block.start * size) as usize);
            // SAFETY: the caller's promise: the block is valid, and lies in memory of its own.
            unsafe { to.as_mut_ptr().copy_from_nonoverlapping(from, to.len()) };
            rest = after;
        }
        let root = RankId(if self.call.collective.is_rooted() { self.call.root } else { 0 });
        let packed = RankBlocks::new(
            self.call.collective,
            root,
            blocks.rank(),
            world.nranks(),
            Block::packed(counts(blocks.input())),
            Block::packed(counts(blocks.output())),
        )?;
        let made = &mut bytes_of_mut(&mut output)[..outputs];
        let input = &bytes_of(&input)[..inputs];
        world.rank().call_blocks_bytes(self.call, &packed, input, made)?;
        let mut rest = &*made;
        for block in blocks.output().iter().filter(|block| block.count > 0) {
            let (from, after) = rest.split_at((block.count * size) as usize);
            let to = self.output.wrapping_add((block.start * size) as usize);
            // SAFETY: the caller's promise: the block is valid, and lies in memory of its own.
            unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
            rest = after;
        }
        Ok(())
    }

    /// Starts the call; between hosts it is made at once, as its counts must be brought together first.
    ///
    /// # Safety
    /// The blocks are valid, and no other code accesses them, until the call is done.
    pub(crate) unsafe fn start(self, world: &World) -> Outcome<u64> {
        let Some(plan) = world.blocks_plan(self.call)? else {
            // SAFETY: the caller's promise.
            unsafe { self.run_packed(world) }?;
            return Ok(requests::held(Box::new(Ended)));
        };
        if self.in_place {
            plan.check_in_place()?;
        }
        let job = move || {
            let this = self;
            let buffers = UserBuffers::new(this.input, this.output);
            // SAFETY: the caller's promise; blocks are apart or the same, as was checked.
            Ok(unsafe { plan.run_at(&this.blocks, buffers) }?)
        };
        Ok(requests::held(Box::new(world.nonblocking().job(job))))
    }
}
