//! The places of a topology's nodes: on a circle, on a grid, or in boxes beside a row of switches.
//!
//! This is apart from the drawing, which needs only the places. Places are in pixels, anywhere on the plane.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use super::grid;
use super::plane::{Area, PITCH, PlanePoint, half};
use super::tree::DrawnTree;
use roundelay_topology::{Fabric, NodeId, NodeKind};

/// The room around the content of a box, and half the distance between boxes.
const PADDING: f64 = 8.0;
/// The room for the title of a box.
const HEADING: f64 = 18.0;
/// The distance between switches in the middle of a circle.
const HUB: f64 = 36.0;
/// The most switches in the middle of a circle that stay there if they are ports of one rank.
const CROWD: usize = 4;
/// The distance from a port to its rank on a circle.
const PORT: f64 = 64.0;
/// The width above which boxes are on both sides of the switches that join them.
const WIDE: f64 = 1300.0;

/// A part of the picture: a box, the row of switches, or everything.
#[derive(Debug)]
pub(super) struct DrawnBlock {
    pub(super) area: Area,
    /// The title of the box around it; `None` without a box.
    pub(super) frame: Option<String>,
    /// Whether its ranks are on a circle, so that straight lines between them are best.
    pub(super) round: bool,
}

/// The places of all nodes.
#[derive(Debug)]
pub(super) struct DrawnLayout {
    pub(super) places: Vec<PlanePoint>,
    pub(super) blocks: Vec<DrawnBlock>,
    /// The block of each node.
    pub(super) block: Vec<usize>,
}

impl DrawnLayout {
    pub(super) fn new(topology: &Fabric) -> Self {
        let count = topology.nodes().len();
        let mut layout = Self {
            places: vec![PlanePoint::default(); count],
            blocks: Vec::new(),
            block: vec![0; count],
        };
        let (clusters, middle) = clusters(topology);
        if !clusters.is_empty() {
            layout.rows(topology, clusters, &middle);
            return layout;
        }
        let mut cluster = match grid::dimensions(topology) {
            Some(dims) => Cluster { nodes: grid::places(&dims), ..Cluster::default() },
            None => Cluster::circle(topology.ranks().map(NodeId::from).collect()),
        };
        // A port of one rank is between its rank and the middle, if the middle would be crowded.
        let (ports, middle) = if cluster.round && middle.len() > CROWD {
            cluster.ports(topology, &middle)
        } else {
            (Vec::new(), middle)
        };
        let top = (middle.len() as f64 - 1.0) * -HUB / 2.0;
        let at = |i: usize| PlanePoint::new(0.0, top + HUB * i as f64);
        cluster.nodes.extend(middle.iter().enumerate().map(|(i, s)| (*s, at(i))));
        cluster.nodes.extend(ports);
        layout.put(&cluster, cluster.area(topology), PlanePoint::default(), false);
        layout
    }

    /// Places parts in one row, or in two rows with the switches between them.
    fn rows(&mut self, topology: &Fabric, mut clusters: Vec<Cluster>, middle: &[NodeId]) {
        let mut outside = vec![false; topology.nodes().len()];
        for switch in middle {
            outside[switch.index()] = true;
        }
        let joins = |root: NodeId| topology.out(root).iter().any(|l| outside[l.to.index()]);
        let rooted = clusters.iter().any(|p| p.root.is_some_and(joins));
        let machine = topology.nodes().iter().any(|n| n.kind == NodeKind::Cpu);
        let wide =
            |row: &[Cluster]| row.iter().map(|p| p.frame(topology).size().x + 2.0 * PADDING).sum();
        let both = !machine && clusters.len() > 3 && WIDE < wide(&clusters);
        let cut = match (both, rooted) {
            (true, _) => clusters.len().div_ceil(2),
            (false, true) => 0,
            (false, false) => clusters.len(),
        };
        let (above, below) = clusters.split_at_mut(cut);
        let width = f64::max(wide(above), wide(below));
        let gap = (width / 10.0).clamp(80.0, 240.0);
        for (row, side) in [(above, -1.0), (below, 1.0)] {
            let mut x = -wide(row) / 2.0;
            for cluster in row {
                if rooted != (side > 0.0) {
                    cluster.turn();
                }
                let frame = cluster.frame(topology);
                let y = if side > 0.0 { gap - frame.low.y } else { -gap - frame.high.y };
                self.put(cluster, frame, PlanePoint::new(x + PADDING - frame.low.x, y), true);
                x += frame.size().x + 2.0 * PADDING;
            }
        }
        let sizes: Vec<_> = middle.iter().map(|s| half(topology, *s).x).collect();
        let total = 2.0 * sizes.iter().sum::<f64>();
        let gaps = (middle.len() as f64 - 1.0).max(1.0);
        let free = ((width * 0.85 - total) / gaps).clamp(20.0, 120.0);
        let mut row = Cluster::default();
        let mut x = -(total + free * gaps) / 2.0;
        for (switch, half) in middle.iter().zip(sizes) {
            let at = if middle.len() == 1 { 0.0 } else { x + half };
            row.nodes.push((*switch, PlanePoint::new(at, 0.0)));
            x += 2.0 * half + free;
        }
        if !middle.is_empty() {
            self.put(&row, row.area(topology), PlanePoint::default(), false);
        }
    }

