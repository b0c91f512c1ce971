//! The facade's error: a program that was not proved, or a call that the engine refuses.

use std::fmt;

use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::layout::{Algorithm, with_loop_values};
use roundelay_topology::Problem;

/// Why there is no plan, or why a run failed.
///
/// Each error has a stable code, which [`Error::code`] returns and `roundelay explain E0306` and the book's pages
/// explain. `Debug` prints the text of `Display`, so a `main` that returns an error shows its readable message.
pub enum Error {
    /// E02xx, E03xx: the algorithm cannot be laid out, or is not right, for this number of ranks.
    Unproved(Box<Unproved>),
    /// E0401 to E0414, E0424, E0425, E0427 to E0431 and E0433: the engine refuses the options or the call, or the run failed.
    Engine(roundelay_kernels::Error),
    /// E0415 to E0423 and E0431: a kernel cannot be compiled, launched or brought to its end.
    #[cfg(feature = "cuda")]
    Cuda(roundelay_kernels::cuda::Error),
    /// E06xx and others: a text that is no topology.
    Topology(Box<Problem>),
    /// E0211: the root of the algorithm that a communicator was told to use is not the root of the call.
    WrongRoot {
        /// The name of the algorithm.
        algorithm: String,
        /// The root that the algorithm was made for.
        root: u32,
        /// The root of the call.
        called: u32,
    },
    /// No algorithm of the library can run on `nranks` ranks or on that topology. The code is the code of the first
    /// refusal.
    NoneFits {
        /// The collective that was asked for.
        collective: Collective,
        /// The number of ranks that was asked for.
        nranks: u32,
        /// The code and the reason for which the first algorithm was refused.
        why: Option<(Code, String)>,
    },
    /// E0406: an environment variable makes no sense: `ROUNDELAY_ORDER` is no list of promises, or the selection file that
    /// `ROUNDELAY_SELECTION` names cannot be read or is wrong; the reason, with the variable, the file and the line.
    Environment(String),
    /// E0102: an executor of this name is registered already.
    Registered(String),
    /// E0402: a buffer whose length is no multiple of the number of ranks, although it holds a block for each rank.
    NotInBlocks {
        /// Which buffer it is: "input" or "output".
        what: &'static str,
        /// Its length in elements.
        len: usize,
        /// The number of ranks, and so of blocks that it should have.
        nranks: u32,
    },
}

/// The details of [`Error::Unproved`]: the errors of an algorithm at one number of ranks. `Display` prints every
/// finding with its place in the source.
#[derive(Debug)]
pub struct Unproved {
    /// The name of the algorithm.
    pub algorithm: String,
    /// The number of ranks that it was to be laid out and proved for.
    pub nranks: u32,
    /// All findings, the worst first.
    pub findings: Vec<Finding>,
    places: Vec<String>,
}

impl Error {
    pub(crate) fn from_findings<A: Algorithm + ?Sized>(
        algorithm: &A,
        nranks: u32,
        findings: Vec<Finding>,
    ) -> Self {
        let told = |finding| with_loop_values(algorithm, nranks, None, finding);
        let findings: Vec<Finding> = findings.into_iter().map(told).collect();
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

    /// Returns the stable code of the error; of the worst finding where the algorithm is not proved.
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
            Self::Environment(_) => Code::BadOption,
            Self::Registered(_) => Code::AlreadyDeclared,
            Self::NotInBlocks { .. } => Code::WrongBufferLength,
        }
    }
}

impl Error {
    /// Whether an error of this code is about the arguments of a call, which is not made.
    #[doc(hidden)]
    pub fn is_of_arguments(code: Code) -> bool {
        matches!(
            code,
            Code::WrongBufferCount
                | Code::WrongBufferLength
                | Code::WrongDType
                | Code::MisalignedBuffer
                | Code::BadOption
                | Code::NoInPlace
                | Code::NoSuchRank
                | Code::BadCounts
                | Code::NoSuchOp
        )
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
                "{algorithm} has root {root}, and the call has root {called}; give the communicator one for each root by `using_rooted` [{}]",
                self.code()
            ),
            Self::NoneFits { collective, nranks, why } => {
                write!(f, "no algorithm of the library runs {collective} on these {nranks} ranks")?;
                why.as_ref().map_or(Ok(()), |(code, why)| write!(f, "; the first, [{code}]: {why}"))
            }
            Self::Environment(why) => write!(f, "{why} [{}]", self.code()),
            Self::Registered(name) => write!(
                f,
                "an executor is registered as `{name}` already; give this one another name [{}]",
                self.code()
            ),
            Self::NotInBlocks { what, len, nranks } => write!(
                f,
                "the {what} has {len} elements, which are not {nranks} blocks of equal length [{}]",
                self.code()
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
