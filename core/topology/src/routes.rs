//! The links that data takes from one rank to another. On a machine with links of several kinds, such as `NVLink`
//! beside PCI, these are the one path of NCCL's rules, which a report of the machine shows, too. With links of one
//! kind, they are all shortest paths that pass through no third rank.

use super::paths::{self, Path};
use super::{Fabric, NodeId};

/// The choice among several shortest paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Routing {
    /// Equal parts take each path, as packets do under ECMP.
    #[default]
    Ecmp,
    /// One path, chosen by the destination's number modulo the number of paths.
    DModK,
}

/// Marks the absence of a link.
const END: u32 = u32::MAX;

/// The shortest paths from one node at a time.
pub struct Routes<'t> {
    topology: &'t Fabric,
    routing: Routing,
    source: Option<NodeId>,
    /// The number of links from the source to each node; `u32::MAX` where it is not reached.
    hops: Vec<u32>,
    /// The last link of a shortest path to each node, and for each link another link with that role.
    last: Vec<u32>,
    other: Vec<u32>,
    /// The number of these links of each node.
    ways: Vec<u32>,
    order: Vec<NodeId>,
    /// The amount that is to reach each node, for the nodes in `layers`, by hops.
    amount: Vec<f64>,
    layers: Vec<Vec<NodeId>>,
    /// The time at which a message reaches each node.
    reached: Vec<f64>,
    /// The paths from the source to the ranks, on a machine with links of several kinds.
    paths: Option<Vec<Path>>,
}

impl<'t> Routes<'t> {
    /// Creates the routes of a topology, with none found yet.
    pub fn new(topology: &'t Fabric, routing: Routing) -> Self {
        let nodes = topology.nodes().len();
        Self {
            topology,
            routing,
            source: None,
            hops: vec![u32::MAX; nodes],
            last: vec![END; nodes],
            other: vec![END; topology.links().len()],
            ways: vec![0; nodes],
            order: Vec::new(),
            amount: vec![0.0; nodes],
            layers: Vec::new(),
            reached: vec![0.0; nodes],
            paths: topology.has_kinds().then(Vec::new),
        }
    }

    /// Calls `each` with the links from `source` to `to`, the last first, and the share of the data on each: more
    /// than 1 where a link has more load for the data, as PCI at the host bridge of an Intel CPU. Does not call it if
    /// there is no path.
    pub fn way(&mut self, source: NodeId, to: NodeId, mut each: impl FnMut(usize, f64)) {
        self.start_at(source);
        if let Some(paths) = &self.paths {
            return along(self.topology, &paths[to.index()], 1.0, &mut each);
        }
        self.add(to, 1.0);
        let chosen = (self.routing == Routing::DModK).then_some(to.0);
        self.walk(chosen, each);
    }

    /// Calls `each` with the links from `source` to many nodes at once, and the amount on each: data goes in equal
    /// parts along all shortest paths.
    pub fn spread(
        &mut self,
        source: NodeId,
        amounts: impl IntoIterator<Item = (NodeId, f64)>,
        mut each: impl FnMut(usize, f64),
    ) {
        self.start_at(source);
        for (to, amount) in amounts {
            match &self.paths {
                Some(paths) => along(self.topology, &paths[to.index()], amount, &mut each),
                None => self.add(to, amount),
            }
        }
        self.walk(None, each);
    }

    /// Returns the time of a message on the slowest of the paths that [`Self::way`] gave, where `of` is the time of a
    /// link.
    pub fn latency(&mut self, way: &[(u32, f64)], of: impl Fn(usize) -> f64) -> f64 {
        let links = self.topology.links();
        for &(link, _) in way.iter().rev() {
            let (from, to) = (links[link as usize].from.index(), links[link as usize].to.index());
            self.reached[to] = self.reached[to].max(self.reached[from] + of(link as usize));
        }
        let last =
            way.first().map_or(0.0, |(link, _)| self.reached[links[*link as usize].to.index()]);
        for &(link, _) in way {
            self.reached[links[link as usize].to.index()] = 0.0;
        }
        last
    }

