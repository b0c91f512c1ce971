//! The fp8 types of OFP8 to f32 and back without branches, so that loops over them vectorise. f32 is rounded to nearest
//! even and saturates: a finite number beyond the largest one becomes the largest, which OFP8 calls SATFINITE. A NaN
//! becomes the canonical NaN, 0x7f in both types, and an infinity of e5m2 stays one.

/// The canonical NaN of both types.
pub(super) const NAN: u8 = 0x7f;

macro_rules! types {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(super) struct $name(u8);

        impl $name {
            #[inline(always)]
            pub(super) fn from_bits(bits: u8) -> Self {
                Self(bits)
            }
            #[inline(always)]
            pub(super) fn to_bits(self) -> u8 {
                self.0
            }
        }
    )*};
}

types! {
    /// 4 exponent bits and 3 mantissa bits.
    F8E4M3
    /// 5 exponent bits and 2 mantissa bits.
    F8E5M2
}

impl F8E4M3 {
    /// 448.
    pub(super) const LARGEST: u8 = 0x7e;
}

impl F8E5M2 {
    /// 57344.
    pub(super) const LARGEST: u8 = 0x7b;
    pub(super) const INFINITY: u8 = 0x7c;
}

/// Converts the magnitude of a number.
#[inline(always)]
fn widened<const MANTISSA: u32, const BIAS: u32>(bits: u8) -> u32 {
    let rest = u32::from(bits & 0x7f) << (23 - MANTISSA);
    let rebased = rest + ((127 - BIAS) << 23);
    // A subnormal has no hidden bit: add one as the exponent of the smallest normal and subtract it as a number.
    let subnormal = f32::from_bits(rebased + (1 << 23)) - f32::from_bits((128 - BIAS) << 23);
    if rest < 1 << 23 { subnormal.to_bits() } else { rebased }
}

/// Rounds a magnitude to nearest even, up to `LARGEST`.
#[inline(always)]
fn narrowed<const MANTISSA: u32, const BIAS: u32>(magnitude: u32, largest: u8) -> u32 {
    let lost = 23 - MANTISSA;
    // Adding this number moves the last subnormal bit to the last f32 bit: the addition itself rounds.
    let shift = ((127 - BIAS) + lost + 1) << 23;
    let subnormal =
        (f32::from_bits(magnitude) + f32::from_bits(shift)).to_bits().wrapping_sub(shift);
    let odd = (magnitude >> lost) & 1;
    let half = (1 << (lost - 1)) - 1;
    let normal = magnitude.wrapping_sub((127 - BIAS) << 23).wrapping_add(half + odd) >> lost;
    let number = if magnitude < (128 - BIAS) << 23 { subnormal } else { normal };
    number.min(u32::from(largest))
}

/// Converts exactly.
#[inline(always)]
pub(super) fn e4m3_to_f32(bits: u8) -> f32 {
    let magnitude = if bits & 0x7f == NAN { f32::NAN.to_bits() } else { widened::<3, 7>(bits) };
    f32::from_bits(magnitude | (u32::from(bits & 0x80) << 24))
}

/// Rounds to nearest even and saturates; as there is no infinity, an infinity does, too.
#[inline(always)]
pub(super) fn f32_to_e4m3(value: f32) -> u8 {
    let bits = value.to_bits();
    let number = narrowed::<3, 7>(bits & 0x7fff_ffff, F8E4M3::LARGEST) | ((bits >> 24) & 0x80);
    if value.is_nan() { NAN } else { number as u8 }
}

/// Converts exactly.
#[inline(always)]
pub(super) fn e5m2_to_f32(bits: u8) -> f32 {
    // Infinities and NaNs keep their mantissas.
    let special = (u32::from(bits & 0x7f) << 21) + (0xe0 << 23);
    let is_number = bits & 0x7f < F8E5M2::INFINITY;
    let magnitude = if is_number { widened::<2, 15>(bits) } else { special };
    f32::from_bits(magnitude | (u32::from(bits & 0x80) << 24))
}

/// Rounds to nearest even and saturates; an infinity stays one.
#[inline(always)]
pub(super) fn f32_to_e5m2(value: f32) -> u8 {
    let bits = value.to_bits();
    let magnitude = bits & 0x7fff_ffff;
    let number = narrowed::<2, 15>(magnitude, F8E5M2::LARGEST);
    let number = if magnitude == 0x7f80_0000 { u32::from(F8E5M2::INFINITY) } else { number };
    if value.is_nan() { NAN } else { (number | ((bits >> 24) & 0x80)) as u8 }
}
