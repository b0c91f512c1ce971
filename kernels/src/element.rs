//! The Rust types that are element types.

use float8::{F8E4M3, F8E5M2};
use half::{bf16, f16};
use roundelay_core::dtype::DType;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that buffers can hold: `i8`, `u8`, `i32`, `u32`, `i64`, `u64`, `f32`, `f64`, `f16` and `bf16` of the
/// crate `half`, and `F8E4M3` and `F8E5M2` of the crate `float8`.
///
/// Every bit pattern is a value of such a type, and its alignment is its size. The trait is sealed. The language and
/// the command line know the type by its [`DType`].
pub trait Element: sealed::Sealed + Copy + Send + Sync + 'static {
    /// The element type that this Rust type stands for.
    const DTYPE: DType;
}

/// Returns the bytes of elements.
pub fn bytes_of<T: Element>(elements: &[T]) -> &[u8] {
    // SAFETY: the same memory, borrowed for as long; elements have no padding, and every byte is a value.
    unsafe { std::slice::from_raw_parts(elements.as_ptr().cast(), size_of_val(elements)) }
}

/// Returns the bytes of elements, which may be written.
pub fn bytes_of_mut<T: Element>(elements: &mut [T]) -> &mut [u8] {
    let len = size_of_val(elements);
    // SAFETY: the same memory, borrowed for as long; elements have no padding, and every bit pattern is a value.
    unsafe { std::slice::from_raw_parts_mut(elements.as_mut_ptr().cast(), len) }
}

macro_rules! elements {
    ($($t:ty => $dtype:ident,)*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;
        }
    )*};
}

elements! {
    i8 => I8,
    u8 => U8,
    i32 => I32,
    u32 => U32,
    i64 => I64,
    u64 => U64,
    f16 => F16,
    bf16 => Bf16,
    f32 => F32,
    f64 => F64,
    F8E4M3 => F8E4M3,
    F8E5M2 => F8E5M2,
}
