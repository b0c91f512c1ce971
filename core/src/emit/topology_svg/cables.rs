//! What is drawn between nodes: the two links of a cable as one line, led round the nodes in its way; and,
//! where there are too many, one line for all cables between two parts of the picture.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use super::layout::{Area, Layout, Point, half};
use crate::ids::RankId;
use crate::schedule::rational::Rat;
use crate::topology::shape::{rate_text, time_text};
use crate::topology::{Link, LinkKind, NodeId, Topology};

/// Cables, and bundles of them, that are drawn.
pub(super) const LIMIT: usize = 4096;
/// Bandwidths of which three decimals of a GB/s show nothing.
const SLOW: Rat = Rat::whole(1_000_000);
/// Cables times nodes up to which a way round the nodes is sought.
const CARE: usize = 400_000;
/// Between a line and a node that it passes.
const CLEAR: f64 = 4.0;
/// Points of a line that are looked at.
const SAMPLES: usize = 24;
/// How far from the straight line, away from the middle of the picture, the control point of a bow may
/// lie, in order of preference.
const BOWS: [f64; 11] = [0.0, 50.0, -50.0, 70.0, -70.0, 90.0, -90.0, 130.0, -130.0, 180.0, -180.0];

/// A line from a place to another, straight or bowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) from: Point,
    /// The control point of a quadratic curve.
    pub(super) over: Option<Point>,
    pub(super) to: Point,
}

/// The links between two nodes that are of one kind; or several such, as a bundle.
#[derive(Debug)]
pub(super) struct Cable {
    pub(super) kind: LinkKind,
    pub(super) capacity: Rat,
    pub(super) way: Way,
    pub(super) title: String,
    /// Whether it works in one direction only, from the first end to the second.
    pub(super) one_way: bool,
}

/// All that joins the nodes.
#[derive(Debug)]
pub(super) struct Cables {
    pub(super) drawn: Vec<Cable>,
    /// Number of cables, drawn or not.
    pub(super) count: usize,
    /// For each block whether it has cables inside that are not drawn.
    pub(super) filled: Vec<bool>,
    /// What a reader must know who counts lines.
    pub(super) remark: Option<String>,
}

/// Both directions between two nodes.
#[derive(Default)]
struct Pair<'a> {
    there: Option<&'a Link>,
    back: Option<&'a Link>,
}

impl Cables {
    pub(super) fn new(topology: &Topology, layout: &Layout) -> Self {
        let mut pairs: BTreeMap<(NodeId, NodeId, LinkKind), Pair> = BTreeMap::new();
        for link in topology.links() {
            let forward = link.from < link.to;
            let (a, b) = if forward { (link.from, link.to) } else { (link.to, link.from) };
            let pair = pairs.entry((a, b, link.kind)).or_default();
            *(if forward { &mut pair.there } else { &mut pair.back }) = Some(link);
        }
        let count = pairs.len();
        if count > LIMIT {
            return Self::bundled(layout, &pairs);
        }
        let router = Router::new(topology, layout, count);
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
        Self {
            drawn: pairs.into_iter().map(draw).collect(),
            count,
            filled: Vec::new(),
            remark: None,
        }
    }

    fn bundled(layout: &Layout, pairs: &BTreeMap<(NodeId, NodeId, LinkKind), Pair>) -> Self {
        let mut bundles: BTreeMap<(usize, usize, LinkKind), (usize, Rat)> = BTreeMap::new();
        let mut inside = 0;
        let mut filled = vec![false; layout.blocks.len()];
        for ((a, b, kind), pair) in pairs {
            let (a, b) = (layout.block[a.index()], layout.block[b.index()]);
            if a == b {
                inside += 1;
                filled[a] = true;
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
            let way = Way { from, over: None, to };
            Cable { kind, capacity, way, title: format!("{count} cables"), one_way: false }
        };
        let mut remark = format!("{inside} cables inside of a part are not drawn");
        if !bundles.is_empty() {
            remark += "; a line between parts stands for all cables between them";
        }
        if lost > 0 {
            let _ = write!(remark, "; {lost} such lines are left out");
        }
        let drawn = bundles.into_iter().take(LIMIT).map(draw).collect();
        Self { drawn, count: pairs.len(), filled, remark: Some(remark) }
    }
}

/// Finds lines that pass through no node but their ends.
pub(super) struct Router<'a> {
    topology: &'a Topology,
    layout: &'a Layout,
    /// By node; none where no care is taken.
    bodies: Vec<Point>,
    middle: Point,
}

impl<'a> Router<'a> {
    pub(super) fn new(topology: &'a Topology, layout: &'a Layout, count: usize) -> Self {
        let nodes = topology.nodes().len();
        let careful = nodes.saturating_mul(count) <= CARE;
        let body = |i: usize| half(topology, NodeId(i as u32));
        let bodies = if careful { (0..nodes).map(body).collect() } else { Vec::new() };
        let mut area = Area::NONE;
        layout.blocks.iter().for_each(|b| area.include(b.area));
        Self { topology, layout, bodies, middle: area.middle() }
    }

