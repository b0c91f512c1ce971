//! Calls with a count for each block: `MPI_Allgatherv`, `MPI_Reduce_scatter`, `MPI_Gatherv`, `MPI_Scatterv` and
//! `MPI_Alltoallv`.
//!
//! All ranks must decide alike. MPI demands equal counts on all ranks of an allgather and of a reduction, whose bytes
//! decide. In the other three a rank knows the counts of its own blocks alone, so they are taken for all counts or for
//! none. Data that is only moved is bytes, as no rank knows the widest elements that all blocks are multiples of.

use std::ffi::{c_int, c_void};

use roundelay::{Call, DType, EngineError, Error, RankId, ReduceOp, World};
use roundelay_kernels::BlocksAt;
use roundelay_kernels::mpi::{Handle, Mpi};

use crate::buffers::{Copied, Side};
use crate::call::{BlockArrays, MpiCall, MpiCollective, Values};
use crate::seats::{Ready, Seat};
use crate::types::{TypeLayout, kind};
use crate::why::{Why, Wrong};

/// The blocks of one side of a call.
#[derive(Clone, Debug)]
pub(crate) struct BlockValues {
    at: *mut c_void,
    of: Handle,
    kind: TypeLayout,
    /// The place of each block, in extents of the type, and its number of values.
    blocks: Vec<(i64, i64)>,
}

/// The blocks of a call that is ours.
#[derive(Clone, Debug)]
pub(crate) struct OursBlocks {
    pub(crate) input: BlockValues,
    /// `None` for the root's own block of a scatter in place, which is where it is.
    pub(crate) output: Option<BlockValues>,
    /// Whether the output overwrites parts of the input that are not its own block.
    overwrites: bool,
}

impl BlockValues {
    /// Returns no blocks.
    fn none(values: Values) -> Self {
        // MPI ignores the type of a side that a rank does not have.
        let kind = TypeLayout { size: 1, extent: 1, dense: true };
        Self { at: values.at, of: values.of, kind, blocks: Vec::new() }
    }

    fn sides<'m>(&self, mpi: &'m Mpi, comm: Handle) -> impl Iterator<Item = Side<'m>> {
        let Self { at, of, kind, .. } = *self;
        let side = move |(place, count): &(i64, i64)| {
            let at = at.wrapping_byte_offset((place * kind.extent) as isize);
            Side { mpi, comm, values: Values { at, count: *count, of }, kind }
        };
        self.blocks.iter().map(side).collect::<Vec<_>>().into_iter()
    }

    fn bytes_of(&self, block: usize) -> u64 {
        self.blocks[block].1 as u64 * self.kind.size
    }

    fn bytes(&self) -> usize {
        (0..self.blocks.len()).map(|block| self.bytes_of(block)).sum::<u64>() as usize
    }

    fn is_dense(&self, mpi: &Mpi, comm: Handle, align: usize) -> bool {
        self.sides(mpi, comm).all(|side| side.values.count == 0 || side.is_dense(align))
    }

    /// Returns the address and the number of elements of each block.
    fn there(&self, mpi: &Mpi, comm: Handle, size: usize) -> Vec<(*mut u8, u64)> {
        let sides = self.sides(mpi, comm);
        sides.map(|side| (side.values.at.cast(), (side.bytes() / size) as u64)).collect()
    }

    /// Returns the places of the blocks in a copy in which they lie one behind the other.
    fn copied(&self, copy: &mut Copied, size: usize) -> Vec<(*mut u8, u64)> {
        let (from, mut at) = (copy.as_mut_ptr(), 0);
        let place = |block| {
            let bytes = self.bytes_of(block) as usize;
            let here = from.wrapping_add(at);
            at += bytes;
            (here, (bytes / size) as u64)
        };
        (0..self.blocks.len()).map(place).collect()
    }

    /// Returns a copy of the blocks, one behind the other.
    ///
    /// # Errors
    /// MPI's code.
    ///
    /// # Safety
    /// The values are there, and can be read.
    pub(crate) unsafe fn packed(&self, mpi: &Mpi, comm: Handle) -> Result<Copied, c_int> {
        let (mut all, mut at) = (Copied::new(self.bytes()), 0);
        for side in self.sides(mpi, comm).filter(|side| side.values.count > 0) {
            // SAFETY: the caller's promise.
            let block = unsafe { side.packed() }?;
            all[at..at + block.len()].copy_from_slice(&block);
            at += block.len();
        }
        Ok(all)
    }

    /// Puts blocks that lie one behind the other to where they belong.
    ///
    /// # Errors
    /// MPI's code.
    ///
    /// # Safety
    /// The values can be written, and the bytes are as many as they have.
    unsafe fn unpack(&self, mpi: &Mpi, comm: Handle, bytes: &[u8]) -> Result<(), c_int> {
        let mut rest = bytes;
        for side in self.sides(mpi, comm).filter(|side| side.values.count > 0) {
            let (block, after) = rest.split_at(side.bytes());
            // SAFETY: the caller's promise.
            unsafe { side.unpack(block) }?;
            rest = after;
        }
        Ok(())
    }
}

