//! The functions of instructions on the values of registers, bit for bit.

mod float;
mod narrow;

use crate::program::{ArithmeticOp, Comparison, Float, Logic, Type};

/// Returns the result of an operation, zero-extended from its width. Sources are the slots of registers: the bits above
/// a source's type have no meaning. PTX leaves the result of an integer division by zero open; it is all ones, as on
/// present GPUs.
pub(crate) fn evaluate(op: ArithmeticOp, [a, b, c, d]: [u64; 4]) -> u64 {
    match op {
        ArithmeticOp::Add(Type::Float(ty)) => float::add(ty, a, b),
        ArithmeticOp::Sub(Type::Float(ty)) => float::sub(ty, a, b),
        ArithmeticOp::Mul(Type::Float(ty)) => float::mul(ty, a, b),
        ArithmeticOp::Div(Type::Float(ty)) => float::div(ty, a, b),
        ArithmeticOp::Add(ty) => cut(a.wrapping_add(b), ty),
        ArithmeticOp::Sub(ty) => cut(a.wrapping_sub(b), ty),
        ArithmeticOp::Mul(ty) => cut(a.wrapping_mul(b), ty),
        ArithmeticOp::MulHigh(ty) => {
            cut((wide(a, ty).wrapping_mul(wide(b, ty)) >> ty.bits()) as u64, ty)
        }
        ArithmeticOp::MulWide(ty) => {
            let product = wide(a, ty).wrapping_mul(wide(b, ty)) as u64;
            low(product, 2 * ty.bits())
        }
        ArithmeticOp::Mad(ty) => cut(a.wrapping_mul(b).wrapping_add(c), ty),
        ArithmeticOp::Div(ty) => divided(a, b, ty, i128::wrapping_div),
        ArithmeticOp::Rem(ty) => divided(a, b, ty, i128::wrapping_rem),
        ArithmeticOp::Min(ty) => cut(wide(a, ty).min(wide(b, ty)) as u64, ty),
        ArithmeticOp::Max(ty) => cut(wide(a, ty).max(wide(b, ty)) as u64, ty),
        ArithmeticOp::Neg(Type::Float(ty)) => low(a, ty.bits()) ^ float::sign(ty),
        ArithmeticOp::Abs(Type::Float(ty)) => float::abs(ty, a),
        ArithmeticOp::Neg(ty) => cut(a.wrapping_neg(), ty),
        ArithmeticOp::Abs(ty) => cut(wide(a, ty).unsigned_abs() as u64, ty),
        ArithmeticOp::Shl(ty) => cut(shifted(b, ty).map_or(0, |by| a << by), ty),
        ArithmeticOp::Shr(ty) => {
            let by = shifted(b, ty).unwrap_or(ty.bits());
            cut((wide(a, ty) >> by) as u64, ty)
        }
        ArithmeticOp::Logic(logic, ty) => cut(combined(logic, a, b), ty),
        ArithmeticOp::Not(ty) => cut(!a, ty),
        ArithmeticOp::Lop3(table) => lookup(table, a, b, c),
        ArithmeticOp::Bfi(ty) => {
            // Beyond 255, PTX leaves open the place and the length; an H200 cuts those of 32 bits alone.
            let bits = if ty.bits() == 64 { 32 } else { 8 };
            let (at, many) = (low(c, bits) as u32, low(d, bits) as u32);
            let ones = if many >= 64 { u64::MAX } else { (1 << many) - 1 };
            let mask = ones.checked_shl(at).unwrap_or(0);
            cut((b & !mask) | (a.checked_shl(at).unwrap_or(0) & mask), ty)
        }
        ArithmeticOp::Bfe(ty) => {
            let (at, many) = (low(b, 8) as u32, low(c, 8) as u32);
            let ones = if many >= 64 { u64::MAX } else { (1 << many) - 1 };
            cut(a, ty).checked_shr(at).unwrap_or(0) & ones
        }
        ArithmeticOp::Bfind { ty, shift } => {
            let value = wide(a, ty);
            // The sign is not searched for: its complement is.
            let value = cut((if value < 0 { !value } else { value }) as u64, ty);
            match value.checked_ilog2() {
                None => u32::MAX.into(),
                Some(at) if shift => (ty.bits() - 1 - at).into(),
                Some(at) => at.into(),
            }
        }
        ArithmeticOp::Brev(ty) => cut(a, ty).reverse_bits() >> (64 - ty.bits()),
        ArithmeticOp::Clz(ty) => (cut(a, ty).leading_zeros() - (64 - ty.bits())).into(),
        ArithmeticOp::Popc(ty) => cut(a, ty).count_ones().into(),
        ArithmeticOp::Prmt => permuted(a, b, c),
        ArithmeticOp::ShfLeft => {
            let whole = low(a, 32) | b << 32;
            low((whole << (c & 31)) >> 32, 32)
        }
        ArithmeticOp::Setp { compare, ty, combine } => {
            let holds = u64::from(compares(compare, ty, a, b));
            combine.map_or(holds, |logic| combined(logic, holds, c & 1))
        }
        ArithmeticOp::Selp(ty) => cut(if c & 1 == 1 { a } else { b }, ty),
        ArithmeticOp::Convert { to, from, width } => converted(a, to, from, width),
        ArithmeticOp::Pack { to } => narrow::packed(to, a as u32, b as u32),
        ArithmeticOp::Widen { from } => narrow::widened(from, a as u16).into(),
    }
}

