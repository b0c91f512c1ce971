//! Shared libraries of this process, and their loading by a path or a name.

use std::ffi::{CStr, CString, OsString, c_char, c_int, c_void};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

/// A library that is in this process, and stays.
#[derive(Clone, Debug)]
pub struct LoadedLibrary {
    path: PathBuf,
    handle: *mut c_void,
}

// SAFETY: the handle is a number for the loader, whose functions take it on every thread.
unsafe impl Send for LoadedLibrary {}
// SAFETY: several threads may ask the loader at once.
unsafe impl Sync for LoadedLibrary {}

impl LoadedLibrary {
    /// Loads a library by its path or its name, with flags of `dlopen`.
    ///
    /// # Errors
    /// The loader's message.
    pub fn open(name: &Path, flags: c_int) -> Result<Self, String> {
        let zero = |_| format!("{} has a zero in it", name.display());
        let text = CString::new(name.as_os_str().as_bytes()).map_err(zero)?;
        // SAFETY: a program that is linked to the library runs the same initializers.
        let handle = unsafe { libc::dlopen(text.as_ptr(), flags) };
        if !handle.is_null() {
            return Ok(Self { path: name.to_owned(), handle });
        }
        // SAFETY: the text is this thread's, and valid until the next call.
        let said = unsafe { libc::dlerror() };
        if said.is_null() {
            return Err(format!("{} cannot be loaded", name.display()));
        }
        // SAFETY: the text ends with a zero.
        Err(unsafe { CStr::from_ptr(said) }.to_string_lossy().into_owned())
    }

    /// Returns all libraries of these names in this process, in the order in which they were loaded. A name is that of
    /// a file, without the version behind.
    pub fn all(names: &[&str]) -> Vec<Self> {
        let mut search = Search { names, found: Vec::new() };
        // SAFETY: the function gets the pointer to the search, and unwinds nowhere.
        unsafe { libc::dl_iterate_phdr(Some(seen), (&raw mut search).cast()) };
        let mut libraries: Vec<(PathBuf, Self)> = Vec::new();
        for path in search.found {
            let real = path.canonicalize().unwrap_or_else(|_| path.clone());
            if libraries.iter().any(|(known, _)| *known == real) {
                continue;
            }
            // The library is loaded already; this call adds an owner, which never goes.
            if let Ok(library) = Self::open(&path, libc::RTLD_LAZY | libc::RTLD_NOLOAD) {
                libraries.push((real, library));
            }
        }
        libraries.into_iter().map(|(_, library)| library).collect()
    }

    /// The path or the name by which the library was loaded.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the address of the library's own function, not of a function that overrides it; null where it has none.
    pub fn symbol(&self, name: &CStr) -> *mut c_void {
        // SAFETY: the library stays, and the name ends with a zero.
        unsafe { libc::dlsym(self.handle, name.as_ptr()) }
    }

    /// Returns the address of data of the library: in a program that was linked to it, the program's own copy of the
    /// data.
    pub fn data(&self, name: &CStr) -> *mut c_void {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_are_known_by_their_names() {
        let names = ["libmpi.so", "libmpi_abi.so", "libmpich.so"];
        for name in ["/a/libmpi.so.40", "libmpi.so", "/x/libmpi_abi.so.1.0", "libmpich.so.12.1"] {
            assert!(is_named(name.as_ref(), &names), "{name}");
        }
        for name in ["/a/libmpifort.so.12", "libmpi", "/libmpi.so.d/libz.so", "libmpi_cxx.so.40"] {
            assert!(!is_named(name.as_ref(), &names), "{name}");
        }
    }

    #[test]
    fn a_loaded_library_is_found_with_its_functions() {
        let all = LoadedLibrary::all(&["libc.so"]);
        let [libc] = &all[..] else { panic!("{all:?}") };
        assert!(!libc.symbol(c"malloc").is_null() && libc.symbol(c"no such").is_null());
        let why = LoadedLibrary::open("/nowhere.so".as_ref(), libc::RTLD_LAZY).expect_err("none");
        assert!(why.contains("/nowhere.so"), "{why}");
    }
}