/// A call that is looked at.
struct Asking<'a> {
    mpi: &'a Mpi,
    seat: &'a Seat,
    asked: &'a MpiCall,
}

/// Returns the call and its blocks, and the bytes of all blocks where all ranks know them, or why it is not ours.
pub(crate) fn decide(
    mpi: &Mpi,
    seat: &Seat,
    asked: &MpiCall,
) -> Result<(Call, OursBlocks, Option<u64>), Why> {
    Asking { mpi, seat, asked }.ours()
}

impl Asking<'_> {
    fn ours(&self) -> Result<(Call, OursBlocks, Option<u64>), Why> {
        let Self {
            asked: &MpiCall { what, send, recv, op, arrays: [sent, received], .. },
            seat,
            ..
        } = *self;
        let root = self.root()?;
        let (rank, at_root) = (seat.rank as usize, root == seat.rank);
        let in_place = |values: Values| values.at.addr() == self.mpi.abi().in_place();
        let (mut dtype, mut by) = (DType::U8, ReduceOp::Sum);
        let (input, output, overwrites) = match what {
            MpiCollective::Allgatherv | MpiCollective::Gatherv => {
                let gets = what == MpiCollective::Allgatherv || at_root;
                let output =
                    if gets { self.each(recv, received)? } else { BlockValues::none(recv) };
                let input = if gets && in_place(send) {
                    BlockValues { blocks: vec![output.blocks[rank]], ..output.clone() }
                } else {
                    self.one(send)?
                };
                if gets && input.bytes_of(0) != output.bytes_of(rank) {
                    return Err(Why::Argument);
                }
                (input, Some(output), false)
            }
            MpiCollective::ReduceScatter => {
                by = self.mpi.op(op).ok_or(Why::Op)?;
                let known = self.mpi.elements(recv.of).ok_or(Why::Type)?;
                dtype = known.elements.combined_by(by).ok_or(Why::Type)?;
                // In place, MPI's result lies at the start of the input, and not at the rank's block.
                let from = if in_place(send) { recv.at } else { send.at };
                let input = self.each(Values { at: from, ..send }, sent)?;
                let blocks = vec![(0, input.blocks[rank].1)];
                if self.is_nowhere(recv, input.kind, &blocks) {
                    return Err(Why::Argument);
                }
                let output = BlockValues { at: recv.at, blocks, ..input.clone() };
                (input, Some(output), in_place(send))
            }
            MpiCollective::Scatterv => {
                let input = if at_root { self.each(send, sent)? } else { BlockValues::none(send) };
                let nowhere = at_root && in_place(recv);
                let output = if nowhere { None } else { Some(self.one(recv)?) };
                let own = output.as_ref().map(|output| output.bytes_of(0));
                if at_root && own.is_some_and(|own| own != input.bytes_of(rank)) {
                    return Err(Why::Argument);
                }
                (input, output, false)
            }
            _ => {
                let output = self.each(recv, received)?;
                let at = in_place(send);
                let input = if at { output.clone() } else { self.each(send, sent)? };
                if input.bytes_of(rank) != output.bytes_of(rank) {
                    return Err(Why::Argument);
                }
                (input, Some(output), at)
            }
        };
        let all = match what {
            MpiCollective::Allgatherv => output.as_ref().map(|output| output.bytes() as u64),
            MpiCollective::ReduceScatter => Some(input.bytes() as u64),
            _ => None,
        };
        let call =
            Call { collective: what.collective(), root, count: World::BLOCKS, dtype, op: by };
        Ok((call, OursBlocks { input, output, overwrites }, all))
    }

    /// Returns the root, of collectives that have one.
    fn root(&self) -> Result<u32, Why> {
        if !self.asked.what.collective().is_rooted() {
            return Ok(0);
        }
        let root = u32::try_from(self.asked.root).map_err(|_| Why::Argument)?;
        if root < self.seat.size { Ok(root) } else { Err(Why::Argument) }
    }

    /// Returns the one block of a side with a count.
    fn one(&self, values: Values) -> Result<BlockValues, Why> {
        self.made(values, vec![(0, values.count)])
    }

    /// Returns a block for each rank.
    fn each(&self, values: Values, arrays: BlockArrays) -> Result<BlockValues, Why> {
        let n = self.seat.size;
        // SAFETY: the program gives an array, where a rank has one, with a number for each rank.
        let (counts, places) = unsafe { (arrays.counts.read(n), arrays.places.read(n)) };
        let counts = counts.ok_or(Why::Argument)?;
        let mut next = 0_i64;
        let packed = counts.iter().map(|count| {
            let place = next;
            next = next.saturating_add(*count);
            place
        });
        let packed: Vec<i64> = packed.collect();
        let places = places.unwrap_or(packed);
        self.made(values, places.into_iter().zip(counts).collect())
    }

    /// Whether blocks with values have no address, or a mark for one.
    fn is_nowhere(&self, values: Values, kind: TypeLayout, blocks: &[(i64, i64)]) -> bool {
        let mark = values.at.addr() == self.mpi.abi().in_place();
        let null = kind.dense && values.at.is_null();
        (mark || null) && blocks.iter().any(|(_, count)| *count != 0)
    }

    fn made(&self, values: Values, blocks: Vec<(i64, i64)>) -> Result<BlockValues, Why> {
        let kind = kind(self.mpi, values.of).ok_or(Why::Argument)?;
        let fits = |(place, count): &(i64, i64)| {
            *count >= 0
                && (*count as u64).checked_mul(kind.size).is_some_and(|bytes| bytes < 1 << 46)
                && place.checked_mul(kind.extent).is_some()
        };
        let nowhere = self.is_nowhere(values, kind, &blocks);
        if nowhere || !blocks.iter().all(fits) {
            return Err(Why::Argument);
        }
        Ok(BlockValues { at: values.at, of: values.of, kind, blocks })
    }
}

