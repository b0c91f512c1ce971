//! Where the nodes of a topology stand: on a circle, on a grid, or in boxes beside a row of switches.
//!
//! Apart from the drawing, which asks for nothing but places. Places are in pixels, anywhere on the plane.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use super::grid;
use super::tree::Tree;
use crate::topology::{NodeId, NodeKind, Topology};

/// From the middle of a rank to its edge.
pub(super) const RADIUS: f64 = 15.0;
/// From a rank to the next.
pub(super) const PITCH: f64 = 40.0;
/// From a row to the next.
pub(super) const ROW: f64 = 68.0;
/// Around what stands in a box, and between boxes.
const PADDING: f64 = 16.0;
/// Characters of a name that are shown.
pub(super) const NAME: usize = 24;
/// Wider than this, boxes stand on both sides of the switches that join them.
const WIDE: f64 = 1300.0;

/// A point, or the way to one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

impl Point {
    pub(super) fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self::new(self.x + other.x, self.y + other.y)
    }
}

/// A rectangle.
#[derive(Clone, Copy, Debug)]
pub(super) struct Area {
    pub(super) low: Point,
    pub(super) high: Point,
}

impl Area {
    pub(super) const NONE: Self = Self {
        low: Point { x: f64::INFINITY, y: f64::INFINITY },
        high: Point { x: f64::NEG_INFINITY, y: f64::NEG_INFINITY },
    };

    pub(super) fn around(at: Point, size: Point) -> Self {
        Self {
            low: Point::new(at.x - size.x, at.y - size.y),
            high: Point::new(at.x + size.x, at.y + size.y),
        }
    }

    pub(super) fn include(&mut self, other: Self) {
        self.low = Point::new(self.low.x.min(other.low.x), self.low.y.min(other.low.y));
        self.high = Point::new(self.high.x.max(other.high.x), self.high.y.max(other.high.y));
    }

    pub(super) fn size(&self) -> Point {
        Point::new(self.high.x - self.low.x, self.high.y - self.low.y)
    }

    pub(super) fn middle(&self) -> Point {
        Point::new(f64::midpoint(self.low.x, self.high.x), f64::midpoint(self.low.y, self.high.y))
    }

    pub(super) fn has(&self, point: Point) -> bool {
        (self.low.x..=self.high.x).contains(&point.x)
            && (self.low.y..=self.high.y).contains(&point.y)
    }
}

/// A part of the picture: a box, the row of switches, or all of it.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) area: Area,
    /// Whether a box is drawn around it, and what it says.
    pub(super) frame: Option<String>,
}

/// The places of all nodes.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) places: Vec<Point>,
    pub(super) blocks: Vec<Block>,
    /// The block of each node.
    pub(super) block: Vec<usize>,
}

/// Half the width and half the height of a node.
pub(super) fn half(topology: &Topology, node: NodeId) -> Point {
    if topology.is_rank(node) {
        return Point::new(RADIUS, RADIUS);
    }
    let letters = topology.nodes()[node.index()].name.chars().count().min(NAME + 1);
    Point::new((letters as f64 * 3.7 + 9.0).max(RADIUS), 12.0)
}

impl Layout {
    pub(super) fn new(topology: &Topology) -> Self {
        let count = topology.nodes().len();
        let mut layout = Self {
            places: vec![Point::default(); count],
            blocks: Vec::new(),
            block: vec![0; count],
        };
        let (boxes, middle) = boxes(topology);
        if boxes.is_empty() {
            let mut all = match grid::dimensions(topology) {
                Some(dims) => grid::places(&dims),
                None => circle(topology.ranks().map(NodeId::from).collect()),
            };
            let hub: Vec<_> = middle.iter().map(|s| half(topology, *s)).collect();
            let tall = hub.len() as f64 * 36.0;
            let at = |i: usize| Point::new(0.0, 36.0 * (i as f64 + 0.5) - tall / 2.0);
            all.extend(middle.iter().enumerate().map(|(i, s)| (*s, at(i))));
            layout.put(topology, &all, Point::default(), None);
        } else {
            layout.rows(topology, &boxes, &middle);
        }
        layout
    }

