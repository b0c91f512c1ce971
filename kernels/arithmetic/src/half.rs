//! f16 and bf16 to f32 and back without branches, so that loops over them vectorise on any machine; the
//! conversions of the `half` crate are calls. Round to nearest even; a NaN becomes the canonical quiet NaN.

/// Converts exactly.
#[inline(always)]
pub(super) fn f16_to_f32(h: u16) -> f32 {
    const EXPONENT: u32 = 0x7c00 << 13;
    let magnitude = u32::from(h & 0x7fff) << 13;
    let exponent = magnitude & EXPONENT;
    let rebased = magnitude + ((127 - 15) << 23);
    // A subnormal has no hidden bit: add one as the exponent of 2^-14 and subtract it as a number.
    let subnormal = f32::from_bits(rebased + (1 << 23)) - f32::from_bits(113 << 23);
    let special = rebased + ((128 - 16) << 23);
    let bits = if exponent == EXPONENT { special } else { rebased };
    let bits = if exponent == 0 { subnormal.to_bits() } else { bits };
    f32::from_bits(bits | (u32::from(h & 0x8000) << 16))
}

/// Rounds to nearest even; overflow gives infinity.
#[inline(always)]
pub(super) fn f32_to_f16(value: f32) -> u16 {
    const TOO_LARGE: u32 = (127 + 16) << 23;
    const SMALLEST_NORMAL: u32 = 113 << 23;
    const SHIFT: u32 = ((127 - 15) + (23 - 10) + 1) << 23;
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    // Adding 2^-1 moves the last subnormal bit to the last f32 bit: the addition itself rounds.
    let subnormal =
        (f32::from_bits(magnitude) + f32::from_bits(SHIFT)).to_bits().wrapping_sub(SHIFT);
    let odd = (magnitude >> 13) & 1;
    let normal = magnitude.wrapping_sub((127 - 15) << 23).wrapping_add(0xfff + odd) >> 13;
    let special = if magnitude > 0x7f80_0000 { 0x7e00 } else { 0x7c00 };
    let half = if magnitude < SMALLEST_NORMAL { subnormal } else { normal };
    let half = if magnitude >= TOO_LARGE { special } else { half };
    (half | ((bits >> 16) & 0x8000)) as u16
}

/// Converts exactly.
#[inline(always)]
pub(super) fn bf16_to_f32(h: u16) -> f32 {
    f32::from_bits(u32::from(h) << 16)
}

/// Rounds to nearest even.
#[inline(always)]
pub(super) fn f32_to_bf16(value: f32) -> u16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let quiet = 0x7fc0 | ((bits >> 16) & 0x8000);
    (if bits & 0x7fff_ffff > 0x7f80_0000 { quiet } else { rounded }) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_agrees_with_the_half_crate() {
        for bits in 0..=u16::MAX {
            let (f, b) = (half::f16::from_bits(bits), half::bf16::from_bits(bits));
            if f.is_nan() {
                assert!(f16_to_f32(bits).is_nan());
                assert_eq!(f32_to_f16(f16_to_f32(bits)) & 0x7fff, 0x7e00);
            } else {
                assert_eq!(f16_to_f32(bits).to_bits(), f.to_f32().to_bits(), "{bits:#x}");
                assert_eq!(f32_to_f16(f.to_f32()), bits);
            }
            if b.is_nan() {
                assert!(bf16_to_f32(f32_to_bf16(bf16_to_f32(bits))).is_nan());
            } else {
                assert_eq!(bf16_to_f32(bits).to_bits(), b.to_f32().to_bits());
                assert_eq!(f32_to_bf16(b.to_f32()), bits);
            }
        }
    }

    #[test]
    fn rounding_agrees_with_the_half_crate() {
        // Every exponent, with mantissas on and around the ties.
        for high in 0..=u16::MAX {
            for low in [0u32, 1, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff] {
                let value = f32::from_bits((u32::from(high) << 16) | low);
                if value.is_nan() {
                    continue;
                }
                assert_eq!(f32_to_f16(value), half::f16::from_f32(value).to_bits(), "{value:e}");
                assert_eq!(f32_to_bf16(value), half::bf16::from_f32(value).to_bits(), "{value:e}");
            }
        }
    }
}
