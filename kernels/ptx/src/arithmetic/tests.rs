//! A table of every operation on every type that kernels have, and the conversions against other implementations.

use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};

mod table;

use super::*;
use crate::program::{FloatOp, Module, Operand, Operation, Packed};
use table::TABLE;

/// The operation of an instruction, and its sources with the values of its registers.
fn read(instruction: &str, values: &[u64]) -> (ArithmeticOp, [u64; 4]) {
    let registers =
        [".pred %p", ".b16 %rs", ".f16 %h", ".b32 %r", ".b64 %rd", ".f32 %f", ".f64 %fd"];
    let registers = registers.map(|kind| format!(".reg {kind}<4>;\n")).concat();
    let text = format!(
        ".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry K()\n{{\n{registers}{instruction};\nret;\n}}"
    );
    let module =
        Module::parse_whole(&text).unwrap_or_else(|error| panic!("{instruction}: {error}"));
    let Operation::Arithmetic(found) = &module.functions[0].instructions[0].operation else {
        panic!("{instruction} is not arithmetic");
    };
    let mut values = values.iter();
    let mut sources = found.from.map(|operand| match operand {
        Operand::Value(value) => value,
        Operand::Slot(_) => *values.next().expect("a value for each register"),
    });
    assert_eq!(values.next(), None, "{instruction}");
    for (at, source) in sources.iter_mut().enumerate() {
        *source ^= u64::from(found.negated >> at & 1);
    }
    (found.op, sources)
}

#[test]
fn operations_give_the_results_of_the_table() {
    for (instruction, values, expected) in TABLE {
        let (op, sources) = read(instruction, values);
        let found = evaluate(op, sources);
        assert_eq!(found, *expected, "{instruction} of {values:x?}: {found:#x}");
    }
}

/// The bits above a source's type have no meaning.
#[test]
fn operations_ignore_the_bits_above_a_sources_type() {
    for (instruction, values, expected) in TABLE {
        let wide = |register: &str| register.contains("%rd") || register.contains("%fd");
        let names: Vec<_> = instruction.split(", ").skip(1).filter(|o| o.contains('%')).collect();
        let noise = |name: &&str| if wide(name) || name.contains("%p") { 0 } else { 0xdead << 32 };
        let noisy: Vec<_> = values.iter().zip(&names).map(|(v, name)| v | noise(name)).collect();
        let (op, sources) = read(instruction, &noisy);
        assert_eq!(evaluate(op, sources), *expected, "{instruction} of {noisy:x?}");
    }
}

