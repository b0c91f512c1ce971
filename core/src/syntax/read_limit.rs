//! Sources are read up to a limit: a device, a pipe or a file of another kind may have no end, and a compiler that
//! reads it to the end takes all memory. The compiler reads no files itself; its frontends read them with these
//! functions.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The default limit of a source in bytes, unless [`VARIABLE`] sets another: 16 MiB.
pub const LARGEST: u64 = 16 << 20;

/// The environment variable that sets another limit, in bytes.
pub const VARIABLE: &str = "ROUNDELAY_LARGEST_SOURCE";

/// Returns the limit of a source in bytes.
///
/// # Errors
/// Where the environment variable holds no number of bytes.
pub fn largest() -> Result<u64, String> {
    let Some(set) = std::env::var_os(VARIABLE) else { return Ok(LARGEST) };
    let number = set.to_str().and_then(|text| text.parse().ok());
    number.ok_or_else(|| format!("{VARIABLE} is `{}`, no number of bytes", set.display()))
}

/// Returns all bytes that `reader` gives; `None` if they are more than `largest`.
///
/// # Errors
/// The errors of reading.
pub fn bytes(reader: impl Read, largest: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    reader.take(largest.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= largest).then_some(bytes))
}

/// Returns the bytes of a source that `open` opens. The error is the reason why it cannot be read.
///
/// # Errors
/// A source that cannot be opened or read, or is larger than the limit.
pub fn source<R: Read>(open: impl FnOnce() -> io::Result<R>) -> Result<Vec<u8>, String> {
    let largest = largest()?;
    let read =
        open().and_then(|reader| bytes(reader, largest)).map_err(|error| error.to_string())?;
    read.ok_or_else(|| {
        format!("it has more than {largest} bytes; the environment variable {VARIABLE} sets another limit")
    })
}

/// Returns the bytes of a source that another source names, which must be a file: a pipe may wait for ever to be
/// opened.
///
/// # Errors
/// A path that is no file, is too large, or cannot be read.
pub fn file(path: &Path) -> Result<Vec<u8>, String> {
    let found = path.metadata().map_err(|error| error.to_string())?;
    if !found.is_file() {
        let kind = if found.is_dir() { "a folder" } else { "a device or a pipe" };
        return Err(format!("it is {kind}, not a file"));
    }
    source(|| File::open(path))
}
