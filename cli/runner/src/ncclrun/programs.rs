//! A program as the system starts it: found on the search path, and by the interpreter that its first line names.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::getxattr;
use rustix::process::{getegid, geteuid};

/// The rights of the owner, of the group and of all others to start a file.
const STARTS: u32 = 0o111;
const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;
/// The most interpreters behind each other; the system follows as many.
const DEPTH: usize = 5;

/// A program, and what runs it.
pub(super) struct Program {
    /// The file that was named.
    pub(super) file: PathBuf,
    /// The program that its first line names; itself where it is no script.
    pub(super) interpreter: PathBuf,
    /// The interpreter's file, without links.
    pub(super) binary: PathBuf,
}

/// Returns the first file of a name on the search path that can be started.
pub(super) fn on_path(name: &OsStr) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|folder| folder.join(name)).find(|file| is_program(file))
}

fn is_program(file: &Path) -> bool {
    fs::metadata(file).is_ok_and(|about| about.is_file() && about.mode() & STARTS != 0)
}

impl Program {
    /// Finds a program by its name, as a shell does.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn find(name: &OsStr) -> Result<Self, String> {
        let shown = name.to_string_lossy();
        let is_path = shown.contains('/');
        let file = if is_path { Some(PathBuf::from(name)) } else { on_path(name) };
        let file = file.ok_or_else(|| format!("{shown} is not on the search path"))?;
        Self::of_file(&file).ok_or_else(|| format!("{shown} cannot be started"))
    }

    /// Returns a file as a program; `None` where it is none.
    pub(super) fn of_file(file: &Path) -> Option<Self> {
        if !is_program(file) {
            return None;
        }
        let mut interpreter = file.to_owned();
        for _ in 0..DEPTH {
            let Some(next) = first_line(&interpreter) else { break };
            interpreter = next;
        }
        let binary = interpreter.canonicalize().ok()?;
        Some(Self { file: file.to_owned(), interpreter, binary })
    }

    /// Returns the rights that the program has and its user has not, in words.
    pub(super) fn rights(&self) -> Option<&'static str> {
        let about = fs::metadata(&self.binary).ok()?;
        let (user, group) = (geteuid(), getegid());
        if about.mode() & SETUID != 0 && about.uid() != user.as_raw() {
            return Some("it is setuid");
        }
        if about.mode() & SETGID != 0 && about.gid() != group.as_raw() {
            return Some("it is setgid");
        }
        let has_capabilities =
            getxattr(&self.binary, "security.capability", &mut [0_u8; 64]).is_ok();
        (has_capabilities && !user.is_root()).then_some("it has capabilities")
    }
}

/// Returns the program that the first line of a script names; where that is `env`, the program that it finds.
fn first_line(file: &Path) -> Option<PathBuf> {
    let mut line = Vec::new();
    File::open(file).ok()?.take(256).read_to_end(&mut line).ok()?;
    let line = line.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let mut word = || Some(OsString::from_vec(words.next()?.to_vec()));
    let program = PathBuf::from(word()?);
    if program.file_name()? != "env" {
        return Some(program);
    }
    let name = word()?;
    let name = if name == "-S" { word()? } else { name };
    on_path(&name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn script(folder: &Path, name: &str, text: &str) -> PathBuf {
        let file = folder.join(name);
        fs::write(&file, text).expect("a file of the tests");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("of the tests");
        file
    }

    #[test]
    fn a_script_is_run_by_the_program_of_its_first_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let shell = Path::new("/bin/sh").canonicalize().expect("a shell");
        let outer = format!("#!{}\n", script(folder.path(), "inner", "#!/bin/sh -e\n").display());
        for (text, binary) in [
            ("#!/bin/sh\necho\n", &shell),
            ("#! /usr/bin/env sh\n", &shell),
            ("#!/usr/bin/env -S sh -e\n", &shell),
            (&outer, &shell),
        ] {
            let file = script(folder.path(), "script", text);
            let program = Program::of_file(&file).expect("a program");
            assert_eq!((&program.binary, &program.file), (binary, &file), "{text}");
        }
        let endless = folder.path().join("endless");
        script(folder.path(), "endless", &format!("#!{}\n", endless.display()));
        assert!(Program::of_file(&endless).is_some());
        assert!(Program::find("no such program".as_ref()).is_err());
        assert!(Program::find(folder.path().as_os_str()).is_err());
    }
}
