//! Calls with a count for each block, whose blocks lie anywhere.

use std::ffi::c_int;

use roundelay::{Call, EngineError, RankId, World};
use roundelay_kernels::BlocksAt;

use crate::buffers;
use crate::codes;
use crate::requests;
use crate::status::{Outcome, null};
use crate::worlds;

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
    at: BlocksAt,
}

impl GivenBlocks {
    /// Reads the address and the count of each of `units` blocks.
    ///
    /// # Safety
    /// Arrays that are not null have `units` elements.
    unsafe fn read(
        self,
        units: u32,
        size: usize,
        [name, counts]: [&str; 2],
    ) -> Outcome<Vec<(*mut u8, u64)>> {
        let units = units as usize;
        if units == 0 {
            return Ok(Vec::new());
        }
        // SAFETY: the caller's promise; the addresses need not be aligned.
        let counts: Vec<u64> = unsafe {
            let bytes = buffers::read(self.counts.cast(), 8 * units, counts)?;
            bytes.chunks_exact(8).map(word).map(u64::from_ne_bytes).collect()
        };
        if self.at.is_null() && counts.iter().any(|count| *count > 0) {
            return Err(null(name));
        }
        let mut next = 0_i64;
        let packed = counts.iter().map(|count| {
            let start = next;
            next = next.wrapping_add(*count as i64);
            start
        });
        let starts: Vec<i64> = if self.starts.is_null() {
            packed.collect()
        } else {
            // SAFETY: the caller's promise.
            let bytes = unsafe { buffers::read(self.starts.cast(), 8 * units, "starts") }?;
            bytes.chunks_exact(8).map(word).map(i64::from_ne_bytes).collect()
        };
        let at = |(start, count): (i64, u64)| match (start as isize).checked_mul(size as isize) {
            Some(offset) => Ok((self.at.wrapping_offset(offset), count)),
            None if count == 0 => Ok((self.at, count)),
            None => {
                let what = format!("a block of `{name}` at element {start} lies beyond all memory");
                Err(EngineError::BadCounts { what }.into())
            }
        };
        starts.into_iter().zip(counts).map(at).collect()
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
        codes: (c_int, c_int, c_int, u32),
        input: GivenBlocks,
        output: GivenBlocks,
    ) -> Outcome<Self> {
        // SAFETY: the caller's promise.
        worlds::placed(world, unsafe { Self::checked(world, codes, input, output) })
    }

    /// # Safety
    /// As for [`Self::new`].
    unsafe fn checked(
        world: &World,
        (collective, dtype, op, root): (c_int, c_int, c_int, u32),
        input: GivenBlocks,
        output: GivenBlocks,
    ) -> Outcome<Self> {
        let collective = codes::collective(collective)?;
        let (dtype, op) = (codes::dtype(dtype)?, codes::op(op)?);
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
        let (inputs, outputs) = unsafe {
            (
                input.read(units[0], size, ["input", "input_counts"])?,
                output.read(units[1], size, ["output", "output_counts"])?,
            )
        };
        let blocks = [&*inputs, &*outputs];
        let at = BlocksAt::new((collective, root), (rank, nranks), dtype, blocks)?;
        Ok(Self { call: Call { collective, root: root.0, count: 0, dtype, op }, at })
    }

    /// Makes the call.
    ///
    /// # Safety
    /// The blocks are valid, and no other code accesses them meanwhile.
    pub(crate) unsafe fn run(&self, world: &World) -> Result<(), roundelay::Error> {
        world.settle()?;
        let made = world.blocks_plan(self.call).and_then(|plan| {
            // SAFETY: the caller's promise.
            unsafe {
                match plan {
                    Some(plan) => Ok(self.at.run(&plan)?),
                    None => self.at.call_packed(|blocks, input, output| {
                        world.rank().call_blocks_bytes(self.call, blocks, input, output)
                    }),
                }
            }
        });
        made.map_err(|error| world.tell(error))
    }

    /// Starts the call.
    ///
    /// # Safety
    /// The blocks are valid, and no other code accesses them, until the call is done.
    pub(crate) unsafe fn start(self, world: &World) -> Outcome<u64> {
        // SAFETY: the caller's promise.
        worlds::placed(world, unsafe { self.started(world) })
    }

    /// # Safety
    /// As for [`Self::start`].
    unsafe fn started(self, world: &World) -> Outcome<u64> {
        let Some(plan) = world.blocks_plan(self.call)? else {
            // Between hosts, the counts of all ranks are brought together by a call of its own.
            let beside = world.share_with_queue();
            let job = move || {
                let this = self;
                // SAFETY: the caller's promise.
                unsafe { this.run(&beside) }
            };
            return Ok(requests::held(Box::new(world.nonblocking().job(job))));
        };
        if self.at.is_in_place() {
            plan.check_in_place()?;
        }
        let job = move || {
            let this = self;
            // SAFETY: the caller's promise.
            Ok(unsafe { this.at.run(&plan) }?)
        };
        Ok(requests::held(Box::new(world.nonblocking().job(job))))
    }
}
