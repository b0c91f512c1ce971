//! The effect of a `Move` on memory on a CPU: the fold of its sources, written to all its destinations. The loops are
//! in a crate apart from the engines, so that they alone are optimized where a program is built for debugging.

mod byte;
mod cache;
mod copy;
mod half;
mod kernels;
mod lanes;
mod number;

use std::mem::MaybeUninit;

use roundelay_dtype::{DType, NoSuchOp, ReduceOp};

pub use cache::last_level_cache;
use copy::{LINE, copy_unfenced, fence};
pub use copy::{Stores, copy};
use kernels::{Loops, WIDTH};

/// Bytes that a fold keeps in the cache while it passes over its sources: a quarter of a small L1 cache.
const TILE: usize = 8 << 10;

/// Bytes that a fold keeps in the cache where stores stream: few lines, so that the next are read while these are on
/// their way.
const SHORT: usize = 512;

/// The most sources of a run.
pub const MAX_SOURCES: usize = 8;

#[repr(align(64))]
struct Tile([MaybeUninit<u8>; TILE]);

/// The moves of one dtype and reduce op; chosen once per plan.
#[derive(Clone, Copy)]
pub struct Kernel {
    size: usize,
    loops: Loops,
}

impl Kernel {
    /// The kernel of `dtype` and `op` for this machine.
    ///
    /// # Errors
    /// E0431 where the dtype does not have the op ([`ReduceOp::takes`]).
    pub fn new(dtype: DType, op: ReduceOp) -> Result<Self, NoSuchOp> {
        let none = NoSuchOp { op, element: dtype.name() };
        Ok(Self { size: dtype.size(), loops: Loops::new(dtype, op).ok_or(none)? })
    }

    /// Bytes of an element.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Computes `acc = srcs[0]; for s in srcs[1..] { acc = s op acc }`, divides by `divide` if given, and writes to all
    /// of `dsts`. Streaming stores are complete when it returns.
    ///
    /// # Safety
    /// Every pointer is aligned and valid for `len` elements of the kernel's dtype, initialized in the sources; two of
    /// them are equal or their ranges are disjoint; and no other thread writes the sources or touches the destinations
    /// meanwhile. There is at least one source and one destination, and at most [`MAX_SOURCES`] sources.
    pub unsafe fn run(
        &self,
        srcs: &[*const u8],
        dsts: &[*mut u8],
        len: usize,
        divide: Option<u32>,
        stores: Stores,
    ) {
        let bytes = len * self.size;
        let mut tile = Tile([MaybeUninit::uninit(); TILE]);
        let plain = srcs.len() == 1 && divide.is_none();
        // The fold uses the first destination itself unless a source must still be read from there.
        let in_place = stores == Stores::Cached && !srcs[1..].contains(&dsts[0].cast_const());
        let tile_bytes = match stores {
            // One copy at a time, each with the longest run of reads.
            Stores::Cached if plain => bytes + LINE,
            Stores::Cached => TILE,
            Stores::Streaming => SHORT,
        };
        let mut start = 0;
        // Tiles end where a line of the first destination ends.
        let mut end = tile_bytes - dsts[0].addr() % LINE;
        while start < bytes {
            let part = end.min(bytes) - start;
            // SAFETY: `start` is below the length of every operand, and `part` stays within it. The tile
            // is apart from all operands; the first destination equals at most the first source, or is
            // apart from all sources.
            unsafe {
                let acc = if plain {
                    srcs[0].add(start).cast_mut()
                } else if in_place {
                    dsts[0].add(start)
                } else {
                    tile.0.as_mut_ptr().cast()
                };
                if !plain {
                    self.fold_tile(srcs, start, acc, part / self.size);
                }
                if let Some(nranks) = divide {
                    (self.loops.divide)(acc, part / self.size, nranks);
                }
                for &dst in dsts {
                    copy_unfenced(dst.add(start), acc, part, stores);
                }
            }
            start = end;
            end += tile_bytes;
        }
        fence(stores);
    }

    /// # Safety
    /// The promises of [`Kernel::run`], with `acc` for the destination: it may equal `srcs[0] + start`, and no other
    /// source.
    unsafe fn fold_tile(&self, srcs: &[*const u8], start: usize, acc: *mut u8, len: usize) {
        let mut at = [std::ptr::null(); MAX_SOURCES];
        for (at, src) in at.iter_mut().zip(srcs) {
            // SAFETY: the caller promises it.
            *at = unsafe { src.add(start) };
        }
        let at = &at[..srcs.len()];
        // SAFETY: the caller's promise; the tables hold a loop for each number of sources.
        unsafe {
            let rest = if at[0] == acc.cast_const() {
                &at[1..]
            } else if let [first] = at {
                std::ptr::copy_nonoverlapping(*first, acc, len * self.size);
                &[]
            } else {
                let (now, rest) = at.split_at(at.len().min(WIDTH + 1));
                (self.loops.join[now.len() - 2])(acc, now.as_ptr(), len);
                rest
            };
            for now in rest.chunks(WIDTH) {
                (self.loops.fold[now.len() - 1])(acc, now.as_ptr(), len);
            }
        }
    }
}

#[cfg(test)]
mod tests;
