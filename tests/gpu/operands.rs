//! Operands on which instructions differ if they differ at all: the ends of every range, floats of every class, halfway
//! cases of roundings, and random bits.

use fastrand::Rng;

use super::forms::{Form, Kind};

/// Rows of operands of a form.
const ROWS: usize = 1 << 14;

/// Values of 16 bits: integers at the ends of their ranges, f16 and bf16 of every class, pairs of f8.
const SHORT: [u64; 32] = [
    0, 1, 2, 3, 0x7f, 0x80, 0x81, 0xff, 0x100, 0x3ff, 0x400, 0x3c00, 0x3f80, 0x7bff, 0x7c00,
    0x7c01, 0x7e00, 0x7f7f, 0x7f80, 0x7f81, 0x7fc0, 0x7fff, 0x8000, 0x8001, 0x807f, 0x8080, 0xfbff,
    0xfc00, 0xff80, 0xff81, 0xfffe, 0xffff,
];
/// Integers of 32 bits.
const INTEGERS: [u64; 25] = [
    0,
    1,
    2,
    3,
    7,
    0x1f,
    0x20,
    0x21,
    0x3f,
    0x40,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0xffff,
    0x1_0000,
    0x5555_5555,
    0xaaaa_aaaa,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xffff_fffe,
    0xffff_ffff,
];
/// Floats of 32 bits without their signs: subnormal, normal, infinite and NaN, and the ends of the ranges of f16, bf16,
/// e4m3 and e5m2 with the values halfway beyond them.
const FLOATS: [u64; 43] = [
    0x0000_0001,
    0x0000_0002,
    0x0040_0000,
    0x007f_ffff,
    0x0080_0000,
    0x0080_0001,
    0x00ff_ffff,
    0x3300_0000,
    0x3300_0001,
    0x337f_ffff,
    0x3380_0000,
    0x33c0_0000,
    0x3700_0000,
    0x3780_0000,
    0x3a80_0000,
    0x3a80_0001,
    0x3b00_0000,
    0x387f_ffff,
    0x3880_0000,
    0x3f00_0000,
    0x3f7f_ffff,
    0x3f80_0000,
    0x3f80_0001,
    0x3eaa_aaab,
    0x4000_0000,
    0x4040_0000,
    0x43e0_0000,
    0x43e7_ffff,
    0x43e8_0000,
    0x43f0_0000,
    0x4760_0000,
    0x4770_0000,
    0x477f_e000,
    0x477f_efff,
    0x477f_f000,
    0x4b7f_ffff,
    0x7f7f_7fff,
    0x7f7f_8000,
    0x7f7f_ffff,
    0x7f80_0000,
    0x7f80_0001,
    0x7fa5_5a5a,
    0x7fc0_0000,
];
/// Floats and integers of 64 bits.
const LONG: [u64; 34] = [
    0,
    1,
    2,
    3,
    0x20,
    0x3f,
    0x40,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x1_0000_0000,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x0010_0000_0000_0001,
    0x0020_0000_0000_0000,
    0x0100_0001_0000_0000,
    0x3fe0_0000_0000_0000,
    0x3fef_ffff_ffff_ffff,
    0x3ff0_0000_0000_0000,
    0x3ff0_0000_0000_0001,
    0x3fd5_5555_5555_5555,
    0x4000_0000_0000_0000,
    0x4340_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0x7ff5_a5a5_5a5a_a5a5,
    0x7ff8_0000_0000_0000,
    0x7ff8_0000_0000_1234,
    0x7fff_ffff_ffff_ffff,
    0x5555_5555_5555_5555,
    0x7fff_ff80_0000_0000,
    0x0020_0000_0000_0001,
    0x0060_0000_0000_0000,
];

fn low(value: u64, bits: u32) -> u64 {
    value & (u64::MAX >> (64 - bits))
}