    /// The line from `a` to `b`, the same for both directions; the `nth` of those between them.
    pub(super) fn way(&self, a: NodeId, b: NodeId, nth: usize) -> Way {
        let (low, high) = (a.min(b), a.max(b));
        let hits = |way: &Way| {
            let blocked = |(i, size): (usize, &Point)| {
                let at = self.layout.places[i];
                i != low.index()
                    && i != high.index()
                    && (1..SAMPLES).any(|s| meets(at, *size, way.at(s as f64 / SAMPLES as f64)))
            };
            self.bodies.iter().enumerate().filter(|b| blocked(*b)).count()
        };
        let [a_block, b_block] = [a, b].map(|n| self.layout.block[n.index()]);
        let straight = a_block == b_block && self.layout.blocks[a_block].round;
        let choices = BOWS.iter().skip(nth.min(BOWS.len() - 1));
        let choices = choices.take(if straight { 1 } else { BOWS.len() });
        let mut best: Option<(usize, Way)> = None;
        for bow in choices {
            let way = self.bowed(low, high, *bow);
            let hits = hits(&way);
            if best.is_none_or(|(least, _)| hits < least) {
                best = Some((hits, way));
            }
            if hits == 0 {
                break;
            }
        }
        let way = best.map_or_else(|| self.bowed(low, high, 0.0), |(_, way)| way);
        if a < b { way } else { Way { from: way.to, to: way.from, ..way } }
    }

    /// The line of a ring: between parts of the picture it follows the cables, through switches.
    pub(super) fn ring(&self, ring: &[RankId]) -> Vec<Way> {
        let next = ring.iter().cycle().skip(1);
        let steps = ring.iter().zip(next).map(|(a, b)| self.stops((*a).into(), (*b).into()));
        let ways = |stops: Vec<NodeId>| {
            stops.windows(2).map(|s| self.way(s[0], s[1], 0)).collect::<Vec<_>>()
        };
        steps.flat_map(ways).collect()
    }

    /// The nodes on the way between two ranks.
    fn stops(&self, a: NodeId, b: NodeId) -> Vec<NodeId> {
        let block = |node: NodeId| self.layout.block[node.index()];
        let out = self.topology.out(a);
        if self.bodies.is_empty() || block(a) == block(b) || out.iter().any(|l| l.to == b) {
            return vec![a, b];
        }
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

    fn bowed(&self, a: NodeId, b: NodeId, bow: f64) -> Way {
        let (from, to) = (self.layout.places[a.index()], self.layout.places[b.index()]);
        let (x, y) = (to.x - from.x, to.y - from.y);
        let long = x.hypot(y).max(1.0);
        let middle = Point::new(f64::midpoint(from.x, to.x), f64::midpoint(from.y, to.y));
        let aside = Point::new(y / long, -x / long);
        let outward = (middle.x - self.middle.x) * aside.x + (middle.y - self.middle.y) * aside.y;
        let bow = if outward < -0.5 { -bow } else { bow };
        let over = middle.plus(Point::new(aside.x * bow, aside.y * bow));
        Way { from, over: (bow != 0.0).then_some(over), to }
    }
}

/// Whether a node of that size touches the point: ranks are round.
fn meets(node: Point, size: Point, point: Point) -> bool {
    let (x, y) = ((point.x - node.x).abs(), (point.y - node.y).abs());
    if size.x > size.y {
        x < size.x + CLEAR && y < size.y + CLEAR
    } else {
        x.hypot(y) < size.x + CLEAR
    }
}

impl Way {
    fn at(&self, t: f64) -> Point {
        let middle = Point::new(
            f64::midpoint(self.from.x, self.to.x),
            f64::midpoint(self.from.y, self.to.y),
        );
        let over = self.over.unwrap_or(middle);
        let mix = |a: f64, b: f64, c: f64| {
            a * (1.0 - t) * (1.0 - t) + 2.0 * b * t * (1.0 - t) + c * t * t
        };
        Point::new(mix(self.from.x, over.x, self.to.x), mix(self.from.y, over.y, self.to.y))
    }

    /// The middle of the line.
    pub(super) fn middle(&self) -> Point {
        self.at(0.5)
    }
}

/// `0 - 1: 25 GB/s, 2us each way`
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

fn quality(topology: &Topology, capacity: Rat, latency: u64) -> String {
    let rate = rate(topology, capacity);
    if latency == 0 { rate } else { format!("{rate}, {}", time_text(latency)) }
}

/// `25 GB/s`, or `2 b` where only proportions are known.
pub(super) fn rate(topology: &Topology, capacity: Rat) -> String {
    if topology.is_relative() {
        return format!("{capacity} b");
    }
    if capacity < SLOW {
        return rate_text(capacity.num() / capacity.den());
    }
    let value = format!("{:.3}", value(capacity) / 1e9);
    format!("{} GB/s", value.trim_end_matches('0').trim_end_matches('.'))
}

pub(super) fn value(capacity: Rat) -> f64 {
    capacity.num() as f64 / capacity.den() as f64
}
