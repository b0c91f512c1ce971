//! The errors of running a kernel on CPU threads, apart from the kernel's own.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The reason why a run of a kernel on CPU threads has no outcome.
#[derive(Debug)]
pub enum Error {
    /// There is no C++ compiler.
    NoCompiler {
        /// The command that was called.
        compiler: String,
        /// The system's message.
        error: std::io::Error,
    },
    /// The text does not compile.
    Compile {
        /// A copy of the text.
        source: PathBuf,
        /// The compiler's messages.
        log: String,
    },
    /// The program ended in an unexpected way.
    Run {
        /// The exit status, in words.
        status: String,
        /// The output of the program.
        log: String,
    },
    /// The program did not end.
    Hung {
        /// The time after which it was given up.
        limit: Duration,
    },
    /// A job with invalid values.
    BadJob {
        /// The reason.
        what: String,
    },
    /// A result that does not fit the job.
    BadResult {
        /// The reason.
        what: String,
    },
    /// A file that cannot be read or written.
    File {
        /// The path of the file.
        path: PathBuf,
        /// The system's message.
        error: std::io::Error,
    },
}

impl Error {
    pub(super) fn file(path: &Path, error: std::io::Error) -> Self {
        Self::File { path: path.to_owned(), error }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCompiler { compiler, error } => write!(
                f,
                "`{compiler}` cannot be called: {error}; install g++, or name another compiler in CXX"
            ),
            Self::Compile { source, log } => {
                write!(f, "the kernel does not compile; its text is {}\n{log}", source.display())
            }
            Self::Run { status, log } => write!(f, "the kernel's process ended by {status}\n{log}"),
            Self::Hung { limit } => write!(
                f,
                "the kernel did not end in {limit:?}, though its waits give up before that"
            ),
            Self::BadJob { what } => write!(f, "{what}; the job cannot be run"),
            Self::BadResult { what } => write!(f, "{what}; the result does not fit the job"),
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for Error {}
