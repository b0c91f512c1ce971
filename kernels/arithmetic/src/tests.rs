//! All loops on all machines against the arithmetic of one element, and against the shapes of runs.

use ::half::{bf16, f16};

use super::byte::{F8E4M3, F8E5M2};
use super::kernels::InstructionSet;
use super::number::{Divide, Number};
use super::wide::Narrow;
use super::*;
use fastrand::Rng as Random;

/// Sources with small integer values, long enough for several tiles and a rest.
fn sources(n: usize) -> Vec<Vec<i32>> {
    let len = TILE / 4 * 2 + 17;
    (0..n).map(|s| (0..len).map(|i| (i * (s + 3) % 1009) as i32 - 500).collect()).collect()
}

fn run(memory: &mut [Vec<i32>], srcs: &[usize], dsts: &[usize], divide: Option<u32>) {
    let kernel = Kernel::new(DType::I32, ReduceOp::Sum).expect("numbers have sums");
    let len = memory[0].len();
    let at: Vec<*mut u8> = memory.iter_mut().map(|v| v.as_mut_ptr().cast()).collect();
    let srcs: Vec<*const u8> = srcs.iter().map(|&s| at[s].cast_const()).collect();
    let dsts: Vec<*mut u8> = dsts.iter().map(|&d| at[d]).collect();
    // SAFETY: the operands are whole vectors of `len` elements, which are equal or apart.
    unsafe { kernel.run(&srcs, &dsts, len, MoveForm::CHAIN, divide, Stores::Cached) };
}

