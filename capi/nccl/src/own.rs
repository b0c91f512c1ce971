//! This library's own file.

use std::ffi::{CStr, c_void};
use std::path::PathBuf;

/// A function that no library of NCCL's own has.
pub(crate) const MARK: &CStr = c"la_objsearch";

/// Returns the path of this library as the loader has it.
pub(crate) fn own_text() -> Option<&'static CStr> {
    // SAFETY: zeros are a value of the structure.
    let mut about: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the address is in this library, and there is room for the answer.
    let found = unsafe { libc::dladdr(own_text as *const c_void, &raw mut about) };
    // SAFETY: the loader's text ends with a zero and stays as long as this library.
    (found != 0).then(|| unsafe { CStr::from_ptr(about.dli_fname) })
}

/// Returns that path.
pub(crate) fn own_path() -> PathBuf {
    PathBuf::from(own_text().unwrap_or_default().to_string_lossy().into_owned())
}