    fn put(&mut self, cluster: &Cluster, area: Area, by: PlanePoint, framed: bool) {
        for (node, at) in &cluster.nodes {
            self.places[node.index()] = at.plus(by);
            self.block[node.index()] = self.blocks.len();
        }
        let area = Area { low: area.low.plus(by), high: area.high.plus(by) };
        let frame = framed.then(|| cluster.title.clone());
        self.blocks.push(DrawnBlock { area, frame, round: cluster.round });
    }
}

/// Nodes that are placed together.
#[derive(Default)]
struct Cluster {
    title: String,
    /// The node at the top, above the others.
    root: Option<NodeId>,
    nodes: Vec<(NodeId, PlanePoint)>,
    round: bool,
}

impl Cluster {
    /// Places nodes clockwise from the top. With few ranks, the radius is such that a line between two ranks avoids the
    /// rank between them.
    fn circle(nodes: Vec<NodeId>) -> Self {
        let count = nodes.len() as f64;
        let radius = match nodes.len() {
            0..2 => 0.0,
            2..=9 => 40.0 + 14.0 * count,
            10..=18 => 0.88 * count * count + 90.0 * (1.0 - count / 18.0),
            _ => PITCH * count / TAU + 180.0,
        };
        let at = |i: usize| {
            let (sin, cos) = (TAU * i as f64 / count).sin_cos();
            PlanePoint::new(radius * sin, -radius * cos)
        };
        let nodes = nodes.into_iter().enumerate().map(|(i, node)| (node, at(i))).collect();
        Self { nodes, round: true, ..Self::default() }
    }

    /// Takes the ports of one rank out of the middle of a circle, whose ranks move outwards. Returns the ports with
    /// their places, and the other switches.
    fn ports(
        &mut self,
        topology: &Fabric,
        middle: &[NodeId],
    ) -> (Vec<(NodeId, PlanePoint)>, Vec<NodeId>) {
        let rank_of = |node: &NodeId| {
            let mut ranks =
                topology.out(*node).iter().map(|l| l.to).filter(|n| topology.is_rank(*n));
            let first = ranks.next()?;
            ranks.all(|rank| rank == first).then_some(first)
        };
        let mut of_rank: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        for switch in middle {
            if let Some(rank) = rank_of(switch) {
                of_rank.entry(rank).or_insert(*switch);
            }
        }
        let mut ports = Vec::new();
        for (rank, at) in self.nodes.iter_mut().filter(|_| !of_rank.is_empty()) {
            let long = at.x.hypot(at.y).max(1.0);
            let along =
                |by: f64| PlanePoint::new(at.x * (1.0 + by / long), at.y * (1.0 + by / long));
            let (inner, outer) = (along(PORT / 4.0), along(1.25 * PORT));
            ports.extend(of_rank.get(rank).map(|port| (*port, inner)));
            *at = outer;
        }
        let others = middle.iter().filter(|switch| of_rank.values().all(|port| port != *switch));
        (ports, others.copied().collect())
    }

    /// Turns the cluster upside down, except a circle.
    fn turn(&mut self) {
        if !self.round {
            self.nodes.iter_mut().for_each(|(_, at)| at.y = -at.y);
        }
    }

    fn area(&self, topology: &Fabric) -> Area {
        let mut all = Area::NONE;
        for (node, at) in &self.nodes {
            all.include(Area::around(*at, half(topology, *node)));
        }
        all
    }

    /// Returns the box around the cluster, with room for its title.
    fn frame(&self, topology: &Fabric) -> Area {
        let area = self.area(topology);
        let heading = if self.title.is_empty() { PADDING } else { HEADING };
        Area {
            low: area.low.plus(PlanePoint::new(-PADDING, -heading)),
            high: area.high.plus(PlanePoint::new(PADDING, PADDING)),
        }
    }
}

/// Returns the groups, and the switches outside of them.
fn clusters(topology: &Fabric) -> (Vec<Cluster>, Vec<NodeId>) {
    let group = |node: NodeId| topology.nodes()[node.index()].group;
    let mut groups: BTreeMap<Option<u32>, Vec<NodeId>> = BTreeMap::new();
    let mut middle = Vec::new();
    for node in (0..topology.nodes().len() as u32).map(NodeId) {
        // A port with neighbors in only one group belongs to that group.
        let mut near = topology.out(node).iter().map(|l| group(l.to));
        let first = near.next().flatten();
        let own = group(node).or_else(|| first.filter(|_| near.all(|g| g == first)));
        if own.is_none() && !topology.is_rank(node) {
            middle.push(node);
        } else {
            groups.entry(own).or_default().push(node);
        }
    }
    if groups.keys().all(Option::is_none) {
        return (Vec::new(), middle);
    }
    let made = groups.into_iter().map(|(group, nodes)| match DrawnTree::new(topology, &nodes) {
        Some(tree) => {
            Cluster { root: Some(tree.root), nodes: tree.places(topology), ..Cluster::default() }
        }
        None => {
            let title = group.map_or_else(String::new, |g| format!("group {g}"));
            Cluster { title, ..Cluster::circle(nodes) }
        }
    });
    (made.collect(), middle)
}
