//! The lines between nodes: the two links of a cable are one line that avoids other nodes; if there are too many
//! cables, one line represents all cables between two parts of the picture.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::meshes::{self, Mesh};
use super::node_places::DrawnLayout;
use super::pairs::{Pair, Pairs, quality};
use super::router::Router;
use super::ways::{Bend, CableWay};
use roundelay_core::rational::Rat;
use roundelay_topology::{Fabric, Link, LinkKind, NodeId};

/// The most cables, or bundles of cables, that are drawn.
pub(super) const LIMIT: usize = 4096;
/// The most busy cables that are drawn apart from the disc of their mesh.
const BUSY: usize = 600;

/// How busy the links of one kind between two nodes are.
type Loads = BTreeMap<(NodeId, NodeId, LinkKind), f64>;

/// The cables of one kind between two parts of the picture.
struct Bundle {
    cables: usize,
    /// The largest.
    capacity: Rat,
    /// The largest.
    load: Option<f64>,
}

impl Default for Bundle {
    fn default() -> Self {
        Self { cables: 0, capacity: Rat::ZERO, load: None }
    }
}

/// The links of one kind between two nodes; or a bundle of them.
#[derive(Debug)]
pub(super) struct Cable {
    pub(super) kind: LinkKind,
    pub(super) capacity: Rat,
    pub(super) way: CableWay,
    pub(super) title: String,
    /// How busy its busier direction is, from 0 to 1, if that is drawn.
    pub(super) load: Option<f64>,
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
    /// `load`: how busy each link is, or nothing.
    pub(super) fn new(topology: &Fabric, layout: &DrawnLayout, load: &[f64]) -> Self {
        let mut pairs = Pairs::new();
        let mut loads = Loads::new();
        for (at, link) in topology.links().iter().enumerate() {
            let forward = link.from < link.to;
            let (a, b) = if forward { (link.from, link.to) } else { (link.to, link.from) };
            let pair = pairs.entry((a, b, link.kind)).or_default();
            *(if forward { &mut pair.there } else { &mut pair.back }) = Some(link);
            if let Some(load) = load.get(at) {
                let busier = loads.entry((a, b, link.kind)).or_insert(0.0);
                *busier = load.max(*busier);
            }
        }
        let count = pairs.len();
        let busy: Vec<_> =
            loads.iter().filter(|(_, load)| **load > 0.0).map(|(ends, _)| *ends).collect();
        let apart = if busy.len() <= BUSY { busy } else { Vec::new() };
        let apart: Vec<_> = apart.iter().map(|ends| (*ends, pairs[ends])).collect();
        let meshes = meshes::take(topology, layout, &mut pairs);
        // A disc does not hide what is busy.
        pairs.extend(apart);
        if pairs.len() > LIMIT {
            return Self::bundled(layout, &pairs, &loads, count, meshes);
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
            let load = loads.get(&(a, b, kind)).copied();
            let mut title = title(topology, &pair);
            if let Some(load) = load {
                let _ = write!(title, "; busy for {:.0} % of the run", load * 100.0);
            }
            Cable { kind, capacity, way, title, load, one_way }
        };
        Self { drawn: pairs.into_iter().map(draw).collect(), count, meshes, remark: None }
    }

    fn bundled(
        layout: &DrawnLayout,
        pairs: &Pairs<'_>,
        loads: &Loads,
        count: usize,
        mut meshes: Vec<Mesh>,
    ) -> Self {
        let mut bundles: BTreeMap<(usize, usize, LinkKind), Bundle> = BTreeMap::new();
        let mut inside = vec![0; layout.blocks.len()];
        for ((a, b, kind), pair) in pairs {
            let load = loads.get(&(*a, *b, *kind)).copied();
            let (a, b) = (layout.block[a.index()], layout.block[b.index()]);
            if a == b {
                inside[a] += 1;
                continue;
            }
            let bundle = bundles.entry((a.min(b), a.max(b), *kind)).or_default();
            let both = [pair.there, pair.back];
            bundle.cables += 1;
            let capacities = both.into_iter().flatten().map(|l| l.capacity);
            bundle.capacity = capacities.fold(bundle.capacity, Rat::max);
            bundle.load =
                load.map(|load| bundle.load.map_or(load, |other| other.max(load))).or(bundle.load);
        }
        let lost = bundles.len().saturating_sub(LIMIT);
        let draw = |((a, b, kind), bundle): ((usize, usize, LinkKind), Bundle)| {
            let Bundle { cables, capacity, load } = bundle;
            let [from, to] = [a, b].map(|block| layout.blocks[block].area.middle());
            let way = CableWay { from, bend: Bend::Straight, to };
            Cable { kind, capacity, way, title: format!("{cables} cables"), load, one_way: false }
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
fn title(topology: &Fabric, pair: &Pair) -> String {
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
