//! Finds lines that pass through no node other than their ends.

use std::collections::VecDeque;

use super::node_places::DrawnLayout;
use super::plane::{Area, PlanePoint, half};
use super::ways::{Bend, CableWay};
use roundelay_core::ids::RankId;
use roundelay_topology::{Fabric, NodeId};

/// The largest product of cables and nodes for which lines avoid nodes.
const CARE: usize = 400_000;
/// The least distance between a line and a node that it passes.
const CLEAR: f64 = 4.0;
/// The distances of a bow's control point from the straight line (positive: away from the middle of the picture), in
/// order of preference.
const BOWS: [f64; 10] = [50.0, -50.0, 70.0, -70.0, 90.0, -90.0, 130.0, -130.0, 180.0, -180.0];
/// The distances of a bow's control point on a circle, where lines bow towards the middle.
const INWARD: [f64; 6] = [-24.0, -50.0, -70.0, -90.0, -130.0, -180.0];
/// The distances of a bow's control point as shares of the line, for long lines through many nodes.
const SHARES: [f64; 8] = [0.15, -0.15, 0.25, -0.25, 0.4, -0.4, 0.6, -0.6];
/// The lengths of the vertical ends of a line between rows, past the other rows of its box.
const STEMS: [f64; 5] = [0.0, 20.0, 44.0, 64.0, 84.0];

/// Finds lines that pass through no node other than their ends.
pub(super) struct Router<'a> {
    topology: &'a Fabric,
    layout: &'a DrawnLayout,
    /// The sizes of nodes; empty if lines need not avoid nodes.
    bodies: Vec<PlanePoint>,
    middle: PlanePoint,
}

impl<'a> Router<'a> {
    pub(super) fn new(topology: &'a Fabric, layout: &'a DrawnLayout, count: usize) -> Self {
        let nodes = topology.nodes().len();
        let careful = nodes.saturating_mul(count) <= CARE;
        let body = |i: usize| half(topology, NodeId(i as u32));
        let bodies = if careful { (0..nodes).map(body).collect() } else { Vec::new() };
        let mut area = Area::NONE;
        layout.blocks.iter().for_each(|b| area.include(b.area));
        Self { topology, layout, bodies, middle: area.middle() }
    }

    /// Returns line `nth` of the lines between `a` and `b`, the same for both directions.
    pub(super) fn way(&self, a: NodeId, b: NodeId, nth: usize) -> CableWay {
        let (low, high) = (a.min(b), a.max(b));
        let mut best: Option<(usize, CableWay)> = None;
        for way in self.choices(low, high).skip(nth) {
            let hits = self.hits(low, high, &way);
            if best.is_none_or(|(least, _)| hits < least) {
                best = Some((hits, way));
            }
            if hits == 0 {
                break;
            }
        }
        let way = best.map_or_else(|| self.bowed(low, high, 0.0), |(_, way)| way);
        if a < b { way } else { way.back() }
    }

    /// Returns the number of nodes, other than its ends, that a line passes through.
    fn hits(&self, low: NodeId, high: NodeId, way: &CableWay) -> usize {
        let near = PlanePoint::new(CLEAR, CLEAR);
        let area = way.area();
        let blocked = |(i, size): &(usize, &PlanePoint)| {
            let (at, size) = (self.layout.places[*i], size.plus(near));
            *i != low.index()
                && *i != high.index()
                && area.meets(Area::around(at, size))
                && way.touches(at, size)
        };
        self.bodies.iter().enumerate().filter(blocked).count()
    }