/// The outcome of a call: a copy of the output where one was asked for.
type Made = Result<Option<Copied>, Wrong>;

impl OursBlocks {
    /// Makes the call in the program's buffers; or, `apart`, with its output in a copy.
    pub(crate) fn make(
        &self,
        mpi: &Mpi,
        seat: &Seat,
        ready: &mut Ready,
        call: Call,
        apart: bool,
    ) -> Made {
        let (comm, size) = (seat.comm, call.dtype.size());
        let rank = seat.rank as usize;
        let dense = |side: &BlockValues| side.is_dense(mpi, comm, size);
        // The output in the program's memory, in a copy, or nowhere.
        let there = self.output.as_ref().filter(|output| !apart && dense(output));
        let nowhere = self.output.is_none().then(|| self.input.bytes_of(rank) as usize);
        let bytes = self.output.as_ref().map_or(nowhere.unwrap_or(0), BlockValues::bytes);
        let mut output_copy = Copied::new(if there.is_some() { 0 } else { bytes });
        let outputs = match (there, &self.output) {
            (Some(there), _) => there.there(mpi, comm, size),
            (None, Some(output)) => output.copied(&mut output_copy, size),
            (None, None) => vec![(output_copy.as_mut_ptr(), (bytes / size) as u64)],
        };
        let ends = (call.collective, RankId(call.root));
        let place = |inputs: &[(*mut u8, u64)]| {
            let ranks = (RankId(seat.rank), seat.size);
            BlocksAt::new(ends, ranks, call.dtype, [inputs, &outputs])
        };
        let plan = ready.world.blocks_plan(call).map_err(Wrong::Error)?;
        // Some ranks alone would see counts that are no multiples of a number.
        if plan.as_ref().is_some_and(|plan| plan.multiple() > 1) {
            let what = "its counts are multiples of a number".to_owned();
            return Err(Wrong::Error(EngineError::EqualCounts { what }.into()));
        }
        let may_alias = plan.as_ref().is_some_and(|plan| plan.check_in_place().is_ok());
        let direct = !(self.overwrites && there.is_some()) && dense(&self.input);
        let direct = direct.then(|| place(&self.input.there(mpi, comm, size)).ok()).flatten();
        let direct = direct.filter(|at| may_alias || plan.is_none() || !at.is_in_place());
        let (at, _input_copy) = if let Some(at) = direct {
            (at, None)
        } else {
            // SAFETY: the program's values, during its call.
            let mut copy = unsafe { self.input.packed(mpi, comm) }.map_err(Wrong::Code)?;
            let inputs = self.input.copied(&mut copy, size);
            let at = place(&inputs).map_err(|error| Wrong::Error(Error::from(error)))?;
            (at, Some(copy))
        };
        // SAFETY: the blocks are the program's during its call, or copies; MPI's rules keep other code from them.
        let made = unsafe {
            match &plan {
                Some(plan) => at.run(plan).map_err(Error::from),
                None => at.packed(|blocks, input, output| {
                    ready.rank.call_blocks_bytes(call, blocks, input, output)
                }),
            }
        };
        made.map_err(Wrong::Error)?;
        match &self.output {
            Some(output) if there.is_none() && !apart => {
                // SAFETY: the program's values, during its call, and as many bytes.
                unsafe { output.unpack(mpi, comm, &output_copy) }.map_err(Wrong::Code)?;
                Ok(None)
            }
            Some(_) if apart => Ok(Some(output_copy)),
            _ => Ok(None),
        }
    }
}