    /// Returns the numbers of shortest paths from `source` among which data to one node has a choice, and the nodes that
    /// are chosen; `None` if, at some node, these do not all follow one node, and so are not in the order of its links.
    pub fn choices(&mut self, source: NodeId) -> Option<(Vec<u32>, Vec<NodeId>)> {
        self.start_at(source);
        let (mut numbers, mut chosen) = (Vec::new(), Vec::new());
        let links = self.topology.links();
        for node in self.order.iter().filter(|node| **node != source) {
            let ways = self.ways[node.index()];
            if ways == 1 {
                continue;
            }
            let mut follows = None;
            let mut link = self.last[node.index()];
            while link != END {
                let via = links[link as usize].from;
                let before = self.last[via.index()];
                if before == END || self.ways[via.index()] != 1 {
                    return None;
                }
                let before = links[before as usize].from;
                if *follows.get_or_insert(before) != before {
                    return None;
                }
                chosen.push(via);
                link = self.other[link as usize];
            }
            numbers.push(ways);
        }
        numbers.sort_unstable();
        numbers.dedup();
        chosen.sort_unstable();
        chosen.dedup();
        Some((numbers, chosen))
    }

    /// Finds the paths from `source`, unless they were found last.
    fn start_at(&mut self, source: NodeId) {
        if self.source.replace(source) == Some(source) {
            return;
        }
        if let Some(paths) = &mut self.paths {
            *paths = paths::to_ranks(self.topology, source);
            return;
        }
        self.hops.fill(u32::MAX);
        self.last.fill(END);
        self.hops[source.index()] = 0;
        self.order.clear();
        self.order.push(source);
        let mut next = 0;
        while let Some(&node) = self.order.get(next) {
            next += 1;
            // Ranks do not forward data of other ranks.
            if node != source && self.topology.is_rank(node) {
                continue;
            }
            let hops = self.hops[node.index()] + 1;
            let first = self.topology.first[node.index()];
            for (link, to) in (first..).zip(self.topology.out(node).iter().map(|l| l.to)) {
                let to = to.index();
                if self.hops[to] == u32::MAX {
                    self.hops[to] = hops;
                    self.ways[to] = 0;
                    self.order.push(NodeId(to as u32));
                }
                if self.hops[to] == hops {
                    self.other[link as usize] = self.last[to];
                    self.last[to] = link;
                    self.ways[to] += 1;
                }
            }
        }
    }

    fn add(&mut self, to: NodeId, amount: f64) {
        let hops = self.hops[to.index()] as usize;
        if hops == 0 || hops == u32::MAX as usize || amount == 0.0 {
            return;
        }
        if self.layers.len() <= hops {
            self.layers.resize_with(hops + 1, Vec::new);
        }
        let known = &mut self.amount[to.index()];
        if *known == 0.0 {
            self.layers[hops].push(to);
        }
        *known += amount;
    }

    /// Follows the added amounts back to the source: over the path `chosen` modulo their number, or over all paths.
    fn walk(&mut self, chosen: Option<u32>, mut each: impl FnMut(usize, f64)) {
        for hops in (1..self.layers.len()).rev() {
            let mut layer = std::mem::take(&mut self.layers[hops]);
            for node in layer.drain(..) {
                let amount = std::mem::take(&mut self.amount[node.index()]);
                let ways = self.ways[node.index()];
                // The list has the last path first.
                let chosen = chosen.map(|number| ways - 1 - number % ways);
                let share = if chosen.is_some() { amount } else { amount / f64::from(ways) };
                let mut link = self.last[node.index()];
                for at in 0..ways {
                    if chosen.is_none_or(|chosen| chosen == at) {
                        each(link as usize, share);
                        self.add(self.topology.links()[link as usize].from, share);
                    }
                    link = self.other[link as usize];
                }
            }
            self.layers[hops] = layer;
        }
    }
}

/// Calls `each` with the links of a path, the last first, and the part of their capacity that `amount` uses.
fn along(topology: &Fabric, path: &Path, amount: f64, each: &mut impl FnMut(usize, f64)) {
    for index in path.links.iter().rev() {
        let load = path.load(topology, &topology.links()[*index as usize]);
        each(*index as usize, amount * load.num() as f64 / load.den() as f64);
    }
}