    /// Returns the lines between two nodes, the best first: straight lines, bows, and S-curves.
    fn choices(&self, a: NodeId, b: NodeId) -> impl Iterator<Item = CableWay> + '_ {
        let [(a_block, from), (b_block, to)] =
            [a, b].map(|n| (self.layout.block[n.index()], self.layout.places[n.index()]));
        let round = a_block == b_block && self.layout.blocks[a_block].round;
        let bows: &[f64] = if round { &INWARD } else { &BOWS };
        let long = (to.x - from.x).hypot(to.y - from.y);
        let bowed = move |bow: f64| self.bowed(a, b, bow);
        let near = std::iter::once(0.0).chain(bows.iter().copied()).map(bowed);
        let shares = SHARES.iter().filter(move |share| !round || **share < 0.0);
        let wide = shares.map(move |share| self.bowed(a, b, share * long));
        let down = (to.y - from.y).signum();
        let rows = STEMS.iter().flat_map(move |first| {
            STEMS.iter().map(move |second| (from.y + down * first, to.y - down * second))
        });
        // An S-curve needs room between the ends.
        let rows = rows.filter(move |(first, second)| (second - first) * down >= 30.0);
        let rows =
            rows.map(move |(first, second)| CableWay { from, bend: Bend::Rows(first, second), to });
        // Between parts an S-curve stays in the room between them, where a wide bow could lead around both.
        let apart = a_block != b_block;
        let (first, last) = (apart.then_some(rows.clone()), (!apart).then_some(rows));
        near.chain(first.into_iter().flatten()).chain(wide).chain(last.into_iter().flatten())
    }

    /// Returns the lines of a ring. Between parts of the picture, and where no line avoids the other nodes, it follows
    /// the cables, through switches.
    pub(super) fn ring(&self, ring: &[RankId]) -> Vec<CableWay> {
        let next = ring.iter().cycle().skip(1);
        ring.iter().zip(next).flat_map(|(a, b)| self.step((*a).into(), (*b).into())).collect()
    }

    /// Returns the lines from a rank of a ring to the next.
    fn step(&self, a: NodeId, b: NodeId) -> Vec<CableWay> {
        let block = |node: NodeId| self.layout.block[node.index()];
        let joined = self.topology.out(a).iter().any(|link| link.to == b);
        let direct = self.way(a, b, 0);
        let near = self.bodies.is_empty() || block(a) == block(b) || joined;
        if near && (joined || self.hits(a.min(b), a.max(b), &direct) == 0) {
            return vec![direct];
        }
        self.stops(a, b).windows(2).map(|s| self.way(s[0], s[1], 0)).collect()
    }

    /// Returns the nodes of a path between two ranks.
    fn stops(&self, a: NodeId, b: NodeId) -> Vec<NodeId> {
        let mut before = vec![None; self.topology.nodes().len()];
        let mut queue = VecDeque::from([a]);
        while let Some(node) = queue.pop_front() {
            for link in self.topology.out(node) {
                let at = link.to;
                if at == b {
                    let back = |n: &NodeId| before[n.index()];
                    let mut stops: Vec<_> = std::iter::successors(Some(node), back).collect();
                    stops.reverse();
                    stops.push(b);
                    return stops;
                }
                if !self.topology.is_rank(at) && before[at.index()].is_none() {
                    before[at.index()] = Some(node);
                    queue.push_back(at);
                }
            }
        }
        vec![a, b]
    }

    fn bowed(&self, a: NodeId, b: NodeId, bow: f64) -> CableWay {
        let (from, to) = (self.layout.places[a.index()], self.layout.places[b.index()]);
        let (x, y) = (to.x - from.x, to.y - from.y);
        let long = x.hypot(y).max(1.0);
        let middle = PlanePoint::new(f64::midpoint(from.x, to.x), f64::midpoint(from.y, to.y));
        let aside = PlanePoint::new(y / long, -x / long);
        let block = &self.layout.blocks[self.layout.block[a.index()]];
        let center = if block.round { block.area.middle() } else { self.middle };
        let outward = (middle.x - center.x) * aside.x + (middle.y - center.y) * aside.y;
        let bow = if outward < -0.5 { -bow } else { bow };
        let over = middle.plus(PlanePoint::new(aside.x * bow, aside.y * bow));
        let bend = if bow == 0.0 { Bend::Straight } else { Bend::Over(over) };
        CableWay { from, bend, to }
    }
}
