//! The resources of a machine that may be limited.

use std::fmt;

/// A resource that a schedule takes from a machine, which may have a limited amount of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// Scratch of a rank, in units of the count.
    Scratch,
    /// Streams of a rank, including its main stream.
    Streams,
    /// Signal counters from one rank to another.
    Notifies,
    /// Peers that a rank sends to, or receives from, in one step.
    Ports,
    /// Slots of a link of a fifo that must hold data at once.
    Fifo,
}

impl Resource {
    /// All resources.
    pub const ALL: [Self; 5] =
        [Self::Scratch, Self::Streams, Self::Notifies, Self::Ports, Self::Fifo];

    /// Returns the word for the resource in `#[budget(…)]` and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scratch => "scratch",
            Self::Streams => "streams",
            Self::Notifies => "notifies",
            Self::Ports => "ports",
            Self::Fifo => "fifo",
        }
    }

    /// Returns the resource that `name` stands for.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.name() == name)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