/// Every opcode of arithmetic in the list of known ones has a row.
#[test]
fn the_table_has_every_opcode_of_the_kernels() {
    let in_table = |opcode: &str| TABLE.iter().any(|row| row.0.split(' ').next() == Some(opcode));
    let missing: Vec<_> = crate::lint::OPCODES
        .iter()
        .filter(|opcode| {
            let first = opcode.split('.').next().unwrap_or_default();
            let others = [
                "ld", "st", "red", "fence", "cvta", "bra", "call", "ret", "trap", "bar", "shfl",
                "vote", "mov", "multimem",
            ];
            !others.contains(&first) && !in_table(opcode)
        })
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn floats_of_16_bits_are_those_of_half() {
    for bits in 0..=u16::MAX {
        let (ours, theirs) = (narrow::to_f32(Float::F16, bits), f16::from_bits(bits).to_f32());
        assert!(same(ours, theirs), "f16 {bits:#x}: {ours:#x}");
        let (ours, theirs) = (narrow::to_f32(Float::Bf16, bits), bf16::from_bits(bits).to_f32());
        assert!(same(ours, theirs), "bf16 {bits:#x}: {ours:#x}");
    }
}

fn same(ours: u32, theirs: f32) -> bool {
    ours == theirs.to_bits() || (f32::from_bits(ours).is_nan() && theirs.is_nan())
}

#[test]
fn floats_of_8_bits_are_those_of_float8() {
    for byte in 0..=u8::MAX {
        let pair = u16::from(byte) << 8 | u16::from(byte);
        let e4m3 = narrow::widened(Packed::E4m3x2, pair);
        let e5m2 = narrow::widened(Packed::E5m2x2, pair);
        for (ours, theirs) in
            [(e4m3, F8E4M3::from_bits(byte).to_f32()), (e5m2, F8E5M2::from_bits(byte).to_f32())]
        {
            assert_eq!(ours >> 16, ours & 0xffff);
            let ours = narrow::to_f32(Float::F16, ours as u16);
            assert!(same(ours, theirs), "{byte:#x}: {ours:#x}, {theirs}");
        }
    }
}

/// Every value of the narrow type, the values half way between two of them, and the neighbours of those.
fn around(values: impl Iterator<Item = f32>) -> Vec<f32> {
    let mut values: Vec<f32> = values.filter(|value| value.is_finite()).collect();
    values.sort_by(f32::total_cmp);
    let middles = values.windows(2).map(|pair| f32::midpoint(pair[0], pair[1]));
    let all: Vec<f32> = values.iter().copied().chain(middles).collect();
    let near = |value: &f32| [value.next_down(), *value, value.next_up()];
    let ends =
        [f32::MIN, f32::MAX, f32::INFINITY, f32::NEG_INFINITY, 1e-40, -1e-40, 70000.0, 465.0];
    all.iter().flat_map(near).chain(ends).collect()
}

fn packed(to: Packed, value: f32) -> u64 {
    narrow::packed(to, Mode::default(), value.into(), 0.0)
}

#[test]
fn f32_is_rounded_as_half_rounds_it() {
    for value in around((0..=u16::MAX).map(|bits| f16::from_bits(bits).to_f32())) {
        let ours = packed(Packed::F16x2, value) >> 16;
        assert_eq!(ours, u64::from(f16::from_f32(value).to_bits()), "f16 {value:e}");
    }
    for value in around((0..=u16::MAX).map(|bits| bf16::from_bits(bits).to_f32())) {
        let ours = packed(Packed::Bf16x2, value) >> 16;
        assert_eq!(ours, u64::from(bf16::from_f32(value).to_bits()), "bf16 {value:e}");
    }
    let nan = |to| narrow::packed(to, Mode::default(), f64::NAN, f64::NAN);
    assert_eq!(nan(Packed::F16x2), 0x7fff_7fff);
    assert_eq!(nan(Packed::Bf16x2), 0x7fff_7fff);
    assert_eq!(nan(Packed::E4m3x2), 0x7f7f);
    assert_eq!(nan(Packed::E5m2x2), 0x7f7f);
}

#[test]
fn f32_is_rounded_to_8_bits_as_float8_rounds_it_and_saturates() {
    for value in around((0..=u8::MAX).map(|bits| F8E4M3::from_bits(bits).to_f32())) {
        let clamped = value.clamp(-448.0, 448.0);
        let ours = packed(Packed::E4m3x2, value) >> 8;
        assert_eq!(ours, u64::from(F8E4M3::from_f32(clamped).to_bits()), "e4m3 {value:e}");
    }
    for value in around((0..=u8::MAX).map(|bits| F8E5M2::from_bits(bits).to_f32())) {
        let clamped = value.clamp(-57344.0, 57344.0);
        let ours = packed(Packed::E5m2x2, value) >> 8;
        assert_eq!(ours, u64::from(F8E5M2::from_f32(clamped).to_bits()), "e5m2 {value:e}");
    }
}

/// Whether two values are the same, or zeros.
fn is_equal(one: impl Into<f64>, other: impl Into<f64>) -> bool {
    one.into().partial_cmp(&other.into()) == Some(std::cmp::Ordering::Equal)
}

/// Sums, products, quotients and more of narrow floats, against the formats of `half`, whose f64 is exact for them but
/// for the one rounding.
#[test]
fn operations_on_floats_of_16_bits_are_those_of_half() {
    let mut state = 0x1234_5678_9abc_def0u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 40) as u16
    };
    let mode = Mode::default();
    for _ in 0..200_000 {
        let [a, b, c] = [next(), next(), next()];
        let values = [a, b, c].map(u64::from);
        let [x, y, z] = [a, b, c].map(|bits| f16::from_bits(bits).to_f64());
        let exact = [
            (FloatOp::Add, x + y),
            (FloatOp::Sub, x - y),
            (FloatOp::Mul, x * y),
            // Within 53 bits, too: 22 of the product, and the exponents of f16.
            (FloatOp::Fma, x.mul_add(y, z)),
        ];
        for (op, value) in exact {
            let ours = float::evaluate(op, Float::F16, mode, values) as u16;
            // `half` rounds an f64 by f32, so the f32 is the one to zero, with a last bit that tells of a rest.
            let near = value as f32;
            let rest = !is_equal(f64::from(near), value) && !value.is_nan();
            let to_zero = near.to_bits() - u32::from(f64::from(near).abs() > value.abs());
            let theirs = f16::from_f32(f32::from_bits(to_zero | u32::from(rest)));
            let is = if theirs.is_nan() { ours == 0x7fff } else { ours == theirs.to_bits() };
            assert!(is, "{op:?} of {a:#x}, {b:#x}, {c:#x}: {ours:#x}, {theirs}");
        }
        let [x, y] = [a, b].map(|bits| bf16::from_bits(bits).to_f32());
        let ours = float::evaluate(FloatOp::Mul, Float::Bf16, mode, values) as u16;
        let theirs = bf16::from_f64(f64::from(x) * f64::from(y));
        let is = if theirs.is_nan() { ours == 0x7fff } else { ours == theirs.to_bits() };
        assert!(is, "{a:#x} * {b:#x}: {ours:#x}, {theirs}");
    }
}

