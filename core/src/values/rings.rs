//! Several rings at once, before the number of ranks is known.

use std::sync::Arc;

use super::ring::{Ring, RingOrder, from_ranks};
use crate::diagnostics::Code;
use crate::ids::RankId;
use crate::topology::Topology;
use roundelay_topology::search::channels::{are_sought, channels};
use roundelay_topology::search::disjoint::{DisjointBy, disjoint};
use roundelay_topology::search::pairs::Pairs;
use roundelay_topology::{Problem, search};

/// Several orders of the ranks around rings, for an algorithm's parameter of type `Rings`, which sends a part of the
/// data around each ring. An iterator of any type that converts into a [`Ring`] collects into one value.
///
/// # Errors
/// When the algorithm is laid out: those of [`Ring`], and E0211 for no rings at all.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Rings(RingsKind);

/// The form of several rings before the number of ranks is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum RingsKind {
    Given(Vec<Ring>),
    Channels(Arc<Topology>),
    Disjoint(Arc<Topology>, u32),
}

impl Rings {
    /// Returns the rings given, in their order.
    pub fn of(rings: impl IntoIterator<Item = Ring>) -> Self {
        Self(RingsKind::Given(rings.into_iter().collect()))
    }

    /// Returns the rings of the channels that NCCL's search finds on `topology`; one ring of links where the found
    /// rings use links that the topology lacks, or where there are too many ranks for that search.
    pub fn channels(topology: impl Into<Arc<Topology>>) -> Self {
        Self(RingsKind::Channels(topology.into()))
    }

    /// Returns up to `k` rings of links of `topology`, no two of which share a cable; one ring where none are found.
    pub fn disjoint(topology: impl Into<Arc<Topology>>, k: u32) -> Self {
        Self(RingsKind::Disjoint(topology.into(), k))
    }

    /// Returns the orders for `nranks` ranks; the error is the reason why there are none.
    pub(crate) fn resolve(&self, nranks: u32) -> Result<Vec<RingOrder>, Problem> {
        if let RingsKind::Disjoint(_, 0) = self.0 {
            return Err(Problem::new(Code::BadParameter, "no rings at all: k is 0 or less")
                .help("ask for at least one ring"));
        }
        let orders = match &self.0 {
            RingsKind::Given(rings) => {
                return rings.iter().map(|ring| ring.resolve(nranks)).collect();
            }
            // Beyond that number of ranks, the search finds nothing better than one ring.
            RingsKind::Channels(topology) if !are_sought(topology, nranks) => {
                vec![search::ring_around(topology, nranks)?]
            }
            RingsKind::Channels(topology) => {
                let orders = channels(topology, nranks, None)?.orders;
                let linked = |order: &Vec<RankId>| {
                    let next = order.iter().cycle().skip(1);
                    order.len() < 2
                        || order.iter().zip(next).all(|(a, b)| topology.are_linked(*a, *b))
                };
                // NCCL lets a rank relay; in this language a relay is part of the algorithm.
                if orders.iter().all(linked) {
                    orders
                } else {
                    vec![search::ring_around(topology, nranks)?]
                }
            }
            RingsKind::Disjoint(topology, k) => {
                topology.holds_pairs(nranks)?;
                let pairs = Pairs::direct(topology, nranks);
                let found = disjoint(&pairs, *k as usize, DisjointBy::Cables).rings;
                if found.is_empty() {
                    // Returns one ring, or the reason why there is none.
                    vec![search::ring_around(topology, nranks)?]
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
