//! The folder of files that processes keep for later ones: compiled kernels, and the ways of worlds.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{fs, io, process};

/// The variable that names the folder; `off` for none.
const VARIABLE: &str = "ROUNDELAY_CACHE";

/// Returns the folder that the variable `ROUNDELAY_CACHE` names, or `roundelay` in the user's folder for caches; `None`
/// if nothing is to be kept.
pub(crate) fn of_process() -> Option<PathBuf> {
    of(|name| std::env::var_os(name))
}

/// Returns the folder that the variables name.
pub(crate) fn of(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    match variable(VARIABLE) {
        Some(value) if value == "off" => return None,
        Some(folder) => return Some(folder.into()),
        None => {}
    }
    // The base directory specification says to ignore a relative path.
    let caches = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = caches.or_else(|| Some(Path::new(&variable("HOME")?).join(".cache")));
    caches.map(|folder| folder.join("roundelay"))
}

/// Replaces a file as a whole: a reader finds the old contents or the new ones. Its folder need not exist.
pub(crate) fn replace(path: &Path, entry: &[u8]) -> io::Result<()> {
    static NAMES: AtomicU64 = AtomicU64::new(0);
    let name = format!("{}.{}.tmp", process::id(), NAMES.fetch_add(1, Ordering::Relaxed));
    let folder = path.parent().unwrap_or(Path::new(""));
    fs::create_dir_all(folder)?;
    let beside = folder.join(name);
    let done = fs::write(&beside, entry).and_then(|()| fs::rename(&beside, path));
    if done.is_err() {
        // The file may be half written.
        drop(fs::remove_file(&beside));
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_is_the_users() {
        let of = |set: &[(&str, &str)]| {
            let set: Vec<_> =
                set.iter().map(|(n, v)| ((*n).to_owned(), OsString::from(v))).collect();
            super::of(move |name| Some(set.iter().find(|(n, _)| n == name)?.1.clone()))
        };
        let path = |text: &str| Some(PathBuf::from(text));
        assert_eq!(of(&[("HOME", "/h")]), path("/h/.cache/roundelay"));
        assert_eq!(of(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/x")]), path("/x/roundelay"));
        assert_eq!(of(&[("HOME", "/h"), ("XDG_CACHE_HOME", "x")]), path("/h/.cache/roundelay"));
        assert_eq!(of(&[("HOME", "/h"), ("ROUNDELAY_CACHE", "/c")]), path("/c"));
        assert_eq!(of(&[("HOME", "/h"), ("ROUNDELAY_CACHE", "off")]), None);
        assert_eq!(of(&[]), None);
    }
}
