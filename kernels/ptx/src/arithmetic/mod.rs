//! The functions of instructions on the values of registers, bit for bit.

mod float;
mod narrow;

use crate::program::{
    ArithmeticOp, Clamp, Comparison, Float, Logic, Mode, ReduceOp, Rounding, Type,
};

/// Returns the result of an operation, zero-extended from its width. Sources are the slots of registers: the bits above
/// a source's type have no meaning. PTX leaves the result of an integer division by zero open; it is all ones, as on
/// present GPUs.
#[expect(clippy::inline_always, reason = "a loop over lanes decides once which operation it is")]
#[inline(always)]
pub(crate) fn evaluate(op: ArithmeticOp, [a, b, c, d]: [u64; 4]) -> u64 {
    match op {
        ArithmeticOp::Float { op, ty, mode } => float::evaluate(op, ty, mode, [a, b, c]),
        ArithmeticOp::Add(ty) => cut(a.wrapping_add(b), ty),
        ArithmeticOp::Sub(ty) => cut(a.wrapping_sub(b), ty),
        ArithmeticOp::Mul(ty) => cut(a.wrapping_mul(b), ty),
        ArithmeticOp::MulHigh(ty) => high_product(a, b, ty),
        ArithmeticOp::MulWide(ty) => {
            let product = wide(a, ty).wrapping_mul(wide(b, ty)) as u64;
            low(product, 2 * ty.bits())
        }
        ArithmeticOp::MadHigh(ty) => cut(high_product(a, b, ty).wrapping_add(c), ty),
        ArithmeticOp::MadWide(ty) => {
            let product = wide(a, ty).wrapping_mul(wide(b, ty)) as u64;
            low(product.wrapping_add(c), 2 * ty.bits())
        }
        ArithmeticOp::Halves(op, ty) => halves(op, ty, a, b),
        ArithmeticOp::Sad(ty) => {
            let distance = wide(a, ty).abs_diff(wide(b, ty)) as u64;
            cut(distance.wrapping_add(c), ty)
        }
        ArithmeticOp::Mad(ty) => cut(a.wrapping_mul(b).wrapping_add(c), ty),
        ArithmeticOp::Div(ty) => divided(a, b, ty, i128::wrapping_div),
        ArithmeticOp::Rem(ty) => divided(a, b, ty, i128::wrapping_rem),
        ArithmeticOp::Min(ty) => cut(wide(a, ty).min(wide(b, ty)) as u64, ty),
        ArithmeticOp::Max(ty) => cut(wide(a, ty).max(wide(b, ty)) as u64, ty),
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
            let bits = cut(a, ty).checked_shr(at).unwrap_or(0) & ones;
            let last = (at + many).saturating_sub(1).min(ty.bits() - 1);
            if ty.is_signed() && many > 0 && cut(a, ty) >> last & 1 == 1 {
                // The sign is that of the last bit of the field.
                let kept = last.saturating_sub(at) + 1;
                let kept = if at > last { 0 } else { u64::MAX.checked_shr(64 - kept).unwrap_or(0) };
                return cut(bits & kept | !kept, ty);
            }
            bits
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
        ArithmeticOp::Shf { left, clamp } => {
            let whole = low(a, 32) | b << 32;
            let by = if clamp { low(c, 32).min(32) } else { c & 31 };
            low(if left { (whole << by) >> 32 } else { whole >> by }, 32)
        }
        ArithmeticOp::Setp { compare, ty, combine, ftz } => {
            let mode = Mode { ftz, ..Mode::default() };
            let [a, b] = [a, b].map(|bits| match ty {
                Type::Float(ty) => float::flushed(ty, mode, bits),
                _ => bits,
            });
            let holds = u64::from(compares(compare, ty, a, b));
            combine.map_or(holds, |logic| combined(logic, holds, c & 1))
        }
        ArithmeticOp::Selp(ty) => cut(if c & 1 == 1 { a } else { b }, ty),
        ArithmeticOp::Convert { to, from, width, mode, integral } => {
            converted(a, (to, from), width, mode, integral)
        }
        ArithmeticOp::Pack { to, mode } => {
            let [high, low] = [a, b].map(|bits| float::wide(Float::F32, bits));
            narrow::packed(to, mode, high, low)
        }
        ArithmeticOp::Narrow { to, from, mode } => {
            let [high, low] = [a >> 16, a].map(|bits| float::wide(from, bits & 0xffff));
            narrow::packed(to, mode, high, low)
        }
        ArithmeticOp::Widen { from } => narrow::widened(from, a as u16).into(),
    }
}

fn high_product(a: u64, b: u64, ty: Type) -> u64 {
    cut((wide(a, ty).wrapping_mul(wide(b, ty)) >> ty.bits()) as u64, ty)
}

/// Returns the op on each half of 32 bits.
fn halves(op: ReduceOp, ty: Type, a: u64, b: u64) -> u64 {
    let of = |shift: u32| {
        let (a, b) = (wide(a >> shift, ty), wide(b >> shift, ty));
        let result = match op {
            ReduceOp::Min => a.min(b),
            ReduceOp::Max => a.max(b),
            _ => a + b,
        };
        cut(result as u64, ty) << shift
    };
    of(16) | of(0)
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
        Type::Float(ty) => float::wide(ty, a).partial_cmp(&float::wide(ty, b)),
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

fn converted(a: u64, (to, from): (Type, Type), width: u8, mode: Mode, integral: bool) -> u64 {
    match (to, from) {
        // The upper half of an f32, NaNs included.
        (Type::Float(Float::F32), Type::Float(Float::Bf16)) if mode == Mode::default() => {
            low(a, 16) << 16
        }
        (Type::Float(to), Type::Float(from)) => {
            let value = float::wide(from, float::flushed(from, mode, a));
            let value = if integral { whole(value, mode.rounding) } else { value };
            if to == Float::F64 && value.is_nan() {
                // The NaN of f32.
                return 0x7fff_ffff_e000_0000;
            }
            float::rounded(to, mode, value)
        }
        (to, Type::Float(from)) => {
            let value = whole(float::wide(from, float::flushed(from, mode, a)), mode.rounding);
            let (least, most) = range(to);
            let integer = match value.is_nan() {
                true if from == Float::F64 || to.bits() == 64 => 1 << (to.bits() - 1),
                true => 0,
                false => (value as i128).clamp(least, most),
            };
            low(integer as u64, width.into())
        }
        (Type::Float(Float::F64), from) => (wide(a, from) as f64).to_bits(),
        (Type::Float(to), from) => {
            let value = wide(a, from);
            let near = value as f64;
            let rest = value - near as i128;
            float::rounded(to, mode, float::odd(near, rest as f64))
        }
        (to, from) => {
            let value = wide(a, from);
            let (least, most) = range(to);
            let value = match mode.clamp {
                Clamp::Saturate => value.clamp(least, most),
                _ => wide(value as u64, to),
            };
            low(value as u64, width.into())
        }
    }
}

/// The least and the largest integer of a type.
fn range(ty: Type) -> (i128, i128) {
    let bits = ty.bits();
    if ty.is_signed() { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

/// Returns a value rounded to an integer.
fn whole(value: f64, rounding: Rounding) -> f64 {
    match rounding {
        Rounding::Nearest => value.round_ties_even(),
        Rounding::Zero => value.trunc(),
        Rounding::Down => value.floor(),
        Rounding::Up => value.ceil(),
    }
}

#[cfg(test)]
mod tests;
