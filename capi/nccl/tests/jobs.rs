//! Jobs of ranks that are processes, below the driver for tests.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;

use tempfile::TempDir;

use crate::driver;
use crate::made::{folder, library, program, source};

/// A program of the tests, and the folder in which its ranks meet.
pub(crate) struct Job {
    folder: TempDir,
    program: PathBuf,
    variables: Vec<(OsString, OsString)>,
}

/// A variable of some ranks.
pub(crate) type Variable<'a> = (&'a dyn Fn(usize) -> bool, &'a str, &'a str);

impl Job {
    /// A program in C, or a script.
    pub(crate) fn new(name: &str) -> Self {
        let folder = folder();
        let program = if name.contains('.') {
            source(&format!("programs/{name}"))
        } else {
            program(name, folder.path())
        };
        Self { folder, program, variables: Vec::new() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Sets a variable of all ranks.
    pub(crate) fn set(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// A command that runs the program with this library as its first argument, where there are so many devices.
    pub(crate) fn command(&self, devices: usize) -> Command {
        static DRIVER: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
            driver::variables(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
        });
        let mut command = Command::new(&self.program);
        for name in ["ROUNDELAY_ALGORITHM", "ROUNDELAY_SELECTION", "ROUNDELAY_ORDER"] {
            command.env_remove(name);
        }
        command.arg(library()).envs(DRIVER.iter().cloned());
        // The driver's last device reaches no other.
        command.env("ROUNDELAY_FAKE_DEVICES", (devices + 1).to_string());
        command.env("ROUNDELAY_REPORT", "1").envs(self.variables.iter().cloned());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program as ranks, and returns what they said. `at` and `more` are its arguments behind the ranks.
    pub(crate) fn ranks(
        &self,
        nranks: usize,
        at: &Path,
        more: &[&str],
        variables: &[Variable<'_>],
    ) -> Vec<Output> {
        let start = |rank: usize| {
            let mut command = self.command(nranks);
            command.args([rank.to_string(), nranks.to_string()]).arg(at).args(more);
            let of_rank = variables.iter().filter(|(is_for, ..)| is_for(rank));
            command.envs(of_rank.map(|(_, name, value)| (name, value)));
            command.spawn().expect("it starts")
        };
        driver::outputs((0..nranks).map(start).collect())
    }
}

/// Returns the standard output and the standard error of a rank that ended well.
pub(crate) fn said(rank: usize, output: &Output) -> (String, String) {
    let [out, err] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(output.status.success(), "rank {rank}: {}\n{out}\n{err}", output.status);
    (out, err)
}
