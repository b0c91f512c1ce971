//! Ring orders: the left and right neighbors of ranks.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::arith::Fault;
use crate::diagnostics::Code;
use crate::ids::RankId;
use crate::topology::Topology;
use roundelay_topology::{Problem, search};

/// An order of the ranks around a ring, for an algorithm's parameter of type `Ring`.
///
/// The number of ranks is known when the algorithm is laid out: only then is the order checked, or searched for. A
/// vector or array of rank numbers converts into one.
///
/// ```
/// use roundelay_core::values::ring::Ring;
/// use roundelay_core::topology::Topology;
///
/// assert_eq!(Ring::from([0, 2, 1, 3]), Ring::order(vec![0, 2, 1, 3]));
/// let broken: Topology = "full_mesh(8) without (0, 1)".parse()?;
/// let ring = Ring::around(broken); // a parameter: `RingAllReduce::new().ring(ring)`
/// assert_ne!(ring, Ring::natural());
/// # Ok::<(), roundelay_topology::Problem>(())
/// ```
///
/// # Errors
/// When the algorithm is laid out: E0211 for an order that does not name each rank once, E0604 for a topology with
/// fewer ranks than the run, E0605 where no ring of links passes through all ranks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ring(RingKind);

/// The form of a ring before the number of ranks is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum RingKind {
    #[default]
    Natural,
    Twisted,
    Given(Arc<[i64]>),
    Around(Arc<Topology>),
}

/// The order of the 8-card mesh whose 0-1 link is cut: no two neighbors are ranks 0 and 1.
const TWISTED: [i64; 8] = [1, 2, 3, 4, 5, 6, 0, 7];

impl Ring {
    /// Returns ranks in their natural order, `0, 1, …, nranks - 1`.
    pub const fn natural() -> Self {
        Self(RingKind::Natural)
    }

    /// Returns the order `1 2 3 4 5 6 0 7`: a ring of the 8-card mesh whose 0-1 link is cut. It is for 8 ranks only
    /// (E0211).
    pub const fn twisted() -> Self {
        Self(RingKind::Twisted)
    }

    /// Returns the ranks in the order given, which must name each rank once (E0211).
    pub fn order(ranks: impl IntoIterator<Item = i64>) -> Self {
        Self(RingKind::Given(ranks.into_iter().collect()))
    }

    /// Returns a ring of links of `topology`, searched for when the number of ranks is known (E0604, E0605).
    pub fn around(topology: impl Into<Arc<Topology>>) -> Self {
        Self(RingKind::Around(topology.into()))
    }

    /// Returns the order of `nranks` ranks around the ring; the error is the reason why there is none.
    pub(crate) fn resolve(&self, nranks: u32) -> Result<RingOrder, Problem> {
        if let RingKind::Around(topology) = &self.0 {
            topology.holds(nranks)?;
            return from_ranks(&search::ring_around(topology, nranks)?).resolve(nranks);
        }
        self.order_of(nranks).map_err(bad_ring)
    }

    fn order_of(&self, nranks: u32) -> Result<RingOrder, String> {
        let n = i64::from(nranks);
        let order: Vec<i64> = match &self.0 {
            RingKind::Natural => (0..n).collect(),
            RingKind::Twisted if n == 8 => TWISTED.to_vec(),
            RingKind::Twisted => {
                return Err(format!("the twisted ring is an order of 8 ranks, and there are {n}"));
            }
            RingKind::Given(order) => order.to_vec(),
            RingKind::Around(_) => unreachable!("the caller searches the ring"),
        };
        if order.len() as i64 != n {
            return Err(format!("the ring names {} ranks, and there are {n}", order.len()));
        }
        let mut seen = BTreeSet::new();
        for &rank in &order {
            if !(0..n).contains(&rank) {
                return Err(format!("the ring names rank {rank}, which is not in 0..{n}"));
            }
            if !seen.insert(rank) {
                return Err(format!("the ring names rank {rank} twice"));
            }
        }
        let mut position = vec![0; order.len()];
        for (i, &rank) in order.iter().enumerate() {
            position[rank as usize] = i as u32;
        }
        Ok(RingOrder { order: order.iter().map(|&r| RankId(r as u32)).collect(), position })
    }
}

/// Returns the ring of these ranks.
pub(super) fn from_ranks(order: &[RankId]) -> Ring {
    Ring::order(order.iter().map(|rank| i64::from(rank.0)))
}

/// Returns a problem with a help text about the form of a ring.
fn bad_ring(title: String) -> Problem {
    Problem::new(Code::BadParameter, title)
        .help("a ring names each rank of 0..nranks once, in ring order")
}

impl<const N: usize> From<[i64; N]> for Ring {
    fn from(ranks: [i64; N]) -> Self {
        Self::order(ranks)
    }
}

impl From<Vec<i64>> for Ring {
    fn from(ranks: Vec<i64>) -> Self {
        Self::order(ranks)
    }
}

/// The order of a known number of ranks around a ring.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RingOrder {
    /// The rank at each position.
    pub(crate) order: Arc<[RankId]>,
    /// The position of each rank.
    pub(crate) position: Vec<u32>,
}

impl RingOrder {
    /// Returns the rank `by` positions to the right of `rank`.
    pub(crate) fn right(&self, rank: RankId, by: usize) -> RankId {
        self.order[(self.position[rank.index()] as usize + by) % self.order.len()]
    }

    /// Returns the rank next to the left of `rank`.
    pub(crate) fn left(&self, rank: RankId) -> RankId {
        self.right(rank, self.order.len() - 1)
    }
}

/// A ring as seen from one of its ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RingAtRank {
    /// The rank on the left.
    pub(crate) left: RankId,
    /// The rank on the right.
    pub(crate) right: RankId,
    /// The position of the rank itself.
    pub(crate) position: u32,
    /// The rank at each position.
    pub(crate) order: Arc<[RankId]>,
}

impl RingAtRank {
    /// Returns the position of a rank; a fault where the rank is not in the ring.
    pub(crate) fn position_of(&self, rank: RankId) -> Result<i64, Fault> {
        let position = self.order.iter().position(|known| *known == rank);
        position.map(|position| position as i64).ok_or(Fault::Outside { rank: rank.0 })
    }
}
