//! Files that a command writes beside its report. `-` is standard output; then the report goes to standard error, so
//! that the file's text stands alone. An existing file is overwritten.

use std::fs::OpenOptions;
use std::io::Error;
use std::path::Path;

use roundelay_core::diagnostics::Code;

use crate::report::Failure;
use crate::streams::{give_way, print_alone, say};

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
            std::fs::remove_file(path).map_err(|error| unwritable(path, &error))?;
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
    std::fs::write(path, text).map_err(|error| unwritable(path, &error))?;
    wrote(path);
    Ok(())
}

/// Reports the name of a written file.
pub(crate) fn wrote(what: &str) {
    say(format!("    \x1b[1;92mwrote\x1b[0m {what}"));
}

pub(crate) fn unwritable(path: &str, error: &Error) -> Failure {
    Failure::usage(Code::Unwritable, format!("`{path}` cannot be written: {error}"))
}
