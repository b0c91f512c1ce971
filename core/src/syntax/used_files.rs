//! The files that sources use on a disk: which of them may be read, and what tells one from all others.
//!
//! A page may come from a stranger, so `use` reads no file but programs of the language: messages quote what is wrong in a
//! used file. The compiler reads no files itself; its frontends read them with these functions.

use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use super::read_limit;

/// The environment variable that says where used files may lie.
pub const VARIABLE: &str = "ROUNDELAY_USE";

/// The files that the sources of one compilation may use.
#[derive(Debug)]
pub struct UsedFiles {
    /// The folder of the source from which the compilation starts.
    folder: PathBuf,
}

/// The place of the files that may be used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Anywhere,
    /// In the folder of the source from which the compilation starts, or below it.
    Beside,
    Nowhere,
}

impl Place {
    fn of_the_environment() -> Result<Self, String> {
        let Some(set) = std::env::var_os(VARIABLE) else { return Ok(Self::Anywhere) };
        match set.to_str() {
            Some("anywhere") => Ok(Self::Anywhere),
            Some("beside") => Ok(Self::Beside),
            Some("nowhere") => Ok(Self::Nowhere),
            _ => {
                let set = set.display();
                Err(format!("{VARIABLE} is `{set}`, and not `anywhere`, `beside` or `nowhere`"))
            }
        }
    }
}

impl UsedFiles {
    /// Returns the files that a source and those that it uses may use, by the path of the source.
    pub fn for_source(source: &Path) -> Self {
        Self { folder: source.parent().unwrap_or(Path::new("")).to_owned() }
    }

    /// Tests a path by its text alone, so that the answer does not depend on the disk.
    ///
    /// # Errors
    /// The reason why the file may not be read.
    pub fn permits(&self, path: &Path) -> Result<(), String> {
        self.place(path).map(|_| ())
    }

    fn place(&self, path: &Path) -> Result<Place, String> {
        if !is_program(path) {
            return Err("`use` reads only files whose names end in `.coll`".to_owned());
        }
        let place = Place::of_the_environment()?;
        match place {
            Place::Nowhere => Err(format!("{VARIABLE}=nowhere forbids every `use` of a file")),
            Place::Beside if !self.is_below(path) => Err(outside()),
            Place::Anywhere | Place::Beside => Ok(place),
        }
    }

    /// Whether the words of a path lead to a place in the folder or below it.
    pub fn is_below(&self, path: &Path) -> bool {
        let Ok(rest) = path.strip_prefix(&self.folder) else { return false };
        let mut depth = 0_usize;
        rest.components().all(|part| match part {
            Component::Normal(_) => {
                depth += 1;
                true
            }
            Component::CurDir => true,
            Component::ParentDir => match depth.checked_sub(1) {
                Some(less) => {
                    depth = less;
                    true
                }
                None => false,
            },
            Component::RootDir | Component::Prefix(_) => false,
        })
    }

    /// Returns the path of a file without links, if the file may be read.
    fn admitted(&self, path: &Path) -> Result<PathBuf, String> {
        let place = self.place(path)?;
        let found = real(path)?;
        if place == Place::Beside {
            let here = self.folder.as_os_str().is_empty();
            let folder = real(if here { Path::new(".") } else { &self.folder })?;
            if !found.starts_with(folder) {
                return Err(outside());
            }
        }
        if !is_program(&found) {
            return Err("it is a link to a file whose name does not end in `.coll`".to_owned());
        }
        Ok(found)
    }

    /// Returns what tells the file at `path` from all others: it is equal for all paths and links that lead to the file.
    ///
    /// # Errors
    /// The reason why it may not be read, or is not there.
    pub fn identity(&self, path: &Path) -> Result<String, String> {
        let path = self.admitted(path)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            let found = path.metadata().map_err(|error| error.to_string())?;
            Ok(format!("file {} of device {}", found.ino(), found.dev()))
        }
        #[cfg(not(unix))]
        Ok(path.display().to_string())
    }

    /// Returns the bytes of the file at `path`.
    ///
    /// # Errors
    /// The reason why it may not be read, or cannot be read: it is no file, or too large.
    pub fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        read_limit::file(&self.admitted(path)?)
    }
}

/// Returns a path without links. A system that cannot tell it has no links, as that of the book's pages in a browser.
fn real(path: &Path) -> Result<PathBuf, String> {
    match path.canonicalize() {
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(plain(path)),
        found => found.map_err(|error| error.to_string()),
    }
}

/// Returns a path without `.`, and without `..` behind a folder.
pub fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match (part, plain.components().next_back()) {
            (Component::CurDir, _) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => _ = plain.pop(),
            _ => plain.push(part),
        }
    }
    plain
}

fn is_program(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "coll")
}

fn outside() -> String {
    format!("it is outside the folder of the source, which {VARIABLE}=beside forbids")
}
