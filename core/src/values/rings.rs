//! Several rings at once, before the number of ranks is known.

use std::sync::Arc;

use super::ring::{Ring, RingOrder, from_ranks};
use crate::diagnostics::Code;
use crate::ids::RankId;
use crate::topology::search::channels::{are_sought, channels};
use crate::topology::search::disjoint::{DisjointBy, disjoint};
use crate::topology::search::pairs::Pairs;
use crate::topology::{Problem, Topology, search};

/// Several orders of the ranks around rings, for an algorithm's parameter of type `Rings`, which sends a part of the
/// data around each. Any iterator of what converts into a [`Ring`] collects into one.
///
/// # Errors
/// When the algorithm is laid out: those of [`Ring`], and E0211 for no rings at all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rings(RingsKind);

/// How several rings are given, before the number of ranks is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum RingsKind {
    Given(Vec<Ring>),
    Channels(Arc<Topology>),
    Disjoint(Arc<Topology>, u32),
}

impl Rings {
    /// The rings given, in their order.
    pub fn of(rings: impl IntoIterator<Item = Ring>) -> Self {
        Self(RingsKind::Given(rings.into_iter().collect()))
    }

    /// The rings of the channels that NCCL's search finds on `topology`; one ring of links where these have links
    /// that the topology lacks, or where there are too many ranks for that search.
    pub fn channels(topology: impl Into<Arc<Topology>>) -> Self {
        Self(RingsKind::Channels(topology.into()))
    }

    /// Up to `k` rings of links of `topology`, no two of which use the same cable; one ring where none are found.
    pub fn disjoint(topology: impl Into<Arc<Topology>>, k: u32) -> Self {
        Self(RingsKind::Disjoint(topology.into(), k))
    }

    /// The orders for `nranks` ranks, or why there are none.
    pub(crate) fn resolve(&self, nranks: u32) -> Result<Vec<RingOrder>, Problem> {
        if let RingsKind::Disjoint(_, 0) = self.0 {
            return Err(Problem::new(Code::BadParameter, "no rings at all: k is 0 or less")
                .help("ask for at least one ring"));
        }
        let orders = match &self.0 {
            RingsKind::Given(rings) => {
                return rings.iter().map(|ring| ring.resolve(nranks)).collect();
            }
            // Beyond, the search has nothing better than one ring.
            RingsKind::Channels(topology) if !are_sought(topology, nranks) => {
                vec![search::around(topology, nranks)?]
            }
            RingsKind::Channels(topology) => {
                let orders = channels(topology, nranks, None)?.orders;
                let linked = |order: &Vec<RankId>| {
                    let next = order.iter().cycle().skip(1);
                    order.len() < 2 || order.iter().zip(next).all(|(a, b)| topology.linked(*a, *b))
                };
                // NCCL lets a rank relay; here a relay is part of the algorithm.
                if orders.iter().all(linked) {
                    orders
                } else {
                    vec![search::around(topology, nranks)?]
                }
            }
            RingsKind::Disjoint(topology, k) => {
                topology.holds(nranks)?;
                let pairs = Pairs::linked(topology, nranks);
                let found = disjoint(&pairs, *k as usize, DisjointBy::Cables).rings;
                if found.is_empty() {
                    // One ring exists, or this says why not.
                    vec![search::around(topology, nranks)?]
                } else {
                    found
                }
            }
        };
        orders.iter().map(|order| from_ranks(order).resolve(nranks)).collect()
    }
}

impl<R: Into<Ring>> FromIterator<R> for Rings {
    fn from_iter<I: IntoIterator<Item = R>>(rings: I) -> Self {
        Self::of(rings.into_iter().map(Into::into))
    }
}
