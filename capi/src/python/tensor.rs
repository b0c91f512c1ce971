//! A tensor as `DLPack`'s table of functions describes it. The table is the same for all versions of torch that have
//! it: its first words are the version, and its layout does not change within a major version.

use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::NonNull;
use std::slice;

use super::interpreter::Object;

/// `DLPack`'s `DLPackExchangeAPI`, of major version 1.
#[repr(C)]
pub(super) struct Exchange {
    major: u32,
    _minor: u32,
    _older: *const c_void,
    _allocate: *const c_void,
    _export: *const c_void,
    _import: *const c_void,
    view: Option<unsafe extern "C" fn(tensor: *mut c_void, view: *mut View) -> c_int>,
    _stream: *const c_void,
}

/// `DLPack`'s `DLTensor`.
#[repr(C)]
struct View {
    data: *mut u8,
    device: i32,
    _device_number: i32,
    dimensions: i32,
    kind: u8,
    bits: u8,
    lanes: u16,
    shape: *const i64,
    strides: *const i64,
    offset: u64,
}

/// `kDLCPU`.
const CPU: i32 = 1;

/// The element types: the library's codes, and one after them for booleans.
pub(super) const TYPES: usize = 13;

/// The elements of a tensor, which lie on the CPU without gaps, aligned.
#[derive(Clone, Copy)]
pub(super) struct Elements {
    pub(super) at: *mut u8,
    pub(super) count: u64,
    /// The first dimension; 1 if there is none.
    pub(super) rows: u64,
    /// A number below [`TYPES`].
    pub(super) kind: usize,
}

impl Exchange {
    /// Returns a table of this version that can view tensors.
    ///
    /// # Safety
    /// The address is one of a table of `DLPack`, of any version, that lives for ever.
    pub(super) unsafe fn new(at: NonNull<c_void>) -> Option<&'static Self> {
        // SAFETY: every version begins with its number.
        if unsafe { at.cast::<u32>().read() } != 1 {
            return None;
        }
        // SAFETY: tables of major version 1 have this layout.
        let table = unsafe { at.cast::<Self>().as_ref() };
        (table.major == 1 && table.view.is_some()).then_some(table)
    }

    /// Returns the elements of a tensor. Nothing is returned for elements with gaps, without alignment, on another
    /// device or of another type, and for a tensor without elements.
    ///
    /// # Safety
    /// The object is of the type that has this table.
    pub(super) unsafe fn elements(&self, tensor: &Object) -> Option<Elements> {
        let mut view = MaybeUninit::<View>::uninit();
        // SAFETY: a tensor, as the caller promises, and room for the description.
        if unsafe { self.view?(tensor.at(), view.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: the function says that it wrote it.
        let view = unsafe { view.assume_init() };
        if view.device != CPU || view.lanes != 1 || view.data.is_null() {
            return None;
        }
        let kind = match (view.kind, view.bits) {
            (0, 8) => 0,
            (1, 8) => 1,
            (0, 32) => 2,
            (1, 32) => 3,
            (0, 64) => 4,
            (1, 64) => 5,
            (2, 16) => 6,
            (2, 32) => 7,
            (2, 64) => 8,
            (4, 16) => 9,
            (10, 8) => 10,
            (12, 8) => 11,
            (6, 8) => TYPES - 1,
            _ => return None,
        };
        let dimensions = usize::try_from(view.dimensions).ok()?;
        let numbers = |at: *const i64| {
            if dimensions == 0 {
                return Some(&[][..]);
            }
            // SAFETY: unless they are left out, there are as many as dimensions, while the tensor is not changed.
            (!at.is_null()).then(|| unsafe { slice::from_raw_parts(at, dimensions) })
        };
        let shape = numbers(view.shape)?;
        let mut count = 1_i64;
        match numbers(view.strides) {
            Some(strides) => {
                for (size, stride) in shape.iter().zip(strides).rev() {
                    if *size != 1 && *stride != count {
                        return None;
                    }
                    count = count.checked_mul(*size)?;
                }
            }
            None => count = shape.iter().try_fold(1_i64, |count, size| count.checked_mul(*size))?,
        }
        let at = view.data.wrapping_add(usize::try_from(view.offset).ok()?);
        if count <= 0 || !at.addr().is_multiple_of(usize::from(view.bits / 8)) {
            return None;
        }
        let rows = shape.first().map_or(1, |rows| *rows as u64);
        Some(Elements { at, count: count as u64, rows, kind })
    }
}
