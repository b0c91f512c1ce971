//! The reasons for which a call is left to MPI, or fails.

use std::ffi::c_int;
use std::fmt;

use roundelay::Error;

/// Why a call is left to MPI.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// All calls of the process, or of the communicator, are MPI's.
    All(String),
    /// MPI is to refuse it.
    Argument,
    Op,
    Type,
    NoData,
    Size,
    /// MPI is faster by the table, until the communicator has made more such calls.
    Table,
    /// The time of MPI is compared with ours.
    Trial,
    /// No rank knows the size of all blocks.
    Unknown,
    /// The algorithm that the user wants cannot run there.
    Unfit(String),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All(why) | Self::Unfit(why) => f.write_str(why),
            Self::Argument => f.write_str("arguments for MPI to refuse"),
            Self::Op => f.write_str("an op that is not ours"),
            Self::Type => f.write_str("a type that is not ours"),
            Self::NoData => f.write_str("no data"),
            Self::Unknown => f.write_str("no rank knows the counts of all blocks"),
            Self::Table => f.write_str("MPI is as fast at this size by the table"),
            Self::Trial => f.write_str("a trial of MPI's speed"),
            Self::Size => f.write_str("MPI is as fast at this size"),
        }
    }
}

/// Why a call of ours failed.
pub(crate) enum Wrong {
    /// MPI's code.
    Code(c_int),
    /// Ours.
    Error(Error),
}
