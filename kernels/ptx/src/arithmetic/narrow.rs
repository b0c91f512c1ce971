//! Floats of 16 and 8 bits: their values, and the rounding of values to them.

use crate::program::{Clamp, Float, Mode, Packed, Rounding};

/// A format of floats, with a sign above the exponent and the mantissa.
struct Format {
    /// Bits of the exponent.
    exponent: u32,
    /// Bits of the mantissa.
    mantissa: u32,
    /// The largest finite value.
    largest: u32,
    /// The result for larger values, infinity among them.
    beyond: u32,
    /// The NaN of a conversion.
    nan: u32,
}

const F16: Format =
    Format { exponent: 5, mantissa: 10, largest: 0x7bff, beyond: 0x7c00, nan: 0x7fff };
const BF16: Format =
    Format { exponent: 8, mantissa: 7, largest: 0x7f7f, beyond: 0x7f80, nan: 0x7fff };
const F32: Format = Format {
    exponent: 8,
    mantissa: 23,
    largest: 0x7f7f_ffff,
    beyond: 0x7f80_0000,
    nan: 0x7fff_ffff,
};
// Conversions to f8 saturate.
const E4M3: Format = Format { exponent: 4, mantissa: 3, largest: 0x7e, beyond: 0x7e, nan: 0x7f };
const E5M2: Format = Format { exponent: 5, mantissa: 2, largest: 0x7b, beyond: 0x7b, nan: 0x7f };

impl Format {
    fn bias(&self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// Returns a value rounded to the format.
    fn round(&self, value: f64, rounding: Rounding) -> u32 {
        let bits = value.to_bits();
        let is_negative = bits >> 63 == 1;
        let sign = u32::from(is_negative) << (self.exponent + self.mantissa);
        let (exponent, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
        if exponent == 0x7ff {
            return if fraction == 0 { sign | self.beyond } else { self.nan };
        }
        let away = match rounding {
            Rounding::Nearest => None,
            Rounding::Zero => Some(false),
            Rounding::Down => Some(is_negative),
            Rounding::Up => Some(!is_negative),
        };
        // The value is `whole` * 2^(power - 52).
        let whole = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        let power = exponent.max(1) as i32 - 1023;
        let least = 1 - self.bias();
        let dropped = (52 - self.mantissa) as i32 + (least - power).max(0);
        let kept = shortened(whole, dropped.min(60) as u32, away);
        let magnitude = kept + (((power.max(least) - least) as u64) << self.mantissa);
        let beyond = if away == Some(false) { self.largest } else { self.beyond };
        let magnitude = if magnitude > self.largest.into() { beyond } else { magnitude as u32 };
        sign | magnitude
    }
}

/// Returns `value` / 2^`dropped`, rounded away from zero or to it, or to the nearest integer, ties to even.
fn shortened(value: u64, dropped: u32, away: Option<bool>) -> u64 {
    if dropped == 0 {
        return value;
    }
    let (whole, rest, half) = (value >> dropped, value & ((1 << dropped) - 1), 1 << (dropped - 1));
    let up = match away {
        Some(away) => away && rest != 0,
        None => rest > half || (rest == half && whole & 1 == 1),
    };
    whole + u64::from(up)
}

/// Returns a value rounded to f16, bf16 or f32.
pub(super) fn rounded(ty: Float, value: f64, rounding: Rounding) -> u64 {
    let format = match ty {
        Float::F16 => &F16,
        Float::Bf16 => &BF16,
        _ => &F32,
    };
    format.round(value, rounding).into()
}

/// Returns two values as narrow floats, `high` above `low`.
pub(super) fn packed(to: Packed, mode: Mode, high: f64, low: f64) -> u64 {
    let (format, bits) = match to {
        Packed::F16x2 => (&F16, 16),
        Packed::Bf16x2 => (&BF16, 16),
        Packed::E4m3x2 => (&E4M3, 8),
        Packed::E5m2x2 => (&E5M2, 8),
    };
    let of = |value: f64| match format.round(value, mode.rounding) {
        narrow if mode.clamp == Clamp::Relu && narrow >> (bits - 1) == 1 => 0,
        narrow => narrow,
    };
    (of(high) << bits | of(low)).into()
}

/// Returns the bits of the f32 that has the value of a float of 16 bits.
pub(super) fn to_f32(from: Float, bits: u16) -> u32 {
    if from == Float::Bf16 {
        // The upper half of an f32, NaNs included.
        return u32::from(bits) << 16;
    }
    let (sign, rest) = (u32::from(bits >> 15) << 31, u32::from(bits & 0x7fff));
    match rest >> 10 {
        0x1f if rest > F16.beyond => 0x7fff_ffff,
        0x1f => sign | f32::INFINITY.to_bits(),
        // A multiple of 2^-24.
        0 => sign | (rest as f32 * 2f32.powi(-24)).to_bits(),
        _ => sign | ((rest << 13) + ((127 - 15) << 23)),
    }
}

/// Returns two floats of 8 bits as f16.
pub(super) fn widened(from: Packed, bits: u16) -> u32 {
    let [low, high] = bits.to_le_bytes().map(|byte| match from {
        Packed::E4m3x2 => of_e4m3(byte),
        _ if byte & 0x7f > 0x7c => F16.nan,
        // The upper half of an f16.
        _ => u32::from(byte) << 8,
    });
    high << 16 | low
}

fn of_e4m3(byte: u8) -> u32 {
    let (sign, rest) = (u32::from(byte >> 7) << 15, u32::from(byte & 0x7f));
    match (rest >> 3, rest & 7) {
        _ if rest == E4M3.nan => F16.nan,
        // A multiple of 2^-9, which is a normal f16 unless it is 0.
        (0, 0) => sign,
        (0, fraction) => {
            let top = fraction.ilog2();
            sign | (top + 15 - 9) << 10 | (fraction << (10 - top)) & 0x3ff
        }
        (exponent, fraction) => sign | (exponent + 15 - 7) << 10 | fraction << 7,
    }
}
