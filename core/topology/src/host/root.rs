//! The folder below which all files of a host are: small texts, and links that stay below it.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// The most bytes of a file that is read.
const LARGEST: u64 = 1 << 16;
/// The most entries of a folder that are listed.
const ENTRIES: usize = 1 << 14;

/// The folder that stands for `/`.
///
/// ```
/// use roundelay_topology::host::Root;
///
/// let root = Root::new("/").unwrap();
/// assert_eq!(root.text("no/such/file"), None);
/// ```
#[derive(Clone, Debug)]
pub struct Root {
    folder: PathBuf,
}

impl Root {
    /// Takes a folder.
    ///
    /// # Errors
    /// The system's answer where it is no folder that can be opened.
    pub fn new(folder: impl AsRef<Path>) -> io::Result<Self> {
        let folder = fs::canonicalize(folder)?;
        fs::read_dir(&folder)?;
        Ok(Self { folder })
    }

    /// Returns the path at which a file is in the end, behind all links and without the root; `None` where there is no
    /// such file, or where a link leads out of the root.
    pub fn real(&self, path: &str) -> Option<String> {
        let real = fs::canonicalize(self.folder.join(path)).ok()?;
        Some(real.strip_prefix(&self.folder).ok()?.to_str()?.to_owned())
    }

    /// Returns the text of a file without the blanks around it; `None` where it cannot be read, has more than 64 KiB or
    /// is no text.
    pub fn text(&self, path: &str) -> Option<String> {
        let real = self.folder.join(self.real(path)?);
        // A pipe would have the opening wait.
        if !fs::metadata(&real).ok()?.is_file() {
            return None;
        }
        let mut text = String::new();
        File::open(real).ok()?.take(LARGEST + 1).read_to_string(&mut text).ok()?;
        (text.len() as u64 <= LARGEST).then(|| text.trim().to_owned())
    }

    /// Returns the names in a folder in order; none where it cannot be listed.
    pub fn list(&self, path: &str) -> Vec<String> {
        let Some(real) = self.real(path) else { return Vec::new() };
        let entries = fs::read_dir(self.folder.join(real)).into_iter().flatten().flatten();
        let names = entries.take(ENTRIES).filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names
    }
}
