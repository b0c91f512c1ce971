//! All loops on all machines against the arithmetic of one element, and against the shapes of runs. The modules of one
//! element are built here once more, with the tests in them: the loops, which take long to build, are not.

#![allow(missing_docs)]

#[allow(dead_code)]
#[path = "../src/byte.rs"]
mod byte;
mod bytes;
#[path = "../src/cache.rs"]
mod cache;
mod case;
#[allow(dead_code)]
#[path = "../src/copy.rs"]
mod copy;
mod element;
#[path = "../src/half.rs"]
mod half;
#[allow(dead_code)]
#[path = "../src/number.rs"]
mod number;

use ::half::f16;
use fastrand::Rng as Random;
use roundelay_arithmetic::{InstructionSet, Kernel, MoveForm, SHORT, Stores, TILE};
use roundelay_base::dtype::{DType, ReduceOp};

use case::Case;
use copy::LINE;
use element::{below, defined_wide, read, same, write};

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

#[test]
fn there_are_loops_for_each_op_that_a_dtype_has_and_no_others() {
    let sets = Kernel::of_each_instruction_set(DType::I32, ReduceOp::Sum).len();
    for &dtype in DType::ALL {
        for &op in ReduceOp::ALL {
            let have = Kernel::of_each_instruction_set(dtype, op).len();
            assert_eq!(have, if op.takes(dtype) { sets } else { 0 }, "{dtype} {op}");
        }
    }
    let none = Kernel::new(DType::Bf16, ReduceOp::Lor).err().expect("floats have no bits");
    assert_eq!((none.op, none.element), (ReduceOp::Lor, "bf16"));
}

/// A kernel of an instruction set, and the kind of its stores.
#[derive(Clone, Copy)]
struct Loop {
    set: InstructionSet,
    kernel: Kernel,
    dtype: DType,
    op: ReduceOp,
    stores: Stores,
}

/// Calls `check` for every instruction set, dtype, op of the dtype, and kind of store.
fn each_kernel(mut check: impl FnMut(Loop)) {
    for &dtype in DType::ALL {
        for &op in ReduceOp::ALL {
            for (set, kernel) in Kernel::of_each_instruction_set(dtype, op) {
                for stores in STORES {
                    check(Loop { set, kernel, dtype, op, stores });
                }
            }
        }
    }
}

/// Returns a random shape for the length: operands, places, an average's division.
fn shape(of: Loop, len: usize, random: &mut Random) -> Case {
    let Loop { set, kernel, dtype, op, stores } = of;
    let (srcs, dsts) = (1 + below(random, 8), 1 + below(random, 8));
    let offsets = (0..17).map(|_| below(random, LINE / dtype.size())).collect();
    let shared = (below(random, 2) == 0).then(|| (below(random, dsts), below(random, srcs)));
    let divide = (op == ReduceOp::Avg).then(|| 1 + below(random, 1000) as u32);
    let mut wide = || if below(random, 2) == 0 { random.u8(..) } else { 0 };
    let (wide_srcs, wide_dsts) = (wide(), wide());
    let form = MoveForm { chain: below(random, 2) == 0, wide_srcs, wide_dsts };
    Case { set, kernel, dtype, op, stores, srcs, dsts, len, offsets, shared, divide, form }
}

#[test]
fn every_short_length_gives_what_is_defined() {
    let mut random = Random::with_seed(1);
    each_kernel(|of| {
        for len in 0..=300 {
            shape(of, len, &mut random).check(&mut random);
        }
    });
}

#[test]
fn lengths_around_tiles_give_what_is_defined() {
    let mut random = Random::with_seed(2);
    each_kernel(|of| {
        let (tile, short) = (TILE / of.dtype.size(), SHORT / of.dtype.size());
        for len in [short - 1, short, short + 1, tile - 1, tile, tile + 1, 2 * tile + 63] {
            shape(of, len, &mut random).check(&mut random);
        }
    });
}

#[test]
fn every_place_in_a_line_gives_what_is_defined() {
    let mut random = Random::with_seed(3);
    each_kernel(|of| {
        for offset in 0..LINE / of.dtype.size() {
            // The operand under test moves; the others stay at places where an error of one element shows.
            for offsets in [vec![offset], vec![offset, 1], vec![0, offset, 1]] {
                let len = 100 + offset;
                let case = shape(of, len, &mut random);
                Case { offsets, ..case }.check(&mut random);
            }
        }
    });
}

#[test]
fn every_number_of_sources_and_destinations_gives_what_is_defined() {
    let mut random = Random::with_seed(4);
    each_kernel(|of| {
        for srcs in 1..=8 {
            for dsts in 1..=8 {
                let case = shape(of, 67, &mut random);
                let shared = Some((below(&mut random, dsts), below(&mut random, srcs)));
                Case { srcs, dsts, shared, ..case }.check(&mut random);
            }
        }
    });
}

#[test]
fn every_half_meets_every_exponent() {
    for dtype in [DType::F16, DType::Bf16] {
        for &op in ReduceOp::ALL {
            for (set, kernel) in Kernel::of_each_instruction_set(dtype, op) {
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