/// Operations on f32 that go by f64 are those of the hardware, and the directions of rounding enclose them.
#[test]
fn operations_on_f32_are_rounded_once() {
    let mut state = 7u64;
    let mut next = || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let bits = (state >> 32) as u32;
        // Exponents that are near each other in half of the cases.
        if state & 8 == 0 { bits } else { bits & 0x83ff_ffff | 0x3c00_0000 }
    };
    let by = |op, rounding, values| {
        let mode = Mode { rounding, ..Mode::default() };
        f32::from_bits(float::evaluate(op, Float::F32, mode, values) as u32)
    };
    for _ in 0..100_000 {
        let bits = [next(), next(), next()];
        let [x, y, z] = bits.map(f32::from_bits);
        let values = bits.map(u64::from);
        let all = [
            (FloatOp::Sub, x - y),
            (FloatOp::Fma, x.mul_add(y, z)),
            (FloatOp::Div, x / y),
            (FloatOp::Sqrt, x.sqrt()),
            (FloatOp::Add, x + y),
            (FloatOp::Mul, x * y),
        ];
        for (op, expected) in all {
            let near = by(op, Rounding::Nearest, values);
            assert!(
                is_equal(near, expected) || near.is_nan() && expected.is_nan(),
                "{op:?} {x:e} {y:e} {z:e}"
            );
            if near.is_nan() {
                continue;
            }
            let [down, up, zero] =
                [Rounding::Down, Rounding::Up, Rounding::Zero].map(|r| by(op, r, values));
            assert!(
                down <= near && near <= up,
                "{op:?} {x:e} {y:e} {z:e}: {down:e} {near:e} {up:e}"
            );
            assert!(is_equal(up, down) || is_equal(up, down.next_up()), "{op:?} {x:e} {y:e} {z:e}");
            assert!(is_equal(zero, if near > 0.0 || down >= 0.0 { down } else { up }));
        }
    }
}

/// Floats beyond the range and NaNs are converted to integers as the tables of PTX say.
#[test]
fn floats_become_the_nearest_integer_of_the_range() {
    for (value, signed, unsigned) in
        [(1e20f32, i32::MAX, u32::MAX), (-1e20, i32::MIN, 0), (-0.6, -1, 0)]
    {
        let of = |to| {
            let mode = Mode::default();
            let op = ArithmeticOp::Convert {
                to,
                from: Type::Float(Float::F32),
                width: 32,
                mode,
                integral: true,
            };
            evaluate(op, [value.to_bits().into(), 0, 0, 0]) as u32
        };
        assert_eq!(of(Type::Signed(32)), signed as u32, "{value}");
        assert_eq!(of(Type::Unsigned(32)), unsigned, "{value}");
    }
}
