//! The highlights in the picture of a topology: rings, missing cables, and the cut that limits an `AllReduce`.

use roundelay_core::collective::Collective;
use roundelay_core::ids::RankId;
use roundelay_core::topology::bounds::{Binding, Usable};
use roundelay_core::topology::search::disjoint::{DisjointBy, disjoint};
use roundelay_core::topology::search::{around, pairs::Pairs};
use roundelay_core::topology::{NodeId, Topology};
use roundelay_pictures::topology_svg::Marks;

/// Rings that are drawn at once, and the ranks beyond which it is one.
const RINGS: usize = 3;
const CROWD: u32 = 24;
/// Ranks up to which rings and bounds are sought for a picture.
const SOUGHT: u32 = 128;

pub(super) fn marks(topology: &Topology) -> Marks {
    let mut marks = Marks { cut: cut(topology), ..Marks::default() };
    let n = topology.nranks();
    if n > SOUGHT {
        return marks;
    }
    if topology.nodes().len() == n as usize {
        let rings = if n > CROWD { 1 } else { RINGS };
        marks.rings = disjoint(&Pairs::linked(topology, n), rings, DisjointBy::Cables).rings;
    } else if n > 1 {
        marks.rings = around(topology, n).into_iter().collect();
    }
    let Ok(Usable { bound, all }) = Usable::new(topology, n, Collective::AllReduce, RankId(0))
    else {
        return marks;
    };
    if bound.binding != Binding::Nothing {
        let over = if all.is_some() { " over NVLink" } else { "" };
        marks.caption.push(format!("slowest cut for AllReduce{over}: {:#}", bound.binding));
    }
    if let Binding::Partition(groups) = bound.binding {
        marks.binding = groups;
    }
    marks
}

/// Returns the pairs that a full mesh would join by a cable and this one does not, if it is nearly one.
pub(crate) fn cut(topology: &Topology) -> Vec<(RankId, RankId)> {
    let n = topology.nranks() as usize;
    let full = n * n.saturating_sub(1);
    if topology.nodes().len() > n || topology.links().len() * 4 < full * 3 {
        return Vec::new();
    }
    let joined = |a: RankId, b: RankId| {
        let find =
            |a: RankId, b: RankId| topology.out(a.into()).iter().any(|l| l.to == NodeId::from(b));
        find(a, b) || find(b, a)
    };
    let pairs = topology
        .ranks()
        .flat_map(|a| topology.ranks().filter(move |b| a < *b).map(move |b| (a, b)));
    pairs.filter(|(a, b)| !joined(*a, *b)).collect()
}
