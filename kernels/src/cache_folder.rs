//! The folder of files that processes keep for later ones: compiled kernels, the ways of worlds, and the library's
//! sources for editors. It is used only where this user and root alone can write, also if a variable names it.

use std::ffi::OsString;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io, process, thread};

use crate::trust::only_own;

/// The variable that names the folder; `off` for none.
const VARIABLE: &str = "ROUNDELAY_CACHE";

/// Returns the folder that the variable `ROUNDELAY_CACHE` names, or `roundelay` in the user's folder for caches; `None`
/// if nothing is to be kept.
pub fn of_process() -> Option<PathBuf> {
    of(|name| std::env::var_os(name))
}

/// Returns the folder that the variables name.
fn of(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
    match variable(VARIABLE) {
        Some(value) if value == "off" => return None,
        Some(folder) => return Some(folder.into()),
        None => {}
    }
    // The base directory specification says to ignore a relative path.
    let set = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = set("XDG_CACHE_HOME").or_else(|| set("LOCALAPPDATA"));
    let caches = caches.or_else(|| Some(Path::new(&variable("HOME")?).join(".cache")));
    caches.map(|folder| folder.join("roundelay"))
}

/// Returns the bytes of a kept file.
///
/// # Errors
/// The file cannot be read, or another user can change it.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(only_own(path).map_err(io::Error::other)?)
}

/// Replaces a file as a whole: a reader finds the old contents or the new ones. Its folder need not exist: it is made for
/// this user alone.
///
/// # Errors
/// The file cannot be written, or another user could change it.
pub fn replace(path: &Path, entry: &[u8]) -> io::Result<()> {
    static NAMES: AtomicU64 = AtomicU64::new(0);
    let name = format!("{}.{}.tmp", process::id(), NAMES.fetch_add(1, Ordering::Relaxed));
    let path = &in_own_folder(path)?;
    let beside = path.with_file_name(name);
    let done = fs::write(&beside, entry).and_then(|()| fs::rename(&beside, path));
    if done.is_err() {
        // The file may be half written.
        drop(fs::remove_file(&beside));
    }
    done
}

/// Waits until no other process holds the lock with this path, for `limit` at most. The lock ends with the file or its
/// process.
///
/// # Errors
/// The file cannot be made, another user could change it, or the lock is not free in time.
pub fn lock(path: &Path, limit: Duration) -> io::Result<File> {
    let file =
        File::options().write(true).create(true).truncate(false).open(in_own_folder(path)?)?;
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if begun.elapsed() >= limit => {
                return Err(io::ErrorKind::TimedOut.into());
            }
            Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// Makes the folder of a file, for this user alone, and returns the file's path there.
fn in_own_folder(path: &Path) -> io::Result<PathBuf> {
    let folder = path.parent().filter(|folder| *folder != "").unwrap_or(Path::new("."));
    make(folder)?;
    let folder = only_own(folder).map_err(io::Error::other)?;
    Ok(folder.join(path.file_name().ok_or(io::ErrorKind::InvalidInput)?))
}

fn make(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
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
        assert_eq!(of(&[("LOCALAPPDATA", "/l")]), path("/l/roundelay"));
        assert_eq!(of(&[("HOME", "/h"), ("ROUNDELAY_CACHE", "/c")]), path("/c"));
        assert_eq!(of(&[("HOME", "/h"), ("ROUNDELAY_CACHE", "off")]), None);
        assert_eq!(of(&[]), None);
    }

    /// Files that another user may have put into the folder are not read, and nothing is written there.
    #[cfg(unix)]
    #[test]
    fn a_folder_that_others_can_write_is_not_used() {
        use std::os::unix::fs::PermissionsExt as _;
        let above = tempfile::tempdir().expect("a folder");
        let folder = above.path().join("new/er");
        let file = folder.join("ways");
        replace(&file, b"kept").expect("a new folder");
        assert_eq!(read(&file).expect("it is kept"), b"kept");
        let mode = |mode| fs::set_permissions(&folder, fs::Permissions::from_mode(mode));
        assert_eq!(fs::metadata(&folder).expect("made").permissions().mode() & 0o777, 0o700);
        for others in [0o777, 0o1777] {
            mode(others).expect("it is the test's own");
            for error in [read(&file).expect_err("read"), replace(&file, b"").expect_err("written")]
            {
                assert!(error.to_string().contains("other users can write"), "{error}");
            }
        }
        mode(0o755).expect("it is the test's own");
        assert_eq!(read(&file).expect("it is kept"), b"kept");
    }
}
