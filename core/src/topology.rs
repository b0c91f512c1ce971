//! The machine that an algorithm runs on: a graph of ranks and links that has a text form, in the language and outside
//! of it.

use std::fmt;
use std::ops::Deref;

use roundelay_topology::Fabric;

/// The machine that an algorithm runs on: a graph of ranks, switches and directed links, in which every rank reaches
/// every other.
///
/// It is read from the text form of the language and the command line: a constructor of
/// [`ShapeKind`](roundelay_topology::shape::ShapeKind) with its sizes, and perhaps a bandwidth and a latency for each
/// tier of links, with links cut by `without`; `gpus(sm=90)` behind them says what the ranks are. Every method of
/// [`Fabric`] is one of a topology, and a graph from elsewhere, such as one that
/// [`Draft`](roundelay_topology::draft::Draft) builds, becomes a topology by `into`.
///
/// ```
/// use roundelay_core::ids::RankId;
/// use roundelay_core::topology::Topology;
///
/// let broken: Topology = "full_mesh(8, 25GB/s, 2us) without (0, 1)".parse()?;
/// assert_eq!(broken.nranks(), 8);
/// assert!(!broken.are_linked(RankId(0), RankId(1)));
/// assert_eq!(broken.neighbors(RankId(0)).len(), 6);
///
/// let wrong = "full_mesh(0)".parse::<Topology>();
/// assert_eq!(wrong.unwrap_err().code.as_str(), "E0601");
/// # Ok::<(), roundelay_topology::Problem>(())
/// ```
///
/// # Errors
/// A text that is no topology is a [`Problem`](crate::diagnostics::problem::Problem): E06xx for one that makes no
/// sense, E00xx and E01xx for one that cannot be read.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Topology(Fabric);

impl Topology {
    /// The most ranks that a topology has.
    pub const RANK_LIMIT: u32 = Fabric::RANK_LIMIT;
    /// The most ranks among which searches and bounds look at all pairs.
    pub const PAIRS_LIMIT: u32 = Fabric::PAIRS_LIMIT;
    /// The most links that a topology has, each counted in one direction.
    pub const LINK_LIMIT: usize = Fabric::LINK_LIMIT;
}

impl fmt::Debug for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Deref for Topology {
    type Target = Fabric;

    fn deref(&self) -> &Fabric {
        &self.0
    }
}

impl From<Fabric> for Topology {
    fn from(fabric: Fabric) -> Self {
        Self(fabric)
    }
}

impl From<Topology> for Fabric {
    fn from(topology: Topology) -> Self {
        topology.0
    }
}
