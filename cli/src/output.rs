//! Files that a command writes beside its report. `-` is standard output; then the report goes to standard error, so
//! that the file's text stands alone. An existing file is overwritten.

use std::fs::{self, OpenOptions};
use std::io::{Error, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use roundelay_core::diagnostics::Code;

use crate::report::Failure;
use crate::streams::{give_way, note, print_alone};

/// Checks before the work that the files can be written after it. `files` are flags and the names in them; `document`
/// is set where the report is for programs, which read standard output.
pub(crate) fn reserve(files: &[(&str, Option<&str>)], document: bool) -> Result<(), Failure> {
    let given = || files.iter().filter_map(|(flag, path)| Some((*flag, (*path)?)));
    let flags: Vec<_> = given().filter(|(_, path)| *path == "-").map(|(flag, _)| flag).collect();
    let others = match &flags[..] {
        [] => None,
        [one] if document => Some(format!("--format and {one} -")),
        [_] => {
            give_way();
            None
        }
        several => Some(several.join(" - and ") + " -"),
    };
    if let Some(others) = others {
        let title = format!("{others} are for standard output, which takes one of them");
        return Err(Failure::usage(Code::BadCall, title).with_help("name files for the others"));
    }
    for (_, path) in given().filter(|(_, path)| *path != "-") {
        let fresh = !Path::new(path).exists();
        let opened = OpenOptions::new().append(true).create(true).open(path);
        opened.map_err(|error| unwritable(path, &error))?;
        if fresh {
            // A command that fails leaves no empty file.
            fs::remove_file(path).map_err(|error| unwritable(path, &error))?;
        }
    }
    Ok(())
}

/// Writes a file, and says so.
pub(crate) fn write(path: &str, text: &str) -> Result<(), Failure> {
    if path == "-" {
        print_alone(text);
        return Ok(());
    }
    fs::write(path, text).map_err(|error| unwritable(path, &error))?;
    wrote(path);
    Ok(())
}

/// Replaces the text of a file, and says so. Where the new text cannot be written to its end, the file stays as it was.
pub(crate) fn replace(path: &str, text: &str) -> Result<(), Failure> {
    let replaced = || {
        // A link stays one: the file that it leads to is replaced.
        let file = fs::canonicalize(path).unwrap_or_else(|_| PathBuf::from(path));
        let found = OpenOptions::new().append(true).open(&file)?.metadata()?;
        #[cfg(unix)]
        if std::os::unix::fs::MetadataExt::nlink(&found) > 1 {
            // Other names of the file keep their text only if it stays this file.
            return fs::write(&file, text);
        }
        let mut name = file.file_name().ok_or(ErrorKind::InvalidInput)?.to_owned();
        name.push(format!(".{}.tmp", std::process::id()));
        let beside = file.with_file_name(name);
        let mut new = match OpenOptions::new().write(true).create_new(true).open(&beside) {
            Ok(new) => new,
            // The folder takes no other file.
            Err(why) if why.kind() == ErrorKind::PermissionDenied => return fs::write(&file, text),
            Err(why) => return Err(why),
        };
        let done = new.write_all(text.as_bytes()).and_then(|()| {
            new.set_permissions(found.permissions())?;
            fs::rename(&beside, &file)
        });
        if done.is_err() {
            // The new file may be half written.
            drop(fs::remove_file(&beside));
        }
        done
    };
    replaced().map_err(|error| unwritable(path, &error))?;
    wrote(path);
    Ok(())
}

/// Reports the name of a written file.
pub(crate) fn wrote(what: &str) {
    note(format!("    \x1b[1;92mwrote\x1b[0m {what}"));
}

pub(crate) fn unwritable(path: &str, error: &Error) -> Failure {
    Failure::usage(Code::Unwritable, format!("`{path}` cannot be written: {error}"))
}
