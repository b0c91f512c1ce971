//! The MPI libraries of this process.

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

/// File names of MPI libraries, without the version behind.
pub(super) const NAMES: [&str; 4] = ["libmpi.so", "libmpi_abi.so", "libmpich.so", "libmpi_cray.so"];
/// The names that the loader is asked for, in this order.
const ASKED: [&str; 5] =
    ["libmpi_abi.so.0", "libmpi_abi.so.1", "libmpi.so.40", "libmpi.so.12", "libmpi.so"];
/// The variable that names a library by hand.
const BY_HAND: &str = "ROUNDELAY_MPI_LIB";

/// A library that is in this process.
pub(super) struct Library {
    path: PathBuf,
    handle: *mut c_void,
}

impl Library {
    pub(super) fn path(&self) -> String {
        self.path.display().to_string()
    }

    /// Returns the name of the library's file.
    pub(super) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Returns the address of the library's own function, not of a function that overrides it.
    pub(super) fn symbol(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the library stays, and the name ends with a zero.
        unsafe { libc::dlsym(self.handle, name.as_ptr()) }
    }

    /// Returns the address of data of the library: in a program that was linked to it, the program's own copy of the
    /// data.
    pub(super) fn data(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the name ends with a zero.
        let of_program = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
        if of_program.is_null() { self.symbol(name) } else { of_program }
    }
}

/// The search among the objects of a process.
struct Search<'a> {
    names: &'a [&'a str],
    found: Vec<PathBuf>,
}

/// Returns all libraries of these names in this process, in the order in which they were loaded.
pub(super) fn loaded(names: &[&str]) -> Vec<Library> {
    let mut search = Search { names, found: Vec::new() };
    // SAFETY: the function gets the pointer to the search, and unwinds nowhere.
    unsafe { libc::dl_iterate_phdr(Some(seen), (&raw mut search).cast()) };
    let paths = search.found;
    let mut libraries: Vec<(PathBuf, Library)> = Vec::new();
    for path in paths {
        let real = path.canonicalize().unwrap_or_else(|_| path.clone());
        if libraries.iter().any(|(known, _)| *known == real) {
            continue;
        }
        let Ok(name) = CString::new(path.clone().into_os_string().into_vec()) else { continue };
        // SAFETY: the library is loaded already; this call adds an owner, which never goes.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
        if !handle.is_null() {
            libraries.push((real, Library { path, handle }));
        }
    }
    libraries.into_iter().map(|(_, library)| library).collect()
}

/// Keeps the path of an object of this process if it has one of the names.
unsafe extern "C" fn seen(
    info: *mut libc::dl_phdr_info,
    _: libc::size_t,
    search: *mut c_void,
) -> c_int {
    // SAFETY: the loader gives a structure that is valid during the call.
    let name: *const c_char = unsafe { (*info).dlpi_name };
    if !name.is_null() {
        // SAFETY: the name ends with a zero; the pointer is the caller's, who waits.
        let (name, search) = unsafe { (CStr::from_ptr(name), &mut *search.cast::<Search<'_>>()) };
        let path = PathBuf::from(OsString::from_vec(name.to_bytes().to_vec()));
        if is_named(&path, search.names) {
            search.found.push(path);
        }
    }
    0
}

fn is_named(path: &Path, names: &[&str]) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let versions = |rest: &str| rest.is_empty() || rest.starts_with('.');
    names.iter().any(|known| name.strip_prefix(known).is_some_and(versions))
}

/// Loads the library that the variable names, or the first of the usual names that the loader knows.
///
/// # Errors
/// The loader's message.
pub(super) fn load() -> Result<(), String> {
    if let Some(path) = std::env::var_os(BY_HAND) {
        let name = CString::new(path.clone().into_vec())
            .map_err(|_| format!("{BY_HAND} has a zero in it"))?;
        return open(&name).map_err(|why| format!("{BY_HAND} cannot be loaded: {why}"));
    }
    let mut said = Vec::new();
    for name in ASKED {
        let name = CString::new(name).expect("no zeros");
        match open(&name) {
            Ok(()) => return Ok(()),
            Err(why) => said.push(why),
        }
    }
    Err(format!(
        "no MPI library is found; set {BY_HAND} to its path, or LD_LIBRARY_PATH to its folder ({})",
        said.join("; ")
    ))
}

fn open(name: &CStr) -> Result<(), String> {
    // SAFETY: a program that is linked to an MPI library runs the same initializers. The symbols are global, because
    // the library's own parts may look for them.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
    if !handle.is_null() {
        return Ok(());
    }
    // SAFETY: the text is this thread's, and valid until the next call.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return Err(format!("{} cannot be loaded", name.to_string_lossy()));
    }
    // SAFETY: the text ends with a zero.
    Err(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::{NAMES, is_named};

    #[test]
    fn libraries_are_known_by_their_names() {
        for name in ["/a/libmpi.so.40", "libmpi.so", "/x/libmpi_abi.so.1.0", "libmpich.so.12.1"] {
            assert!(is_named(name.as_ref(), &NAMES), "{name}");
        }
        for name in ["/a/libmpifort.so.12", "libmpi", "/libmpi.so.d/libz.so", "libmpi_cxx.so.40"] {
            assert!(!is_named(name.as_ref(), &NAMES), "{name}");
        }
    }
}
