//! Lower bounds against hand-worked values and against brute force over every cut and partition.

pub(crate) mod brute;
mod golden;
mod peer;
mod speed;
mod twins;

use roundelay_core::collective::Collective;
use roundelay_core::ids::RankId;
use roundelay_core::topology::Topology;
use roundelay_topology::bounds::{Bound, Bounds};

fn bounds(text: &str) -> Bounds {
    let topology: Topology = text.parse().unwrap_or_else(|problem| panic!("{text}: {problem}"));
    Bounds::new(&topology, topology.nranks(), RankId(0)).unwrap()
}

fn of(text: &str, collective: Collective) -> Bound {
    bounds(text).bound(collective).clone()
}
