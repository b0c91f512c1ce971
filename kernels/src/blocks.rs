//! Blocks of a rank anywhere in its memory, each given by its address.

use std::ops::Range;

use roundelay_core::collective::{Alias, Collective};
use roundelay_core::counts::{Block, RankBlocks};
use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;

use crate::Error;
use crate::element::{bytes_of, bytes_of_mut};
use crate::lowering::UserBuffers;
use crate::shared_memory::BlocksPlan;

/// The blocks of a rank in a call with a count for each block, at addresses.
#[derive(Debug)]
pub struct BlocksAt {
    blocks: RankBlocks,
    root: RankId,
    dtype: DType,
    input: *mut u8,
    output: *mut u8,
    in_place: bool,
}

// SAFETY: it accesses memory only in functions whose callers promise that they may.
unsafe impl Send for BlocksAt {}

/// Returns the blocks of a buffer, counted from the lowest address, and that address.
fn counted(blocks: &[(*mut u8, u64)], size: usize) -> (Vec<Block>, *mut u8) {
    let filled = blocks.iter().filter(|(_, count)| *count > 0);
    let first = filled.map(|(at, _)| *at).min_by_key(|at| at.addr());
    let first = first.unwrap_or(std::ptr::null_mut());
    let block = |(at, count): &(*mut u8, u64)| {
        // A block without elements has no place.
        let offset = if *count > 0 { at.addr() - first.addr() } else { 0 };
        Block { start: (offset / size) as u64, count: *count }
    };
    (blocks.iter().map(block).collect(), first)
}

impl BlocksAt {
    /// Makes the blocks of rank `rank` of `nranks`: the address and the number of elements of each block of its input
    /// and of its output, in the order of ranks. The address of a block without elements has no meaning.
    ///
    /// # Errors
    /// E0432 for the counts that [`RankBlocks::new`] refuses; E0404 for an address that is not aligned; E0406 for a null
    /// address of a block with elements, and where a block of the input and a block of the output overlap, unless they
    /// are the same block of the collective at one address, as in place.
    pub fn new(
        (collective, root): (Collective, RankId),
        (rank, nranks): (RankId, u32),
        dtype: DType,
        [inputs, outputs]: [&[(*mut u8, u64)]; 2],
    ) -> Result<Self, Error> {
        for (what, blocks) in [("input", inputs), ("output", outputs)] {
            for (at, count) in blocks.iter().filter(|(_, count)| *count > 0) {
                if at.is_null() {
                    let what =
                        format!("a block of {count} elements of the {what} at a null address");
                    return Err(Error::BadOption { what, fix: "give its address" });
                }
                if !at.addr().is_multiple_of(dtype.size()) {
                    return Err(Error::MisalignedBuffer { what, rank, dtype });
                }
            }
        }
        let (input_blocks, input) = counted(inputs, dtype.size());
        let (output_blocks, output) = counted(outputs, dtype.size());
        let blocks = RankBlocks::new(collective, root, rank, nranks, input_blocks, output_blocks);
        let blocks = blocks.map_err(|problem| Error::BadCounts { what: problem.title })?;
        let mut made = Self { blocks, root, dtype, input, output, in_place: false };
        made.in_place = made.overlaps(root)?;
        Ok(made)
    }

    /// Returns the counts and the places of the blocks.
    pub fn blocks(&self) -> &RankBlocks {
        &self.blocks
    }

    /// Whether a block of the input lies at its place in the output, or a block of the output at its place in the input.
    pub fn is_in_place(&self) -> bool {
        self.in_place
    }

    /// Returns the bytes of memory that a block has.
    fn span(&self, at: *mut u8, block: Block) -> Range<usize> {
        let size = self.dtype.size();
        let first = at.addr().wrapping_add(block.start as usize * size);
        first..first.wrapping_add(block.count as usize * size)
    }

    fn overlaps(&self, root: RankId) -> Result<bool, Error> {
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
        let collective = self.blocks.collective();
        let allowed = match collective.alias(self.blocks.rank(), root) {
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
                        "block {of_input} of the input and block {of_output} of the output of {collective} overlap"
                    );
                    let fix = "keep them apart, or place one at its place in the other buffer";
                    return Err(Error::BadOption { what, fix });
                }
                in_place = true;
            }
        }
        Ok(in_place)
    }

    /// Makes the call.
    ///
    /// # Errors
    /// E0408 in place, where the algorithm has no such form; the errors of [`BlocksPlan::run_at`].
    ///
    /// # Safety
    /// The blocks are valid and initialized, those of the output writable, and lent for the call.
    pub unsafe fn run(&self, plan: &BlocksPlan) -> Result<(), Error> {
        if self.in_place {
            plan.check_in_place()?;
        }
        // SAFETY: the caller's promise; blocks are aligned, and apart or the same, as was checked.
        unsafe { plan.run_at(&self.blocks, UserBuffers::new(self.input, self.output)) }
    }

    /// Makes the call on copies, one block behind the other: `call` gets the blocks, the bytes of the input, and those
    /// of the output, which it writes.
    ///
    /// # Errors
    /// The error of `call`.
    ///
    /// # Safety
    /// The blocks are valid and initialized, those of the output writable, and lent for the call.
    pub unsafe fn call_packed<E>(
        &self,
        call: impl FnOnce(&RankBlocks, &[u8], &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (collective, rank, nranks) =
            (self.blocks.collective(), self.blocks.rank(), self.blocks.nranks());
        let counts = |of: &[Block]| Block::pack(of.iter().map(|block| block.count));
        let (inputs, outputs) = (counts(self.blocks.input()), counts(self.blocks.output()));
        let bytes = |of: &[Block]| Block::end(of) as usize * self.dtype.size();
        let lens = [bytes(&inputs), bytes(&outputs)];
        let packed = RankBlocks::new(collective, self.root, rank, nranks, inputs, outputs);
        let packed = packed.expect("the counts were checked");
        // Aligned for every element type.
        let [mut input, mut output] = lens.map(|bytes| vec![0_u64; bytes.div_ceil(8)]);
        // SAFETY: the caller's promise: the blocks are valid, and the copies are memory of their own.
        unsafe {
            let to = bytes_of_mut(&mut input).as_mut_ptr();
            self.each(self.input, self.blocks.input(), |block, at, len| {
                to.add(at).copy_from_nonoverlapping(block, len);
            });
            let made = &mut bytes_of_mut(&mut output)[..lens[1]];
            call(&packed, &bytes_of(&input)[..lens[0]], made)?;
            let from = made.as_ptr();
            self.each(self.output, self.blocks.output(), |block, at, len| {
                block.copy_from_nonoverlapping(from.add(at), len);
            });
        }
        Ok(())
    }

    /// Calls `then` with the address of each block, its place where all are packed, and its length, in bytes.
    fn each(&self, base: *mut u8, blocks: &[Block], then: impl Fn(*mut u8, usize, usize)) {
        let (size, mut at) = (self.dtype.size(), 0);
        for block in blocks.iter().filter(|block| block.count > 0) {
            let len = block.count as usize * size;
            then(base.wrapping_add(block.start as usize * size), at, len);
            at += len;
        }
    }
}
