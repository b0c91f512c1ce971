//! What a schedule must keep to beyond being right: links that exist, resources that there are, one order of
//! reduction. Its author says so by attributes, a caller by flags; like the places of statements it is not
//! part of what runs, nor of the text form.

use std::fmt;
use std::sync::Arc;

use crate::ids::SpanId;
use crate::topology::Topology;

/// All that is demanded, each with the place that says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demands {
    /// Data and signals go over its links alone.
    pub topology: Option<(Arc<Topology>, SpanId)>,
    /// Every rank reduces in the same order, but for the order of two operands.
    pub deterministic: Option<SpanId>,
    /// What there is of each resource.
    pub budgets: Vec<Budget>,
}

/// What there is of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Of which.
    pub resource: Resource,
    /// How much.
    pub most: u64,
    /// Who says so.
    pub at: SpanId,
}

/// What a schedule takes from a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Resource {
    /// Scratch of a rank, in units of the count.
    Scratch,
    /// Streams of a rank, the main one among them.
    Streams,
    /// Signal counters from one rank to another.
    Notifies,
    /// Peers that a rank sends to, or receives from, in one step.
    Ports,
    /// Slots of a link of a fifo that must hold data at once.
    Fifo,
}

impl Resource {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Scratch, Self::Streams, Self::Notifies, Self::Ports, Self::Fifo];

    /// The word for it in `#[budget(…)]` and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Scratch => "scratch",
            Self::Streams => "streams",
            Self::Notifies => "notifies",
            Self::Ports => "ports",
            Self::Fifo => "fifo",
        }
    }

    /// The resource that `name` stands for.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.name() == name)
    }
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
