//! The MPI libraries that the loader knows.

use std::path::Path;

use crate::loaded_library::LoadedLibrary;

/// File names of MPI libraries, without the version behind.
pub(super) const NAMES: [&str; 4] = ["libmpi.so", "libmpi_abi.so", "libmpich.so", "libmpi_cray.so"];
/// The names that the loader is asked for, in this order.
const ASKED: [&str; 5] =
    ["libmpi_abi.so.0", "libmpi_abi.so.1", "libmpi.so.40", "libmpi.so.12", "libmpi.so"];
/// The variable that names a library by hand.
const BY_HAND: &str = "ROUNDELAY_MPI_LIB";

/// Loads the library that the variable names, or the first of the usual names that the loader knows.
///
/// # Errors
/// The loader's message.
pub(super) fn load() -> Result<(), String> {
    // The symbols are global, because the library's own parts may look for them.
    let open =
        |name: &Path| LoadedLibrary::open(name, libc::RTLD_NOW | libc::RTLD_GLOBAL).map(drop);
    if let Some(path) = std::env::var_os(BY_HAND) {
        return open(path.as_ref()).map_err(|why| format!("{BY_HAND} cannot be loaded: {why}"));
    }
    let mut said = Vec::new();
    for name in ASKED {
        match open(name.as_ref()) {
            Ok(()) => return Ok(()),
            Err(why) => said.push(why),
        }
    }
    Err(format!(
        "no MPI library is found; set {BY_HAND} to its path, or LD_LIBRARY_PATH to its folder ({})",
        said.join("; ")
    ))
}