    /// Boxes in a row, or in two with the switches between them.
    fn rows(&mut self, topology: &Topology, boxes: &[Box], middle: &[NodeId]) {
        let all: Vec<_> = boxes.iter().map(|b| b.area(topology).size().x + PADDING).collect();
        let rooted = boxes.iter().any(|b| b.root_joins(topology, middle));
        let machine = topology.nodes().iter().any(|n| n.kind == NodeKind::Cpu);
        let both = !machine && boxes.len() > 3 && all.iter().sum::<f64>() > WIDE;
        let cut = match (both, rooted) {
            (true, _) => boxes.len().div_ceil(2),
            (false, true) => 0,
            (false, false) => boxes.len(),
        };
        let (above, below) = boxes.split_at(cut);
        let width =
            |row: &[Box]| row.iter().map(|b| b.area(topology).size().x + PADDING).sum::<f64>();
        let wide = width(above).max(width(below));
        let gap = (wide / 9.0).clamp(90.0, 240.0);
        for (row, side) in [(above, -1.0), (below, 1.0)] {
            let mut x = -width(row) / 2.0;
            for part in row {
                let upright = rooted == (side > 0.0);
                let turn = |p: Point| if upright { p } else { Point::new(p.x, -p.y) };
                let nodes: Vec<_> = part.nodes.iter().map(|(n, p)| (*n, turn(*p))).collect();
                let area = area(topology, &nodes);
                let y = if side > 0.0 { gap - area.low.y } else { -gap - area.high.y };
                let gap_left = Point::new(x + PADDING / 2.0 - area.low.x, y);
                self.put(topology, &nodes, gap_left, Some(part.title.clone()));
                x += area.size().x + PADDING;
            }
        }
        let widths: Vec<_> = middle.iter().map(|s| half(topology, *s).x * 2.0).collect();
        let free = (wide * 0.9 - widths.iter().sum::<f64>()) / widths.len().max(1) as f64;
        let free = free.clamp(20.0, 120.0);
        let mut x = -(widths.iter().sum::<f64>() + free * (widths.len() as f64 - 1.0)) / 2.0;
        let mut row = Vec::new();
        for (switch, width) in middle.iter().zip(widths) {
            row.push((*switch, Point::new(x + width / 2.0, 0.0)));
            x += width + free;
        }
        if !row.is_empty() {
            self.put(topology, &row, Point::default(), None);
        }
    }

    fn put(
        &mut self,
        topology: &Topology,
        nodes: &[(NodeId, Point)],
        by: Point,
        frame: Option<String>,
    ) {
        let mut all = Area::NONE;
        for (node, at) in nodes {
            let at = at.plus(by);
            self.places[node.index()] = at;
            self.block[node.index()] = self.blocks.len();
            all.include(Area::around(at, half(topology, *node)));
        }
        if frame.is_some() {
            all = padded(all);
        }
        self.blocks.push(Block { area: all, frame });
    }
}

fn padded(area: Area) -> Area {
    let by = Point::new(PADDING / 2.0, PADDING / 2.0);
    Area { low: Point::new(area.low.x - by.x, area.low.y - by.y), high: area.high.plus(by) }
}

fn area(topology: &Topology, nodes: &[(NodeId, Point)]) -> Area {
    let mut all = Area::NONE;
    for (node, at) in nodes {
        all.include(Area::around(*at, half(topology, *node)));
    }
    padded(all)
}

/// A group with what stands in it, its root on top.
struct Box {
    title: String,
    root: Option<NodeId>,
    nodes: Vec<(NodeId, Point)>,
}

impl Box {
    fn area(&self, topology: &Topology) -> Area {
        area(topology, &self.nodes)
    }

    fn root_joins(&self, topology: &Topology, middle: &[NodeId]) -> bool {
        self.root.is_some_and(|r| topology.out(r).iter().any(|l| middle.contains(&l.to)))
    }
}

/// The groups, and the switches outside of them.
fn boxes(topology: &Topology) -> (Vec<Box>, Vec<NodeId>) {
    let group = |node: NodeId| topology.nodes()[node.index()].group;
    let mut groups: BTreeMap<Option<u32>, Vec<NodeId>> = BTreeMap::new();
    let mut middle = Vec::new();
    for node in (0..topology.nodes().len() as u32).map(NodeId) {
        // A port of one card stands beside the card.
        let near = topology.out(node).iter().map(|l| group(l.to)).collect::<Vec<_>>();
        let own = group(node).or_else(|| match near[..] {
            [one, ref rest @ ..] if rest.iter().all(|g| *g == one) => one,
            _ => None,
        });
        if own.is_none() && !topology.is_rank(node) {
            middle.push(node);
        } else {
            groups.entry(own).or_default().push(node);
        }
    }
    if groups.keys().all(Option::is_none) {
        return (Vec::new(), middle);
    }
    let made = groups.into_iter().map(|(group, nodes)| match Tree::new(topology, &nodes) {
        Some(tree) => {
            Box { title: String::new(), root: Some(tree.root), nodes: tree.places(topology) }
        }
        None => {
            let title = group.map_or_else(String::new, |g| format!("group {g}"));
            Box { title, root: None, nodes: circle(nodes) }
        }
    });
    (made.collect(), middle)
}

/// Clockwise from the top.
fn circle(nodes: Vec<NodeId>) -> Vec<(NodeId, Point)> {
    let count = nodes.len() as f64;
    let radius = if nodes.len() < 2 {
        0.0
    } else {
        (40.0 + 14.0 * count).min(170.0).max(PITCH * count / TAU)
    };
    let at = |i: usize| {
        let (sin, cos) = (TAU * i as f64 / count).sin_cos();
        Point::new(radius * sin, -radius * cos)
    };
    nodes.into_iter().enumerate().map(|(i, node)| (node, at(i))).collect()
}
