//! The reasons for which an operation is passed on.

use std::fmt;

/// Why an operation is left to the real library.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// No communicator has a world of GPU processes.
    NoWorld,
    /// A group goes on whole.
    Group,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoWorld => "this version takes no operation",
            Self::Group => "another operation of the group is passed on",
        })
    }
}
