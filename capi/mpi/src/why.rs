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
    /// MPI combines the values to other bits.
    Arithmetic,
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
            Self::Arithmetic => f.write_str("MPI combines this type to other bits"),
            Self::Unknown => f.write_str("no rank knows the counts of all blocks"),
            Self::Table => f.write_str("MPI is as fast at this size by the table"),
            Self::Trial => f.write_str("a trial of MPI's speed"),
            Self::Size => f.write_str("MPI is as fast at this size"),
        }
    }
}

/// Why a call of ours failed.
pub(crate) enum Wrong {
    /// MPI's code of a collective, of which the communicator's handler has heard.
    Code(c_int),
    /// MPI's code of a copy before the call, of which no handler has heard.
    Packing(c_int),
    /// The same of a copy after the call.
    Unpacking(c_int),
    /// Ours.
    Error(Error),
}
