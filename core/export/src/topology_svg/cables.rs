//! The lines between nodes: the two links of a cable are one line that avoids other nodes; if there are too many
//! cables, one line represents all cables between two parts of the picture.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::layout::DrawnLayout;
use super::meshes::{self, Mesh};
use super::pairs::{Pair, Pairs, quality};
use super::router::Router;
use super::ways::{Bend, CableWay};
use roundelay_core::rational::Rat;
use roundelay_core::topology::{Link, LinkKind, NodeId, Topology};

/// The most cables, or bundles of cables, that are drawn.
pub(super) const LIMIT: usize = 4096;
/// The links of one kind between two nodes; or a bundle of them.
#[derive(Debug)]
pub(super) struct Cable {
    pub(super) kind: LinkKind,
    pub(super) capacity: Rat,
    pub(super) way: CableWay,
    pub(super) title: String,
    /// Whether it works in one direction only, from the first end to the second.
    pub(super) one_way: bool,
}

/// All lines between nodes.
#[derive(Debug)]
pub(super) struct Cables {
    pub(super) drawn: Vec<Cable>,
    /// The number of cables, drawn or not.
    pub(super) count: usize,
    /// The cables that are drawn as discs.
    pub(super) meshes: Vec<Mesh>,
    /// A note for a reader who counts lines.
    pub(super) remark: Option<String>,
}

impl Cables {
    pub(super) fn new(topology: &Topology, layout: &DrawnLayout) -> Self {
        let mut pairs = Pairs::new();
        for link in topology.links() {
            let forward = link.from < link.to;
            let (a, b) = if forward { (link.from, link.to) } else { (link.to, link.from) };
            let pair = pairs.entry((a, b, link.kind)).or_default();
            *(if forward { &mut pair.there } else { &mut pair.back }) = Some(link);
        }
        let count = pairs.len();
        let meshes = meshes::take(topology, layout, &mut pairs);
        if pairs.len() > LIMIT {
            return Self::bundled(layout, &pairs, count, meshes);
        }
        let router = Router::new(topology, layout, pairs.len());
        let mut before = None;
        let mut nth = 0;
        let draw = |((a, b, kind), pair): ((NodeId, NodeId, LinkKind), Pair)| {
            nth = if before.replace((a, b)) == Some((a, b)) { nth + 1 } else { 0 };
            let both = [pair.there, pair.back];
            let capacity = both.into_iter().flatten().map(|l| l.capacity).max().unwrap_or(Rat::ONE);
            let one_way = pair.there.is_none() || pair.back.is_none();
            let (from, to) = if pair.there.is_none() { (b, a) } else { (a, b) };
            let way = router.way(from, to, nth);
            Cable { kind, capacity, way, title: title(topology, &pair), one_way }
        };
        Self { drawn: pairs.into_iter().map(draw).collect(), count, meshes, remark: None }
    }

    fn bundled(
        layout: &DrawnLayout,
        pairs: &Pairs<'_>,
        count: usize,
        mut meshes: Vec<Mesh>,
    ) -> Self {
        let mut bundles: BTreeMap<(usize, usize, LinkKind), (usize, Rat)> = BTreeMap::new();
        let mut inside = vec![0; layout.blocks.len()];
        for ((a, b, kind), pair) in pairs {
            let (a, b) = (layout.block[a.index()], layout.block[b.index()]);
            if a == b {
                inside[a] += 1;
                continue;
            }
            let bundle = bundles.entry((a.min(b), a.max(b), *kind)).or_insert((0, Rat::ZERO));
            let both = [pair.there, pair.back];
            bundle.0 += 1;
            bundle.1 = both.into_iter().flatten().map(|l| l.capacity).fold(bundle.1, Rat::max);
        }
        let lost = bundles.len().saturating_sub(LIMIT);
        let draw = |((a, b, kind), (count, capacity)): ((usize, usize, LinkKind), (usize, Rat))| {
            let [from, to] = [a, b].map(|block| layout.blocks[block].area.middle());
            let way = CableWay { from, bend: Bend::Straight, to };
            Cable { kind, capacity, way, title: format!("{count} cables"), one_way: false }
        };
        let hidden: usize = inside.iter().sum();
        let crowds = inside.iter().enumerate().filter(|(block, count)| {
            let meant = meshes.iter().any(|mesh| mesh.block == *block);
            **count > 0 && layout.blocks[*block].round && !meant
        });
        let crowds: Vec<_> = crowds.map(|(block, count)| meshes::crowd(block, *count)).collect();
        meshes.extend(crowds);
        let mut remark = format!("{hidden} cables inside of a part are not drawn");
        if !bundles.is_empty() {
            remark += "; a line between parts stands for all cables between them";
        }
        if lost > 0 {
            let _ = write!(remark, "; {lost} such lines are left out");
        }
        let drawn = bundles.into_iter().take(LIMIT).map(draw).collect();
        Self { drawn, count, meshes, remark: Some(remark) }
    }
}

/// Returns the text for a cable: `0 - 1: 25 GB/s, 2us each way`
fn title(topology: &Topology, pair: &Pair) -> String {
    let name = |node: NodeId| &topology.nodes()[node.index()].name;
    let like = |l: &Link| quality(topology, l.capacity, l.latency);
    match (pair.there, pair.back) {
        (Some(a), Some(b)) if (a.capacity, a.latency) == (b.capacity, b.latency) => {
            format!("{} - {}: {} each way", name(a.from), name(a.to), like(a))
        }
        (there, back) => {
            let one = |l: &Link| format!("{} -> {}: {}", name(l.from), name(l.to), like(l));
            there.into_iter().chain(back).map(one).collect::<Vec<_>>().join("; ")
        }
    }
}
