//! The ring in the order of the ranks where all of them are on one switch: no search finds a better one there.

use crate::{Fabric, Link, LinkKind, NodeId, NodeKind};
use roundelay_base::rational::Rat;

/// Returns the bandwidth of the ring through the first `nranks` ranks, which uses each link once; `None` where these
/// are not all on one switch.
pub(super) fn ring(topology: &Fabric, nranks: u32) -> Option<Rat> {
    if nranks > topology.nranks() {
        return None;
    }
    let is_switch = |to: &NodeId| topology.nodes()[to.index()].kind == NodeKind::NvSwitch;
    let hangs = |switch: &NodeId| {
        let joined = |rank| cable(topology, rank, *switch).and(cable(topology, *switch, rank));
        (0..nranks).all(|rank| joined(NodeId(rank)).is_some())
    };
    let from_first = topology.out(NodeId(0)).iter().map(|link| link.to);
    let switch = from_first.filter(is_switch).find(hangs)?;
    let hop = |rank: u32| {
        let (from, to) = (NodeId(rank), NodeId((rank + 1) % nranks));
        let (up, down) = (cable(topology, from, switch)?, cable(topology, switch, to)?);
        let through = up.capacity.min(down.capacity);
        Some(cable(topology, from, to).map_or(through, |direct| direct.capacity.max(through)))
    };
    (0..nranks).filter_map(hop).min()
}

/// Returns the `NVLink` from one node to another.
fn cable(topology: &Fabric, from: NodeId, to: NodeId) -> Option<&Link> {
    let links = topology.out(from);
    let at = links.binary_search_by_key(&(to, LinkKind::NvLink), |l| (l.to, l.kind)).ok()?;
    links.get(at)
}
