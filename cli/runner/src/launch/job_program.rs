//! Whether there is a program to start, found out before any process is.

use std::env;
use std::ffi::OsStr;
use std::path::Path;

use roundelay_core::diagnostics::Code;
use rustix::fs::{Access, access};

use crate::error::RunError;

/// Refuses a program that no rank could become.
pub(super) fn find(program: &OsStr) -> Result<(), RunError> {
    let shown = program.to_string_lossy();
    let refused =
        |why: &str| RunError::usage(Code::BadCall, format!("`{shown}` cannot be started: {why}"));
    if program.as_encoded_bytes().contains(&b'/') {
        return if starts(Path::new(program)) {
            Ok(())
        } else if Path::new(program).exists() {
            Err(refused("it is not an executable file").with_help("`chmod +x` makes a file one"))
        } else {
            Err(refused("there is no such file"))
        };
    }
    // Without `PATH`, the system searches folders of its own.
    let Some(folders) = env::var_os("PATH") else { return Ok(()) };
    if !program.is_empty() && env::split_paths(&folders).any(|folder| starts(&folder.join(program)))
    {
        return Ok(());
    }
    let failure = refused("no folder of PATH has such a program");
    Err(if Path::new(program).is_file() {
        failure.with_help(format!("for the file in this folder, write ./{shown}"))
    } else {
        failure
    })
}

fn starts(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}
