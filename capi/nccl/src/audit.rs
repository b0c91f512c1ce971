//! The library as an audit library of the loader (`LD_AUDIT`): wherever the process asks for NCCL's library, by its
//! name or by a path, it gets this one. Only this library itself gets the real one.

use std::ffi::{CStr, c_char, c_long, c_uint};

use crate::own::own_text;

/// The name of NCCL's library, as callers ask for it.
const NAME: &[u8] = b"libnccl.so.2";
/// The mark that the loader keeps for this library.
const OWN: usize = usize::from_ne_bytes(*b"roundela");

/// The first fields of the loader's `struct link_map`.
#[repr(C)]
struct LinkMap {
    address: usize,
    name: *const c_char,
}

/// Says that this is an audit library, for the loader's version.
#[unsafe(no_mangle)]
extern "C" fn la_version(version: c_uint) -> c_uint {
    version
}

/// Marks this library in the process.
///
/// # Safety
/// The loader calls it.
#[unsafe(no_mangle)]
unsafe extern "C" fn la_objopen(map: *const LinkMap, _: c_long, cookie: *mut usize) -> c_uint {
    // SAFETY: the loader gives its own structure, whose text ends with a zero.
    let name = unsafe { CStr::from_ptr((*map).name) };
    if own_text() == Some(name) {
        // SAFETY: the loader has a place for it.
        unsafe { *cookie = OWN };
    }
    0
}

/// Returns the path by which a library is looked for.
///
/// # Safety
/// The loader calls it.
#[unsafe(no_mangle)]
unsafe extern "C" fn la_objsearch(
    name: *const c_char,
    cookie: *const usize,
    _: c_uint,
) -> *const c_char {
    // SAFETY: the loader gives a text that ends with a zero, and the cookie of the object that asks.
    let (asked, is_own) = unsafe { (CStr::from_ptr(name).to_bytes(), *cookie == OWN) };
    let file = asked.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    match own_text() {
        Some(own) if file == NAME && !is_own => own.as_ptr(),
        _ => name,
    }
}