fn low(value: u64, bits: u32) -> u64 {
    value & (u64::MAX >> (64 - bits))
}

/// Returns the low bits of a value that are of a type.
fn cut(value: u64, ty: Type) -> u64 {
    low(value, ty.bits())
}

/// Returns the number that the low bits of a value are.
fn wide(value: u64, ty: Type) -> i128 {
    let value = cut(value, ty);
    if ty.is_signed() {
        let unused = 64 - ty.bits();
        return ((value << unused) as i64 >> unused).into();
    }
    value.into()
}

fn divided(a: u64, b: u64, ty: Type, by: impl Fn(i128, i128) -> i128) -> u64 {
    match wide(b, ty) {
        0 => cut(u64::MAX, ty),
        b => cut(by(wide(a, ty), b) as u64, ty),
    }
}

/// Returns the distance of a shift, unless it is the width or more.
fn shifted(by: u64, ty: Type) -> Option<u32> {
    let by = by as u32;
    (by < ty.bits()).then_some(by)
}

fn combined(logic: Logic, a: u64, b: u64) -> u64 {
    match logic {
        Logic::And => a & b,
        Logic::Or => a | b,
        Logic::Xor => a ^ b,
    }
}

/// Returns the function of which `table` has the result for the bits 4a + 2b + c.
fn lookup(table: u8, a: u64, b: u64, c: u64) -> u64 {
    let terms = (0..8u64).filter(|term| table >> term & 1 == 1);
    let one = |value: u64, wanted: u64| if wanted == 1 { value } else { !value };
    let all = terms.map(|term| one(a, term >> 2) & one(b, term >> 1 & 1) & one(c, term & 1));
    low(all.fold(0, |all, term| all | term), 32)
}

/// Returns four bytes of the eight of b and a, a's being the low ones. A selector with the bit 8 takes the byte's sign.
fn permuted(a: u64, b: u64, selectors: u64) -> u64 {
    let bytes = (low(a, 32) | b << 32).to_le_bytes();
    let byte = |at: u32| {
        let selector = selectors >> (4 * at) & 0xf;
        let byte = bytes[selector as usize & 7];
        let byte = if selector & 8 == 0 { byte } else { ((byte as i8) >> 7) as u8 };
        u64::from(byte) << (8 * at)
    };
    (0..4).map(byte).sum()
}

fn compares(compare: Comparison, ty: Type, a: u64, b: u64) -> bool {
    let order = match ty {
        Type::Float(Float::F64) => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
        Type::Float(_) => f32::from_bits(a as u32).partial_cmp(&f32::from_bits(b as u32)),
        _ => Some(wide(a, ty).cmp(&wide(b, ty))),
    };
    let unordered = order.is_none();
    let is = |test: fn(std::cmp::Ordering) -> bool| order.is_some_and(test);
    match compare {
        Comparison::Eq => is(std::cmp::Ordering::is_eq),
        Comparison::Ne => is(std::cmp::Ordering::is_ne),
        Comparison::Lt => is(std::cmp::Ordering::is_lt),
        Comparison::Le => is(std::cmp::Ordering::is_le),
        Comparison::Gt => is(std::cmp::Ordering::is_gt),
        Comparison::Ge => is(std::cmp::Ordering::is_ge),
        Comparison::Equ => unordered || is(std::cmp::Ordering::is_eq),
        Comparison::Neu => unordered || is(std::cmp::Ordering::is_ne),
        Comparison::Ltu => unordered || is(std::cmp::Ordering::is_lt),
        Comparison::Leu => unordered || is(std::cmp::Ordering::is_le),
        Comparison::Gtu => unordered || is(std::cmp::Ordering::is_gt),
        Comparison::Geu => unordered || is(std::cmp::Ordering::is_ge),
        Comparison::Num => !unordered,
        Comparison::Nan => unordered,
    }
}

fn converted(a: u64, to: Type, from: Type, width: u8) -> u64 {
    match (to, from) {
        (Type::Float(_), Type::Float(from)) => narrow::to_f32(from, a as u16).into(),
        (Type::Float(Float::F64), from) => (wide(a, from) as f64).to_bits(),
        (Type::Float(_), from) => (wide(a, from) as f32).to_bits().into(),
        (to, from) => low(wide(wide(a, from) as u64, to) as u64, width.into()),
    }
}

#[cfg(test)]
mod tests;
