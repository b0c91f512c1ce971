//! The UCX library of this process, or one that is loaded into it.

use std::env;
use std::ffi::CStr;
use std::path::Path;
use std::sync::OnceLock;

use super::functions::{Object, Status, UcxFunctions};
use crate::Error;
use crate::loaded_library::LoadedLibrary;

/// The file name of the library without the version behind, and the name that the loader is asked for.
const NAME: &str = "libucp.so";
const ASKED: &str = "libucp.so.0";
/// The variable that names a library by hand.
const BY_HAND: &str = "ROUNDELAY_UCX_LIB";
/// The variable of UCX with what it does when the process gets a signal of an error.
const SIGNALS: &str = "UCX_HANDLE_ERRORS";

/// A UCX library.
#[derive(Debug)]
pub(super) struct Library {
    pub(super) functions: UcxFunctions,
    pub(super) version: String,
}

static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();

impl Library {
    /// The library of this process: one that is in it already, which MPI may have loaded, else the one that
    /// `ROUNDELAY_UCX_LIB` names, else the one that the loader finds.
    ///
    /// # Errors
    /// E0427 where there is none, or it lacks a function.
    pub(super) fn get() -> Result<&'static Self, Error> {
        let library = LIBRARY.get_or_init(Self::load).as_ref();
        library.map_err(|what| Error::NotJoined { what: what.clone() })
    }

    fn load() -> Result<Self, String> {
        let by_hand = env::var_os(BY_HAND).filter(|named| !named.is_empty());
        let library = match &LoadedLibrary::all(&[NAME])[..] {
            [] => open(by_hand.as_deref().map(Path::new))?,
            [one] => {
                // Two of them would share the parts that the first has loaded.
                if let Some(named) = by_hand
                    && Path::new(&named).canonicalize().ok() != one.path().canonicalize().ok()
                {
                    return Err(format!(
                        "{BY_HAND} is `{}`, and this process has UCX already, as {}; leave it unset",
                        named.to_string_lossy(),
                        one.path().display()
                    ));
                }
                one.clone()
            }
            several => {
                let paths: Vec<_> =
                    several.iter().map(|one| one.path().display().to_string()).collect();
                return Err(format!(
                    "this process has several UCX libraries: {}",
                    paths.join(", ")
                ));
            }
        };
        let functions = UcxFunctions::of(&|name| library.symbol(name)).map_err(|missing| {
            format!("{} lacks {missing}: UCX 1.12 or later is needed", library.path().display())
        })?;
        // SAFETY: the function may be called at any time, and its text is constant.
        let version = text(unsafe { (functions.version)() });
        Ok(Self { functions, version })
    }

    /// Returns the library's text for one of its results.
    pub(super) fn text(&self, status: Status) -> String {
        // SAFETY: the function takes any number, and its texts stay.
        text(unsafe { (self.functions.status_string)(status) })
    }

    /// Returns the error of a call of the library, as text.
    pub(super) fn failed(&self, what: &str, status: Status) -> String {
        format!("UCX {}: {what} failed: {}", self.version, self.text(status))
    }
}

/// Loads the library, and takes from it the signals of errors, of which it would print its own report: they are the
/// program's, unless the user gave them to UCX.
fn open(by_hand: Option<&Path>) -> Result<LoadedLibrary, String> {
    let name = by_hand.unwrap_or(Path::new(ASKED));
    let library = LoadedLibrary::open(name, libc::RTLD_NOW | libc::RTLD_LOCAL);
    let library = library.map_err(|why| match by_hand {
        Some(_) => format!("{BY_HAND} cannot be loaded: {why}"),
        None => format!(
            "no UCX library is found; set {BY_HAND} to its path, or LD_LIBRARY_PATH to its folder ({why})"
        ),
    })?;
    let disable = library.symbol(c"ucs_debug_disable_signals");
    if !disable.is_null() && env::var_os(SIGNALS).is_none() {
        // SAFETY: a function of UCX of this name takes nothing, returns nothing, and sets the handlers that were there
        // before the library.
        unsafe { std::mem::transmute::<Object, unsafe extern "C" fn()>(disable)() };
    }
    Ok(library)
}

/// Returns a text of the library.
pub(super) fn text(at: *const std::ffi::c_char) -> String {
    if at.is_null() {
        return String::new();
    }
    // SAFETY: texts of the library end with a zero.
    unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned()
}
