//! The highlights of a topology: rings, missing cables, and the cut that limits an `AllReduce`.

use roundelay_core::collective::Collective;
use roundelay_core::ids::RankId;
use roundelay_core::topology::Topology;
use roundelay_simulate::Usage;
use roundelay_topology::NodeId;
use roundelay_topology::bounds::{Binding, Usable};
use roundelay_topology::search::disjoint::{DisjointBy, disjoint};
use roundelay_topology::search::{pairs::Pairs, ring_around};

use super::Marks;

/// Rings that are drawn at once, and the ranks beyond which it is one.
const RINGS: usize = 3;
const CROWD: u32 = 24;
/// Ranks up to which rings and bounds are sought for a picture.
const SOUGHT: u32 = 128;

/// Returns the highlights of a topology without a run: its rings, its missing cables, and its slowest cut.
pub fn marks(topology: &Topology) -> Marks {
    let mut marks = Marks { cut: cut(topology), ..Marks::default() };
    let n = topology.nranks();
    if n > SOUGHT {
        return marks;
    }
    if topology.nodes().len() == n as usize {
        let rings = if n > CROWD { 1 } else { RINGS };
        marks.rings = disjoint(&Pairs::direct(topology, n), rings, DisjointBy::Cables).rings;
    } else if n > 1 {
        marks.rings = ring_around(topology, n).into_iter().collect();
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
pub fn cut(topology: &Topology) -> Vec<(RankId, RankId)> {
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

/// Returns the marks of a simulated run, of this title: the load of each link, and the busiest one.
pub fn load(topology: &Topology, links: &[Usage], title: String) -> Marks {
    let used: Vec<f64> = links.iter().map(|link| link.used).collect();
    let mut caption = vec![title];
    let busiest = links.iter().max_by(|a, b| a.used.total_cmp(&b.used));
    if let Some(link) = busiest.filter(|link| link.used > 0.0) {
        let name = |node: NodeId| &topology.nodes()[node.index()].name;
        let same = used.iter().filter(|used| **used > link.used - 0.005).count();
        let others = if same > 1 { format!(", as {} more", same - 1) } else { String::new() };
        let busy = used.iter().filter(|used| **used > 0.0).count();
        caption.push(format!(
            "busiest: {} -> {}, for {:.0} % of the run{others}; {busy} of {} links carry data",
            name(link.from),
            name(link.to),
            link.used * 100.0,
            used.len()
        ));
    }
    Marks { load: used, caption, ..Marks::default() }
}