#[test]
fn any_destination_may_be_any_source() {
    for n in 1..=8 {
        for divide in [None, Some(3)] {
            for dst in 0..=n {
                for other in (0..=n).filter(|&o| o != dst) {
                    let mut memory = sources(n + 1);
                    let want: Vec<i32> = (0..memory[0].len())
                        .map(|i| {
                            (0..n).map(|s| memory[s][i]).sum::<i32>() / divide.unwrap_or(1) as i32
                        })
                        .collect();
                    let untouched = memory.clone();
                    let srcs: Vec<usize> = (0..n).collect();
                    run(&mut memory, &srcs, &[dst, other], divide);
                    for (at, now) in memory.iter().enumerate() {
                        let want = if at == dst || at == other { &want } else { &untouched[at] };
                        assert_eq!(now, want, "{n} sources to {dst} and {other}, looking at {at}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_source_given_twice_counts_twice() {
    let mut memory = sources(2);
    let want: Vec<i32> = memory[0].iter().zip(&memory[1]).map(|(a, b)| 2 * a + b).collect();
    run(&mut memory, &[0, 1, 0], &[0], None);
    assert_eq!(memory[0], want);
}

#[test]
fn halves_round_after_each_step_of_a_chain_and_else_once() {
    // 2048 + 1 ties to even and stays 2048 in f16: three sources give 2048 in a chain, and 2050 with one rounding.
    let kernel = Kernel::new(DType::F16, ReduceOp::Sum).expect("numbers have sums");
    let (mut acc, one) = ([::half::f16::from_f32(2048.0); 3], [::half::f16::ONE; 3]);
    let one = one.as_ptr().cast::<u8>();
    let at = acc.as_mut_ptr().cast::<u8>();
    for (form, sum) in [(MoveForm::CHAIN, 2048.0), (MoveForm::default(), 2050.0)] {
        let srcs = [at.cast_const(), one, one];
        // SAFETY: the operands have three elements each, and are apart.
        unsafe { kernel.run(&srcs, &[at], 3, form, None, Stores::Cached) };
        assert_eq!(acc, [::half::f16::from_f32(sum); 3]);
    }
}

/// Three contributions at the end of the range, whose sum is beyond it: as f32 it is not, and in a chain the sum of the
/// first two is rounded.
#[test]
fn an_average_is_divided_before_it_is_rounded() {
    let of = |dtype: DType, bits: u64, form: MoveForm, wide_sum: Option<f32>| {
        let kernel = Kernel::new(dtype, ReduceOp::Avg).expect("numbers have averages");
        let mut part = [0_u64];
        write(dtype, bits, &mut bytes_of(&mut part)[..dtype.size()]);
        let (mut sum, mut made) = (wide_sum, [0_u64]);
        let at = part.as_ptr().cast::<u8>();
        let srcs = match &mut sum {
            Some(sum) => vec![(&raw const *sum).cast::<u8>()],
            None => vec![at; 3],
        };
        // SAFETY: the operands have an element each, and the destination is apart.
        unsafe { kernel.run(&srcs, &[made.as_mut_ptr().cast()], 1, form, Some(3), Stores::Cached) };
        read(dtype, &bytes_of(&mut made)[..dtype.size()])
    };
    let (once, chain) = (MoveForm::default(), MoveForm::CHAIN);
    let copied = MoveForm { wide_srcs: 1, ..once };
    let f16 = |x: f32| u64::from(f16::from_f32(x).to_bits());
    assert_eq!(of(DType::F16, f16(60000.0), once, None), f16(60000.0));
    assert_eq!(of(DType::F16, f16(60000.0), copied, Some(180_000.0)), f16(60000.0));
    assert_eq!(of(DType::F16, f16(60000.0), chain, None), f16(f32::INFINITY));
    assert_eq!(of(DType::F8E4M3, 0x7e, once, None), 0x7e, "448");
    // The sum of two saturates, and (448 + 448) / 3 is near 298.7.
    assert_eq!(of(DType::F8E4M3, 0x7e, chain, None), 0x79, "288");
    assert_eq!(of(DType::F8E5M2, 0x7b, once, None), 0x7b, "57344");
}

fn bytes_of(words: &mut [u64; 1]) -> &mut [u8] {
    // SAFETY: a word has eight bytes, and any bits are a value.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), 8) }
}

const STORES: [Stores; 2] = [Stores::Cached, Stores::Streaming];

fn below(random: &mut Random, n: usize) -> usize {
    random.usize(..n)
}

/// Bits of (infinity, quiet NaN, 1) of a float.
fn float(dtype: DType) -> Option<(u64, u64, u64)> {
    match dtype {
        DType::F16 => Some((0x7c00, 0x7e00, 0x3c00)),
        DType::Bf16 => Some((0x7f80, 0x7fc0, 0x3f80)),
        DType::F32 => Some((0x7f80_0000, 0x7fc0_0000, 0x3f80_0000)),
        DType::F64 => Some((0x7ff0 << 48, 0x7ff8 << 48, 0x3ff0 << 48)),
        // There is no infinity: the largest number has its place.
        DType::F8E4M3 => Some((0x7e, 0x7f, 0x38)),
        DType::F8E5M2 => Some((0x7c, 0x7f, 0x3c)),
        _ => None,
    }
}

/// Random bits, or 0 for one in eight integers; floats also around zero, one and infinity, with either sign.
fn element(dtype: DType, random: &mut Random) -> u64 {
    let bits = random.u64(..);
    let sign = (bits & 1) << (dtype.size() * 8 - 1);
    match float(dtype) {
        Some((infinity, nan, one)) if bits >> 61 == 0 => {
            let near = [0, 1, 2, infinity, infinity - 1, infinity + 1, nan, one, one + 1, one - 1];
            near[below(random, near.len())] | sign
        }
        // The values have one magnitude, so that sums have ties.
        Some((_, _, one)) if bits >> 62 == 1 => (one + (bits >> 8) % 64) ^ sign,
        None if bits >> 61 == 0 => 0,
        _ => bits,
    }
}

fn write(dtype: DType, bits: u64, to: &mut [u8]) {
    let size = dtype.size();
    if cfg!(target_endian = "big") {
        to.copy_from_slice(&bits.to_be_bytes()[8 - size..]);
    } else {
        to.copy_from_slice(&bits.to_le_bytes()[..size]);
    }
}

fn read(dtype: DType, from: &[u8]) -> u64 {
    let (mut bytes, size) = ([0; 8], dtype.size());
    if cfg!(target_endian = "big") {
        bytes[8 - size..].copy_from_slice(from);
        u64::from_be_bytes(bytes)
    } else {
        bytes[..size].copy_from_slice(from);
        u64::from_le_bytes(bytes)
    }
}

/// Computes the result of one element by the definition, of a type that is not a narrow float.
fn defined(dtype: DType, op: ReduceOp, values: &[u64], divide: Option<u32>) -> u64 {
    fn of<T: Divide>(op: ReduceOp, values: impl Iterator<Item = T>, divide: Option<u32>) -> T {
        let folded = values.reduce(|acc, src| match op {
            ReduceOp::Sum | ReduceOp::Avg => src.sum(acc),
            ReduceOp::Prod => src.prod(acc),
            ReduceOp::Min => src.min(acc),
            ReduceOp::Max => src.max(acc),
            _ => panic!("{op} is of bits"),
        });
        let folded = folded.expect("a source");
        divide.map_or(folded, |nranks| folded.divide(nranks))
    }
    let values = values.iter().copied();
    if op.is_for_integers() {
        let unused = 64 - 8 * dtype.size();
        let folded = values.map(|x| x << unused >> unused).reduce(|acc, src| match op {
            ReduceOp::Band => src & acc,
            ReduceOp::Bor => src | acc,
            ReduceOp::Bxor => src ^ acc,
            ReduceOp::Land => (src > 0 && acc > 0).into(),
            ReduceOp::Lor => (src > 0 || acc > 0).into(),
            _ => ((src > 0) != (acc > 0)).into(),
        });
        return folded.expect("a source");
    }
    match dtype {
        DType::I8 => of(op, values.map(|x| x as i8), divide) as u8 as u64,
        DType::U8 => of(op, values.map(|x| x as u8), divide) as u64,
        DType::I32 => of(op, values.map(|x| x as i32), divide) as u32 as u64,
        DType::U32 => of(op, values.map(|x| x as u32), divide) as u64,
        DType::I64 => of(op, values.map(|x| x as i64), divide) as u64,
        DType::U64 => of(op, values, divide),
        DType::F32 => of(op, values.map(|x| f32::from_bits(x as u32)), divide).to_bits() as u64,
        DType::F64 => of(op, values.map(f64::from_bits), divide).to_bits(),
        _ => panic!("{dtype} is a narrow float"),
    }
}

/// Conversions between the bits of a narrow float and f32.
type ToWide = fn(u64) -> f32;
type ToNarrow = fn(f32) -> u64;

/// Returns the f32 of a narrow float, and the narrow float of an f32.
fn converted(dtype: DType) -> Option<(ToWide, ToNarrow)> {
    Some(match dtype {
        DType::F16 => {
            (|x| f16::from_bits(x as u16).to_f32(), |x| f16::from_f32(x).to_bits() as u64)
        }
        DType::Bf16 => {
            (|x| bf16::from_bits(x as u16).to_f32(), |x| bf16::from_f32(x).to_bits() as u64)
        }
        DType::F8E4M3 => (
            |x| Narrow::widen(F8E4M3::from_bits(x as u8)),
            |x| <F8E4M3 as Narrow>::narrow(x).to_bits() as u64,
        ),
        DType::F8E5M2 => (
            |x| Narrow::widen(F8E5M2::from_bits(x as u8)),
            |x| <F8E5M2 as Narrow>::narrow(x).to_bits() as u64,
        ),
        _ => return None,
    })
}

/// Computes one element by the definition of a move, with its wide sources as bits of f32: the result before it is
/// divided and rounded, and after.
fn defined_wide(
    (dtype, op): (DType, ReduceOp),
    form: MoveForm,
    values: &[u64],
    divide: Option<u32>,
) -> (f32, u64) {
    let (widen, narrow) = converted(dtype).expect("a narrow float");
    let value = |nth: usize| match form.wide_srcs >> nth & 1 {
        1 => f32::from_bits(values[nth] as u32),
        _ => widen(values[nth]),
    };
    let mut acc = value(0);
    for nth in 1..values.len() {
        if nth > 1 && form.chain {
            acc = widen(narrow(acc));
        }
        acc = match op {
            ReduceOp::Sum | ReduceOp::Avg => value(nth).sum(acc),
            ReduceOp::Prod => value(nth).prod(acc),
            ReduceOp::Min => Number::min(value(nth), acc),
            _ => Number::max(value(nth), acc),
        };
    }
    (acc, narrow(divide.map_or(acc, |nranks| acc.divide(nranks))))
}

/// Compares bits; two quiet NaNs are equal, and in 16 or 8 bits only canonical ones (of either sign), unless merely
/// copied.
fn same(dtype: DType, got: u64, want: u64, copied: bool) -> bool {
    let Some((infinity, quiet, _)) = float(dtype) else { return got == want };
    let magnitude = (1 << (dtype.size() * 8 - 1)) - 1;
    if copied || want & magnitude <= infinity {
        return got == want;
    }
    if dtype.size() <= 2 { got & magnitude == quiet } else { got & quiet == quiet }
}

/// One run of one kernel, with the places of its operands in lines of memory.
struct Case {
    set: InstructionSet,
    dtype: DType,
    op: ReduceOp,
    stores: Stores,
    srcs: usize,
    dsts: usize,
    len: usize,
    /// Elements from the start of a line to each operand, used in turn.
    offsets: Vec<usize>,
    /// The destination, if any, that equals a source, and the index of that source.
    shared: Option<(usize, usize)>,
    divide: Option<u32>,
    form: MoveForm,
}

impl Case {
    fn check(&self, random: &mut Random) {
        const GUARD: u8 = 0xa5;
        let size = self.dtype.size();
        let stride = (self.len * Ord::max(4, size)).next_multiple_of(LINE) + 2 * LINE;
        let mut memory = vec![GUARD; stride * (self.srcs + self.dsts) + LINE];
        let base = memory.as_ptr().align_offset(LINE);
        let at = |operand: usize| {
            let places = LINE / self.size(operand);
            let offset = self.offsets[operand % self.offsets.len()] % places * self.size(operand);
            base + operand * stride + offset
        };
        let mut places: Vec<usize> = (0..self.srcs + self.dsts).map(at).collect();
        if let Some((dst, src)) = self.shared
            && self.size(self.srcs + dst) == self.size(src)
        {
            places[self.srcs + dst] = places[src];
        }
        for (nth, &src) in places[..self.srcs].iter().enumerate() {
            let (dtype, size) = (self.dtype(nth), self.size(nth));
            for bytes in memory[src..][..self.len * size].chunks_exact_mut(size) {
                write(dtype, element(dtype, random), bytes);
            }
        }
        let before = memory.clone();
        let start = memory.as_mut_ptr();
        let loops = self.set.table(self.dtype, self.op).expect("the dtype has the op");
        let kernel = Kernel { size, loops };
        // SAFETY: all places are in `memory`, `stride` apart or equal, and aligned for the dtype.
        unsafe {
            let at: Vec<*mut u8> = places.iter().map(|&place| start.add(place)).collect();
            let srcs: Vec<*const u8> = at[..self.srcs].iter().map(|at| at.cast_const()).collect();
            kernel.run(&srcs, &at[self.srcs..], self.len, self.form(), self.divide, self.stores);
        }
        let mut want = before.clone();
        // A NaN that is copied to or from a wide operand may become a quiet one, or stay as it is.
        let wide_move = (0..self.srcs + self.dsts).any(|nth| self.dtype(nth) != self.dtype);
        let copied = self.srcs == 1 && self.divide.is_none();
        let narrow = converted(self.dtype).is_some();
        for i in 0..self.len {
            let value = |nth: usize| {
                let size = self.size(nth);
                read(self.dtype(nth), &before[places[nth] + i * size..][..size])
            };
            let values: Vec<u64> = (0..self.srcs).map(value).collect();
            let (wide, result) = if copied && !wide_move {
                (0.0, values[0])
            } else if narrow {
                defined_wide((self.dtype, self.op), self.form(), &values, self.divide)
            } else {
                (0.0, defined(self.dtype, self.op, &values, self.divide))
            };
            for (operand, &dst) in places.iter().enumerate().skip(self.srcs) {
                let (dtype, size) = (self.dtype(operand), self.size(operand));
                let result = if dtype == self.dtype { result } else { u64::from(wide.to_bits()) };
                let got = &memory[dst + i * size..][..size];
                let a_nan = |bits| {
                    float(dtype).is_some_and(|(infinity, ..)| {
                        bits & ((1 << (dtype.size() * 8 - 1)) - 1) > infinity
                    })
                };
                let nans = wide_move && self.srcs == 1 && a_nan(result) && a_nan(read(dtype, got));
                assert!(
                    nans || same(dtype, read(dtype, got), result, copied && !wide_move),
                    "{}: element {i} of {values:x?} is {:x}, not {result:x}",
                    self.name(),
                    read(dtype, got),
                );
                want[dst + i * size..][..size].copy_from_slice(got);
            }
        }
        assert!(memory == want, "{}: memory beside the destinations has changed", self.name());
    }

    /// Returns the type of an operand, sources first.
    fn dtype(&self, operand: usize) -> DType {
        let wide = match operand.checked_sub(self.srcs) {
            None => self.form.wide_srcs >> operand,
            Some(dst) => self.form.wide_dsts >> dst,
        };
        let narrow = converted(self.dtype).is_some();
        if narrow && wide & 1 == 1 { DType::F32 } else { self.dtype }
    }

    /// Returns the form, with no bits beyond the operands.
    fn form(&self) -> MoveForm {
        let MoveForm { chain, wide_srcs, wide_dsts } = self.form;
        let of = |n: usize| u8::MAX >> (8 - n);
        MoveForm {
            chain,
            wide_srcs: wide_srcs & of(self.srcs),
            wide_dsts: wide_dsts & of(self.dsts),
        }
    }

    fn size(&self, operand: usize) -> usize {
        self.dtype(operand).size()
    }

    fn name(&self) -> String {
        let Self { set, dtype, op, stores, srcs, dsts, len, offsets, shared, divide, form } = self;
        format!(
            "{set:?} {dtype} {op} {stores:?} {srcs} -> {dsts} len {len} offsets {offsets:?} \
             shared {shared:?} divide {divide:?} {form:?}"
        )
    }
}

#[test]
fn there_are_loops_for_each_op_that_a_dtype_has_and_no_others() {
    for set in InstructionSet::supported() {
        for &dtype in DType::ALL {
            for &op in ReduceOp::ALL {
                assert_eq!(set.table(dtype, op).is_some(), op.takes(dtype), "{set:?} {dtype} {op}");
            }
        }
    }
    let none = Kernel::new(DType::Bf16, ReduceOp::Lor).err().expect("floats have no bits");
    assert_eq!((none.op, none.element), (ReduceOp::Lor, "bf16"));
}

/// Calls `check` for every instruction set, dtype, op of the dtype, and kind of store.
fn each_kernel(mut check: impl FnMut(InstructionSet, DType, ReduceOp, Stores)) {
    for set in InstructionSet::supported() {
        for &dtype in DType::ALL {
            for &op in ReduceOp::ALL.iter().filter(|op| op.takes(dtype)) {
                for stores in STORES {
                    check(set, dtype, op, stores);
                }
            }
        }
    }
}

/// Returns a random shape for the length: operands, places, an average's division.
fn shape(
    (set, dtype, op, stores): (InstructionSet, DType, ReduceOp, Stores),
    len: usize,
    random: &mut Random,
) -> Case {
    let (srcs, dsts) = (1 + below(random, 8), 1 + below(random, 8));
    let offsets = (0..17).map(|_| below(random, LINE / dtype.size())).collect();
    let shared = (below(random, 2) == 0).then(|| (below(random, dsts), below(random, srcs)));
    let divide = (op == ReduceOp::Avg).then(|| 1 + below(random, 1000) as u32);
    let mut wide = || if below(random, 2) == 0 { random.u8(..) } else { 0 };
    let (wide_srcs, wide_dsts) = (wide(), wide());
    let form = MoveForm { chain: below(random, 2) == 0, wide_srcs, wide_dsts };
    Case { set, dtype, op, stores, srcs, dsts, len, offsets, shared, divide, form }
}

#[test]
fn every_short_length_gives_what_is_defined() {
    let mut random = Random::with_seed(1);
    each_kernel(|set, dtype, op, stores| {
        for len in 0..=300 {
            shape((set, dtype, op, stores), len, &mut random).check(&mut random);
        }
    });
}

#[test]
fn lengths_around_tiles_give_what_is_defined() {
    let mut random = Random::with_seed(2);
    each_kernel(|set, dtype, op, stores| {
        let (tile, short) = (TILE / dtype.size(), SHORT / dtype.size());
        for len in [short - 1, short, short + 1, tile - 1, tile, tile + 1, 2 * tile + 63] {
            shape((set, dtype, op, stores), len, &mut random).check(&mut random);
        }
    });
}

#[test]
fn every_place_in_a_line_gives_what_is_defined() {
    let mut random = Random::with_seed(3);
    each_kernel(|set, dtype, op, stores| {
        for offset in 0..LINE / dtype.size() {
            // The operand under test moves; the others stay at places where an error of one element shows.
            for offsets in [vec![offset], vec![offset, 1], vec![0, offset, 1]] {
                let len = 100 + offset;
                let case = shape((set, dtype, op, stores), len, &mut random);
                Case { offsets, ..case }.check(&mut random);
            }
        }
    });
}

#[test]
fn every_number_of_sources_and_destinations_gives_what_is_defined() {
    let mut random = Random::with_seed(4);
    each_kernel(|set, dtype, op, stores| {
        for srcs in 1..=8 {
            for dsts in 1..=8 {
                let case = shape((set, dtype, op, stores), 67, &mut random);
                let shared = Some((below(&mut random, dsts), below(&mut random, srcs)));
                Case { srcs, dsts, shared, ..case }.check(&mut random);
            }
        }
    });
}

#[test]
fn every_half_meets_every_exponent() {
    for set in InstructionSet::supported() {
        for dtype in [DType::F16, DType::Bf16] {
            for &op in ReduceOp::ALL.iter().filter(|op| op.takes(dtype)) {
                let loops = set.table(dtype, op).expect("the dtype has the op");
                let kernel = Kernel { size: 2, loops };
                let divide = (op == ReduceOp::Avg).then_some(3);
                let all: Vec<u16> = (0..=u16::MAX).collect();
                for k in 0..64u16 {
                    // All exponents of f16 and every fourth exponent of bf16, with either sign and some mantissas.
                    let other = (k << 10) | (k.wrapping_mul(0x9e5) & 0x3ff);
                    let (others, mut out) = (vec![other; all.len()], vec![0u16; all.len()]);
                    let srcs = [all.as_ptr().cast(), others.as_ptr().cast()];
                    // SAFETY: the operands are three whole vectors, apart.
                    unsafe {
                        let dsts = [out.as_mut_ptr().cast()];
                        let form = MoveForm::default();
                        kernel.run(&srcs, &dsts, all.len(), form, divide, Stores::Cached);
                    }
                    for (&x, &got) in all.iter().zip(&out) {
                        let values = [x as u64, other as u64];
                        let form = MoveForm::default();
                        let (_, want) = defined_wide((dtype, op), form, &values, divide);
                        assert!(
                            same(dtype, got as u64, want, false),
                            "{set:?} {dtype} {op} of {x:x} and {other:x}: {got:x}, not {want:x}"
                        );
                    }
                }
            }
        }
    }
}
