//! The effect of a `Move` on memory on a CPU: the fold of its sources, written to all its destinations. The loops are
//! in a crate apart from the engines, so that they alone are optimized where a program is built for debugging.

mod byte;
mod cache;
mod copy;
mod half;
mod kernels;
mod lanes;
mod number;
mod wide;

use std::mem::MaybeUninit;
use std::ptr::copy_nonoverlapping;

use roundelay_base::dtype::{DType, NoSuchOp, ReduceOp};

pub use cache::last_level_cache;
use copy::{LINE, copy_unfenced, fence};
pub use copy::{Stores, copy};
pub use kernels::InstructionSet;
use kernels::{Loops, WIDTH};
use wide::WideLoops;

/// Bytes that a fold keeps in the cache while it passes over its sources: a quarter of a small L1 cache.
pub const TILE: usize = 8 << 10;

/// Bytes that a fold keeps in the cache where stores stream: few lines, so that the next are read while these are on
/// their way.
pub const SHORT: usize = 512;

/// The most sources of a run.
pub const MAX_SOURCES: usize = 8;

#[repr(align(64))]
struct Tile([MaybeUninit<u8>; TILE]);

/// Elements that a fold keeps as f32 while it passes over its sources.
const WIDE: usize = TILE / size_of::<f32>();

#[repr(align(64))]
struct WideTile([MaybeUninit<f32>; WIDE]);

/// How a move rounds, and which of its operands keep floats narrower than f32 as f32. For other types it makes no
/// difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MoveForm {
    /// Whether the fold rounds after each source; else it computes in f32, and rounds once.
    pub chain: bool,
    /// The wide sources: bit i is source i.
    pub wide_srcs: u8,
    /// The wide destinations: bit i is destination i.
    pub wide_dsts: u8,
}

