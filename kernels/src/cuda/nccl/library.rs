//! NCCL's functions, loaded at their first use, with the types that cudarc has from NCCL's header. cudarc's own loader
//! is not used: it panics where there is no library, and does not know the name `libnccl.so.2` that packages use.

use std::ffi::{CStr, OsString, c_char, c_int, c_void};
use std::path::Path;
use std::sync::{Mutex, OnceLock, PoisonError};

use cudarc::nccl::sys::{cudaStream_t, ncclComm_t, ncclConfig_t, ncclUniqueId};
use libloading::Library;

use super::super::error::{Error, Part};
use super::super::symbols::functions;
use crate::library_files::{NCCL as VARIABLE, nccl_at};

const NAMES: [&str; 2] = ["libnccl.so.2", "libnccl.so"];
/// The first version whose calls need not wait for other ranks.
const OLDEST: c_int = 21_400;

functions! {
    version: ncclGetVersion(*mut c_int) -> c_int;
    error_string: ncclGetErrorString(c_int) -> *const c_char;
    last_error: ncclGetLastError(ncclComm_t) -> *const c_char;
    unique_id: ncclGetUniqueId(*mut ncclUniqueId) -> c_int;
    init: ncclCommInitRankConfig(*mut ncclComm_t, c_int, ncclUniqueId, c_int, *mut ncclConfig_t) -> c_int;
    state: ncclCommGetAsyncError(ncclComm_t, *mut c_int) -> c_int;
    finalize: ncclCommFinalize(ncclComm_t) -> c_int;
    destroy: ncclCommDestroy(ncclComm_t) -> c_int;
    abort: ncclCommAbort(ncclComm_t) -> c_int;
    group_start: ncclGroupStart() -> c_int;
    group_end: ncclGroupEnd() -> c_int;
    send: ncclSend(*const c_void, usize, c_int, c_int, ncclComm_t, cudaStream_t) -> c_int;
    recv: ncclRecv(*mut c_void, usize, c_int, c_int, ncclComm_t, cudaStream_t) -> c_int;
}

/// NCCL after it was loaded.
pub(super) struct Nccl {
    pub(super) functions: Functions,
    /// As NCCL counts: 2.30.4 is 23004.
    pub(super) version: c_int,
    _library: Library,
}

impl Nccl {
    /// Returns the library of this process. Searches for it until it is found, then keeps it.
    pub(super) fn of_process() -> Result<&'static Self, Error> {
        static FOUND: OnceLock<Nccl> = OnceLock::new();
        static SEARCH: Mutex<()> = Mutex::new(());
        let _search = SEARCH.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = FOUND.get() {
            return Ok(found);
        }
        let found = Self::find(std::env::var_os(VARIABLE).filter(|value| !value.is_empty()))?;
        Ok(FOUND.get_or_init(|| found))
    }

    /// Loads the library at the named place, or otherwise the loader's.
    pub(super) fn find(named: Option<OsString>) -> Result<Self, Error> {
        if let Some(named) = named {
            let of_named =
                |why| Error::missing(Part::Nccl, [format!("{VARIABLE} is set, and {why}")]);
            let path = nccl_at(Path::new(&named)).map_err(of_named)?;
            // SAFETY: NCCL's initializers ask nothing of the caller.
            let library = unsafe { Library::new(&path) };
            let library = library.map_err(|error| {
                of_named(format!("{} cannot be loaded: {error}", path.display()))
            })?;
            return Self::of(library, &path.display().to_string());
        }
        for name in NAMES {
            // SAFETY: NCCL's initializers ask nothing of the caller.
            if let Ok(library) = unsafe { Library::new(name) } {
                return Self::of(library, name);
            }
        }
        let tried = [
            format!("{VARIABLE} is not set"),
            format!("the loader knows none of {}", NAMES.join(", ")),
        ];
        Err(Error::missing(Part::Nccl, tried))
    }

    fn of(library: Library, name: &str) -> Result<Self, Error> {
        let unfit = |why: String| Error::missing(Part::Nccl, [format!("{name} {why}")]);
        let functions = Functions::of(&library)
            .map_err(|error| unfit(format!("is not it, or older than 2.14: {error}")))?;
        let mut version = 0;
        // SAFETY: it points to an integer.
        let code = unsafe { (functions.version)(&raw mut version) };
        if code != 0 || version < OLDEST {
            return Err(unfit(format!("is version {version}, and 2.14 is the oldest that does")));
        }
        Ok(Self { functions, version, _library: library })
    }

    /// Returns NCCL's words for an error, and its last message about a communicator.
    pub(super) fn words(&self, code: c_int, comm: ncclComm_t) -> String {
        let text = |text: *const c_char| {
            if text.is_null() {
                return String::new();
            }
            // SAFETY: NCCL's texts end with a zero, and stay as long as it is loaded or until its next error.
            unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
        };
        // SAFETY: the function takes any number.
        let word = text(unsafe { (self.functions.error_string)(code) });
        // SAFETY: the communicator is null or one of NCCL's.
        let said = text(unsafe { (self.functions.last_error)(comm) });
        if said.is_empty() { word } else { format!("{word}: {said}") }
    }
}
