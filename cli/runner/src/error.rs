//! The reason why something was not run.

use roundelay_core::diagnostics::Code;
use roundelay_topology::Problem;

/// The reason why something was not run.
#[derive(Clone, Debug)]
pub enum RunError {
    /// The call is wrong, or the system refuses what it needs.
    Problem(Box<Problem>),
    /// A rank did not find the program that the process which started it has proved.
    Unproved,
}

impl RunError {
    pub(crate) fn usage(code: Code, title: impl Into<String>) -> Self {
        Problem::new(code, title).into()
    }

    pub(crate) fn with_help(self, help: impl Into<String>) -> Self {
        match self {
            Self::Problem(problem) => problem.help(help).into(),
            Self::Unproved => self,
        }
    }
}

impl From<Problem> for RunError {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

impl From<roundelay_kernels::Error> for RunError {
    fn from(error: roundelay_kernels::Error) -> Self {
        let (code, text) = (error.code(), error.to_string());
        Self::usage(code, text.strip_suffix(&format!(" [{code}]")).unwrap_or(&text))
    }
}
