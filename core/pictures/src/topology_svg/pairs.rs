//! Two joined nodes: the links between them in both directions, and their texts.

use std::collections::BTreeMap;

use roundelay_core::rational::Rat;
use roundelay_core::units::{decimals, rate_text, time_text};
use roundelay_topology::{Fabric, Link, LinkKind, NodeId};

/// The bandwidth below which three decimals of a GB/s show only zeros.
const SLOW: Rat = Rat::whole(1_000_000);

/// Both directions between two nodes.
#[derive(Clone, Copy, Default)]
pub(super) struct Pair<'a> {
    pub(super) there: Option<&'a Link>,
    pub(super) back: Option<&'a Link>,
}

/// Pairs by their two nodes, of which the first has the lower number, and by kind.
pub(super) type Pairs<'a> = BTreeMap<(NodeId, NodeId, LinkKind), Pair<'a>>;

/// Returns the text of a link: `25 GB/s, 2us`
pub(super) fn quality(topology: &Fabric, capacity: Rat, latency: u64) -> String {
    let rate = rate(topology, capacity);
    if latency == 0 { rate } else { format!("{rate}, {}", time_text(latency)) }
}

/// Returns the text of a rate: `25 GB/s`, or `2 B` if only proportions are known.
pub(super) fn rate(topology: &Fabric, capacity: Rat) -> String {
    if topology.is_relative() {
        return format!("{capacity} B");
    }
    if capacity < SLOW {
        return rate_text(capacity.num() / capacity.den());
    }
    format!("{} GB/s", decimals(value(capacity) / 1e9, 3))
}

pub(super) fn value(capacity: Rat) -> f64 {
    capacity.num() as f64 / capacity.den() as f64
}
