//! The reasons for which an operation is passed on.

use std::fmt;
use std::sync::Arc;

/// Why an operation is left to the real library.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// The communicator has no world of GPU processes, as nothing is to be taken, or as it has one rank.
    NoWorld,
    /// The ranks of the communicator did not meet.
    Unmet(Arc<str>),
    /// No algorithm is selected for the operation.
    Unselected,
    /// NCCL makes it until the communicator has made more of its shape.
    Untried,
    /// The time of NCCL is compared with ours.
    Trial,
    /// NCCL is as fast.
    Slower,
    /// It has arguments that are not ours, or are for the real library to refuse.
    Argument,
    /// Its configuration is about NCCL's kernels.
    Config,
    /// It is a send or a receive.
    Message,
    /// The first operation of its shape is captured in a graph, where no plan can be made.
    Captured,
    /// The algorithm cannot run it.
    Unfit(String),
    /// A group goes on whole.
    Group,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoWorld => "the communicator is NCCL's",
            Self::Unmet(why) => why,
            Self::Unselected => "no algorithm is selected",
            Self::Untried => "few of its shape so far",
            Self::Trial => "a trial of NCCL's speed",
            Self::Slower => "NCCL is as fast at this size",
            Self::Argument => "its arguments are NCCL's",
            Self::Config => "its configuration is about NCCL's kernels",
            Self::Message => "messages are NCCL's",
            Self::Captured => "a graph captures the first of its shape",
            Self::Unfit(why) => why,
            Self::Group => "another operation of the group is passed on",
        })
    }
}