/// The values of a kind that are tried with each other.
fn hostile(kind: Kind) -> Vec<u64> {
    let signed = |all: &[u64], bits: u32| {
        let sign = 1 << (bits - 1);
        let both = all.iter().flat_map(|value| [*value, value ^ sign]);
        let mut all: Vec<u64> = both.collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    match kind {
        Kind::Truth => vec![0, 1],
        Kind::Bits(16) => SHORT.to_vec(),
        Kind::Bits(32) => [&INTEGERS[..], &signed(&FLOATS, 32)].concat(),
        Kind::Bits(_) => signed(&LONG, 64),
        Kind::Distance => (0..70).chain(INTEGERS).collect(),
    }
}

/// A random value: any bits, few bits, a value in the middle of two that are shorter, or a float of a middling exponent.
fn random(kind: Kind, random: &mut Rng) -> u64 {
    let bits = kind.bits();
    let width = u64::from(bits);
    let any = random.u64(..);
    if kind == Kind::Distance && random.u64(..4) > 0 {
        return random.u64(..96);
    }
    let value = match random.u64(..5) {
        0 => any,
        1 => low(any, bits) >> random.u64(..width),
        2 => !(low(any, bits) >> random.u64(..width)),
        middle => {
            let short = random.u64(..width);
            let tail = (1u64 << short >> 1).wrapping_add(random.u64(..3)).wrapping_sub(1);
            let value = (any >> short << short) | low(tail, short as u32 + 1);
            match (middle, bits) {
                (3, 32) => low(value, 23) | (96 + random.u64(..50)) << 23 | (any >> 63) << 31,
                (3, 64) => low(value, 52) | (1000 + random.u64(..50)) << 52 | any >> 63 << 63,
                _ => low(value, bits) >> random.u64(..width),
            }
        }
    };
    low(value, bits)
}

/// Returns the rows of operands of a form: all values of one source of 16 bits, and otherwise all pairs of hostile values
/// of the first two sources, then random rows in which a hostile value or the value before it comes up now and then.
pub(crate) fn rows(form: &Form) -> Vec<[u64; 4]> {
    if form.sources == [Kind::Bits(16)] {
        return (0..1 << 16).map(|value| [value, 0, 0, 0]).collect();
    }
    let seed = form.text.bytes().fold(1, |seed: u64, byte| seed.wrapping_mul(31) + u64::from(byte));
    let mut numbers = Rng::with_seed(seed);
    let lists: Vec<Vec<u64>> = form.sources.iter().map(|kind| hostile(*kind)).collect();
    let pick = |list: &[u64], numbers: &mut Rng| list[numbers.usize(..list.len())];
    let mut rows = Vec::with_capacity(ROWS);
    let first = &lists[0];
    let second = lists.get(1).map_or(&[0][..], |list| list);
    for (a, b) in first.iter().flat_map(|a| second.iter().map(move |b| (*a, *b))) {
        let mut row = [a, b, 0, 0];
        for (value, list) in row.iter_mut().zip(&lists).skip(2) {
            *value = pick(list, &mut numbers);
        }
        rows.push(row);
    }
    rows.resize(rows.len().next_multiple_of(64), [0; 4]);
    while rows.len() < ROWS {
        let mut row = [0; 4];
        // Truth values of a warp are alike, or all but alike, or random.
        let density = [0, 1, 32, 63, 64][(rows.len() / 64 + rows.len() / 320) % 5];
        for (at, kind) in form.sources.iter().enumerate() {
            row[at] = match (kind, numbers.u64(..8)) {
                (Kind::Truth, _) => u64::from(numbers.u64(..64) < density),
                (_, 0 | 1) => pick(&lists[at], &mut numbers),
                (_, 2) if at > 0 => low(row[at - 1], kind.bits()),
                (_, 3) if at > 0 => low(row[at - 1] ^ 1 << numbers.u64(..64), kind.bits()),
                _ => random(*kind, &mut numbers),
            };
        }
        rows.push(row);
    }
    rows
}