impl MoveForm {
    /// A fold of narrow operands that rounds after each source.
    pub const CHAIN: Self = Self { chain: true, wide_srcs: 0, wide_dsts: 0 };
}

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

    /// The kernels of `dtype` and `op` for each instruction set of this machine, the widest first; none where the dtype
    /// does not have the op.
    pub fn of_each_instruction_set(dtype: DType, op: ReduceOp) -> Vec<(InstructionSet, Self)> {
        let kernel = |loops| Self { size: dtype.size(), loops };
        let of = |set: InstructionSet| Some((set, kernel(set.table(dtype, op)?)));
        InstructionSet::supported().into_iter().filter_map(of).collect()
    }

    /// Bytes of an element.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Elements of the kernel's dtype that a wide element takes the place of: those of an f32 where the dtype is a
    /// narrower float, and else 1.
    pub fn width(&self) -> usize {
        if self.loops.wide.is_some() { size_of::<f32>() / self.size } else { 1 }
    }

    /// Computes `acc = srcs[0]; for s in srcs[1..] { acc = s op acc }`, divides by `divide` if given, rounds as `form` says,
    /// and writes to all of `dsts`. The division comes before the last rounding. A wide destination gets the sum before it
    /// is divided and rounded. Streaming stores are complete when it returns.
    ///
    /// # Safety
    /// Every pointer is aligned and valid for `len` elements of the kernel's dtype, or of f32 where `form` says that the
    /// operand is wide and [`Self::width`] is not 1, initialized in the sources; two of
    /// them are equal or their ranges are disjoint; and no other thread writes the sources or touches the destinations
    /// meanwhile. There is at least one source and one destination, and at most [`MAX_SOURCES`] sources.
    pub unsafe fn run(
        &self,
        srcs: &[*const u8],
        dsts: &[*mut u8],
        len: usize,
        form: MoveForm,
        divide: Option<u32>,
        stores: Stores,
    ) {
        if let Some(loops) = &self.loops.wide
            && (form.wide_srcs | form.wide_dsts != 0
                || divide.is_some()
                || srcs.len() > 2 && !form.chain)
        {
            // SAFETY: the caller's promise.
            unsafe { self.run_wide(loops, srcs, dsts, len, form, divide, stores) };
            return;
        }
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

    /// The moves that round once, divide, or have wide operands.
    ///
    /// # Safety
    /// The promises of [`Kernel::run`].
    #[expect(clippy::too_many_arguments, reason = "those of `run`")]
    #[inline(never)] // its tiles would lie on the stack of every move
    unsafe fn run_wide(
        &self,
        loops: &WideLoops,
        srcs: &[*const u8],
        dsts: &[*mut u8],
        len: usize,
        form: MoveForm,
        divide: Option<u32>,
        stores: Stores,
    ) {
        let mut tiles = [const { Tile([MaybeUninit::uninit(); TILE]) }; 2];
        let mut wide = WideTile([MaybeUninit::uninit(); WIDE]);
        let [narrow, chained] = tiles.each_mut().map(|tile| tile.0.as_mut_ptr().cast::<u8>());
        let wide = wide.0.as_mut_ptr().cast::<f32>();
        let all_narrow = form.wide_srcs | form.wide_dsts == 0;
        let average = loops.average.zip(divide).filter(|_| all_narrow);
        let is_wide = |mask: u8, nth: usize| mask >> nth & 1 == 1;
        let rounds = (0..dsts.len()).any(|nth| !is_wide(form.wide_dsts, nth));
        let mut start = 0;
        while start < len {
            let now = WIDE.min(len - start);
            // SAFETY: `start + now` is at most `len`, the length of every operand; the tiles are apart from all operands
            // and hold `WIDE` elements; a destination is written after all sources are read.
            unsafe {
                let at = |nth: usize| {
                    let size = if is_wide(form.wide_srcs, nth) { 4 } else { self.size };
                    srcs[nth].add(start * size)
                };
                let mut from = [std::ptr::null(); MAX_SOURCES];
                (0..srcs.len()).for_each(|nth| from[nth] = at(nth));
                if let Some((average, nranks)) = average {
                    let mut sources = srcs.len();
                    if form.chain && sources > 2 {
                        // The sum of all sources but the last is rounded after each source.
                        self.fold_tile(&srcs[..sources - 1], start * self.size, chained, now);
                        (from[0], from[1], sources) = (chained, from[sources - 1], 2);
                    }
                    (average[sources - 1])(narrow, from.as_ptr(), now, nranks);
                } else if all_narrow && !form.chain && divide.is_none() {
                    (loops.once[srcs.len() - 3])(narrow, from.as_ptr(), now);
                } else {
                    for nth in 0..srcs.len() {
                        match (nth, is_wide(form.wide_srcs, nth)) {
                            (0, true) => copy_nonoverlapping(at(0).cast(), wide, now),
                            (0, false) => (loops.widen)(wide, at(0), now),
                            (_, true) => (loops.step_wide)(wide, at(nth).cast(), now),
                            (_, false) => (loops.step)(wide, at(nth), now),
                        }
                        if form.chain && nth > 0 && nth + 1 < srcs.len() {
                            (loops.narrow)(narrow, wide, now);
                            (loops.widen)(wide, narrow, now);
                        }
                    }
                    let exact = dsts.iter().enumerate();
                    for (_, dst) in exact.filter(|(nth, _)| is_wide(form.wide_dsts, *nth)) {
                        copy_nonoverlapping(wide.cast(), dst.add(start * 4), now * 4);
                    }
                    if let Some(nranks) = divide.filter(|_| rounds) {
                        (self.loops.divide)(wide.cast(), now, nranks);
                    }
                    if rounds {
                        (loops.narrow)(narrow, wide, now);
                    }
                }
                let rounded = dsts.iter().enumerate();
                for (_, dst) in rounded.filter(|(nth, _)| !is_wide(form.wide_dsts, *nth)) {
                    copy_unfenced(dst.add(start * self.size), narrow, now * self.size, stores);
                }
            }
            start += now;
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
