//! The facade's error: a program that was not proved, or a call that the engine refuses.

use std::fmt;

use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::schedule::Algorithm;
use roundelay_core::topology::Problem;

/// Why there is no plan, or no result. `Debug` prints what `Display` does, so a `main` that returns it shows the
/// message as it is meant to be read.
pub enum Error {
    /// The algorithm cannot be laid out or proved for this rank count.
    Unproved(Box<Unproved>),
    /// The engine refuses the call, or the run failed.
    Engine(roundelay_kernels::Error),
    /// A kernel cannot be compiled, launched or ended.
    #[cfg(feature = "cuda")]
    Cuda(roundelay_kernels::cuda::Error),
    /// A text that is no topology.
    Topology(Box<Problem>),
    /// E0211: a call with another root than the algorithm has that a communicator was told to use.
    WrongRoot {
        /// The algorithm.
        algorithm: String,
        /// Its root.
        root: u32,
        /// The root of the call.
        called: u32,
    },
    /// No algorithm of the library can run there: the code and the reason of the first that was refused.
    NoneFits {
        /// What was to be computed.
        collective: Collective,
        /// By how many ranks.
        nranks: u32,
        /// Why the first was refused.
        why: Option<(Code, String)>,
    },
    /// E0102: an executor of that name is registered already.
    Registered(String),
    /// E0402: a buffer that is not a block for each rank.
    NotInBlocks {
        /// Which buffer.
        what: &'static str,
        /// Its elements.
        len: usize,
        /// How many blocks it should have.
        nranks: u32,
    },
}

/// What is wrong with an algorithm at one rank count.
#[derive(Debug)]
pub struct Unproved {
    /// Its name.
    pub algorithm: String,
    /// The rank count.
    pub nranks: u32,
    /// Everything found, the worst first.
    pub findings: Vec<Finding>,
    places: Vec<String>,
}

impl Error {
    pub(crate) fn from_findings<A: Algorithm + ?Sized>(
        algorithm: &A,
        nranks: u32,
        findings: Vec<Finding>,
    ) -> Self {
        let places = findings
            .iter()
            .map(|finding| match algorithm.locations().get(finding.at.index()) {
                Some(at) => format!("{}:{}:{}", algorithm.file(), at.line, at.column),
                None => algorithm.file().to_owned(),
            })
            .collect();
        let algorithm = algorithm.name().to_owned();
        Self::Unproved(Box::new(Unproved { algorithm, nranks, findings, places }))
    }

    /// The code of the (worst) error.
    pub fn code(&self) -> Code {
        match self {
            Self::Unproved(unproved) => {
                unproved.findings.first().map_or(Code::WrongResult, |finding| finding.code)
            }
            Self::Engine(error) => error.code(),
            #[cfg(feature = "cuda")]
            Self::Cuda(error) => error.code(),
            Self::Topology(problem) => problem.code,
            Self::WrongRoot { .. } => Code::BadParameter,
            Self::NoneFits { why, .. } => why.as_ref().map_or(Code::NoRanks, |(code, _)| *code),
            Self::Registered(_) => Code::AlreadyDeclared,
            Self::NotInBlocks { .. } => Code::WrongBufferLength,
        }
    }
}

impl fmt::Display for Unproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not proved for nranks = {}", self.algorithm, self.nranks)?;
        for (finding, place) in self.findings.iter().zip(&self.places) {
            write!(f, "\nerror[{}]: {}\n  --> {place}", finding.code, finding.title)?;
            for note in &finding.notes {
                write!(f, "\n  = note: {note}")?;
            }
            if let Some(help) = &finding.help {
                write!(f, "\n  = help: {help}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unproved(unproved) => unproved.fmt(f),
            Self::Engine(error) => error.fmt(f),
            #[cfg(feature = "cuda")]
            Self::Cuda(error) => error.fmt(f),
            Self::Topology(problem) => problem.fmt(f),
            Self::WrongRoot { algorithm, root, called } => write!(
                f,
                "{algorithm} has root {root}, and the call has root {called}; give the communicator one for each root by `using_rooted`"
            ),
            Self::NoneFits { collective, nranks, why } => {
                write!(f, "no algorithm of the library runs {collective} on these {nranks} ranks")?;
                why.as_ref().map_or(Ok(()), |(code, why)| write!(f, "; the first, [{code}]: {why}"))
            }
            Self::Registered(name) => write!(
                f,
                "an executor is registered as `{name}` already; give this one another name"
            ),
            Self::NotInBlocks { what, len, nranks } => write!(
                f,
                "the {what} has {len} elements, which are not {nranks} blocks of equal length"
            ),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl From<roundelay_kernels::Error> for Error {
    fn from(error: roundelay_kernels::Error) -> Self {
        Self::Engine(error)
    }
}

#[cfg(feature = "cuda")]
impl From<roundelay_kernels::cuda::Error> for Error {
    fn from(error: roundelay_kernels::cuda::Error) -> Self {
        match error {
            roundelay_kernels::cuda::Error::Host(error) => Self::Engine(error),
            error => Self::Cuda(error),
        }
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::Topology(Box::new(problem))
    }
}
