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

use crate::arguments::Given;
use crate::call::{MpiCall, MpiCollective, Values};
use crate::call_buffers::{Copied, Side};
use crate::seats::{Ready, Seat};
use crate::types::TypeLayout;
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
        let kind = TypeLayout { size: 1, extent: 1, dense: true, committed: true };
        Self { at: values.at, of: values.of, kind, blocks: Vec::new() }
    }

    fn sides<'m>(&self, mpi: &'m Mpi) -> impl Iterator<Item = Side<'m>> {
        let Self { at, of, kind, .. } = *self;
        let side = move |(place, count): &(i64, i64)| {
            let at = at.wrapping_byte_offset((place * kind.extent) as isize);
            Side { mpi, values: Values { at, count: *count, of }, kind }
        };
        self.blocks.iter().map(side).collect::<Vec<_>>().into_iter()
    }

    fn bytes_of(&self, block: usize) -> u64 {
        self.blocks[block].1 as u64 * self.kind.size
    }

    fn bytes(&self) -> usize {
        (0..self.blocks.len()).map(|block| self.bytes_of(block)).sum::<u64>() as usize
    }

    fn is_dense(&self, mpi: &Mpi, align: usize) -> bool {
        self.sides(mpi).all(|side| side.values.count == 0 || side.is_dense(align))
    }

    /// Returns the address and the number of elements of each block.
    fn there(&self, mpi: &Mpi, size: usize) -> Vec<(*mut u8, u64)> {
        let sides = self.sides(mpi);
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
    /// MPI's code, of which no handler has heard.
    ///
    /// # Safety
    /// The values are there, and can be read.
    pub(crate) unsafe fn packed(&self, mpi: &Mpi) -> Result<Copied, c_int> {
        let (mut all, mut at) = (Copied::new(self.bytes()), 0);
        for side in self.sides(mpi).filter(|side| side.values.count > 0) {
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
    /// MPI's code, of which no handler has heard.
    ///
    /// # Safety
    /// The values can be written, and the bytes are as many as they have.
    unsafe fn unpack(&self, mpi: &Mpi, bytes: &[u8]) -> Result<(), c_int> {
        let mut rest = bytes;
        for side in self.sides(mpi).filter(|side| side.values.count > 0) {
            let (block, after) = rest.split_at(side.bytes());
            // SAFETY: the caller's promise.
            unsafe { side.unpack(block) }?;
            rest = after;
        }
        Ok(())
    }
}

/// Returns the call and its blocks, and the bytes of all blocks where all ranks know them, or why it is not ours.
pub(crate) fn decide(
    seat: &Seat,
    asked: &MpiCall,
    given: Given,
) -> Result<(Call, OursBlocks, Option<u64>), Why> {
    let MpiCall { what, send, recv, .. } = *asked;
    let Given { root, combined, in_place, send: from, recv: to, blocks: [sends, receives] } = given;
    let rank = seat.rank as usize;
    let list = |side: Option<(Values, TypeLayout)>, blocks| {
        side.map(|(values, kind)| BlockValues { at: values.at, of: values.of, kind, blocks })
    };
    // The one block of a side with a count.
    let one = |side: Option<(Values, TypeLayout)>| {
        list(side, side.map(|(values, _)| (0, values.count)).into_iter().collect())
    };
    let (input, output, overwrites) = match what {
        MpiCollective::Allgatherv | MpiCollective::Gatherv => {
            let output = list(to, receives);
            let own = output
                .as_ref()
                .map(|output| BlockValues { blocks: vec![output.blocks[rank]], ..output.clone() });
            let input = if in_place { own.clone() } else { one(from) }.ok_or(Why::Argument)?;
            if own.is_some_and(|own| own.bytes_of(0) != input.bytes_of(0)) {
                return Err(Why::Argument);
            }
            (input, Some(output.unwrap_or_else(|| BlockValues::none(recv))), false)
        }
        MpiCollective::ReduceScatter => {
            // In place, MPI's result lies at the start of the input, and not at the rank's block.
            let block = vec![(0, sends[rank].1)];
            let input = list(from.or(to), sends).ok_or(Why::Argument)?;
            (input, list(to, block), in_place)
        }
        MpiCollective::Scatterv => {
            let output = one(to);
            let input = list(from, sends);
            let own = input.as_ref().zip(output.as_ref());
            if own.is_some_and(|(input, output)| input.bytes_of(rank) != output.bytes_of(0)) {
                return Err(Why::Argument);
            }
            (input.unwrap_or_else(|| BlockValues::none(send)), output, false)
        }
        _ => {
            let output = list(to, receives).ok_or(Why::Argument)?;
            let input = list(from, sends).unwrap_or_else(|| output.clone());
            if input.bytes_of(rank) != output.bytes_of(rank) {
                return Err(Why::Argument);
            }
            (input, Some(output), in_place)
        }
    };
    let all = match what {
        MpiCollective::Allgatherv => output.as_ref().map(|output| output.bytes() as u64),
        MpiCollective::ReduceScatter => Some(input.bytes() as u64),
        _ => None,
    };
    // Bytes that are only moved have no op.
    let (dtype, op) = combined.unwrap_or((DType::U8, ReduceOp::Sum));
    let call = Call { collective: what.collective(), root, count: World::BLOCKS, dtype, op };
    Ok((call, OursBlocks { input, output, overwrites }, all))
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
        let size = call.dtype.size();
        let rank = seat.rank as usize;
        let dense = |side: &BlockValues| side.is_dense(mpi, size);
        // The output in the program's memory, in a copy, or nowhere.
        let there = self.output.as_ref().filter(|output| !apart && dense(output));
        let nowhere = self.output.is_none().then(|| self.input.bytes_of(rank) as usize);
        let bytes = self.output.as_ref().map_or(nowhere.unwrap_or(0), BlockValues::bytes);
        let mut output_copy = Copied::new(if there.is_some() { 0 } else { bytes });
        let outputs = match (there, &self.output) {
            (Some(there), _) => there.there(mpi, size),
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
        let direct = direct.then(|| place(&self.input.there(mpi, size)).ok()).flatten();
        let direct = direct.filter(|at| may_alias || plan.is_none() || !at.is_in_place());
        let (at, _input_copy) = if let Some(at) = direct {
            (at, None)
        } else {
            // SAFETY: the program's values, during its call.
            let mut copy = unsafe { self.input.packed(mpi) }.map_err(Wrong::Packing)?;
            let inputs = self.input.copied(&mut copy, size);
            let at = place(&inputs).map_err(|error| Wrong::Error(Error::from(error)))?;
            (at, Some(copy))
        };
        // SAFETY: the blocks are the program's during its call, or copies; MPI's rules keep other code from them.
        let made = unsafe {
            match &plan {
                Some(plan) => at.run(plan).map_err(Error::from),
                None => at.call_packed(|blocks, input, output| {
                    ready.rank.call_blocks_bytes(call, blocks, input, output)
                }),
            }
        };
        made.map_err(Wrong::Error)?;
        match &self.output {
            Some(output) if there.is_none() && !apart => {
                // SAFETY: the program's values, during its call, and as many bytes.
                unsafe { output.unpack(mpi, &output_copy) }.map_err(Wrong::Unpacking)?;
                Ok(None)
            }
            Some(_) if apart => Ok(Some(output_copy)),
            _ => Ok(None),
        }
    }
}
