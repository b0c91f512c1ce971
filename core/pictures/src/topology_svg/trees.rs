//! The lines of packed trees: each edge follows the cables of its ways, beside the lines of other trees.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::router::Router;
use super::ways::CableWay;
use roundelay_core::collective::Collective;
use roundelay_core::ids::RankId;
use roundelay_core::rational::gcd;
use roundelay_synthesis::packing::{Packing, WeightedTree};
use roundelay_topology::{Fabric, NodeId};

/// The number of colors of trees in the style.
const COLORS: usize = 8;
/// The most trees that are drawn: with solid lines, then with dashed ones.
const MOST: usize = 2 * COLORS;
/// The distance between lines along one cable.
const GAP: f64 = 4.5;
/// The most room for all lines along one cable.
const ROOM: f64 = 22.0;
/// The place of a line's arrow head as a share of the line, and the distance between those of adjacent lines.
const HEAD: f64 = 0.6;
const STAGGER: f64 = 0.05;

/// Trees that are drawn over a topology, each in its color.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TreeMarks {
    /// The trees, the heaviest first.
    trees: Vec<WeightedTree>,
    /// Whether data goes from each rank to its parent.
    up: bool,
    /// The parts of the data that the weights count.
    parts: u64,
    /// A line below the name.
    caption: String,
}

impl TreeMarks {
    /// Returns marks for the trees of a packing. Where each rank has trees of its own, they are those of `root`; of an
    /// AllReduce with few trees, they are all trees.
    pub fn from_packing(packing: &Packing, collective: Collective, root: RankId) -> Self {
        let all = &packing.trees;
        let of_root = || all.iter().filter(|tree| tree.tree.root == root);
        let whole = collective == Collective::AllReduce
            && (all.len() <= COLORS || of_root().next().is_none());
        let mut trees: Vec<WeightedTree> =
            if whole { all.clone() } else { of_root().cloned().collect() };
        trees.sort_by_key(|tree| std::cmp::Reverse(tree.weight));
        let common = trees.iter().fold(0, |common, tree| gcd(common, tree.weight)).max(1);
        let parts = trees.iter().map(|tree| tree.weight / common).sum();
        for tree in &mut trees {
            tree.weight /= common;
            let routes = tree.routes.iter_mut().flatten();
            routes.for_each(|route| route.weight /= common);
        }
        let many = match trees.len() {
            1 => "one tree".to_owned(),
            many => format!("{many} trees"),
        };
        let whose = if whole { String::new() } else { format!(" of rank {root}") };
        let mut caption = format!("{many}{whose} for {collective}");
        if trees.len() > MOST {
            let _ = write!(caption, "; the {MOST} heaviest are drawn");
            trees.truncate(MOST);
        }
        let up = matches!(collective, Collective::Reduce | Collective::ReduceScatter);
        Self { trees, up, parts, caption }
    }

    /// Returns the trees whose nodes are all in a topology.
    pub(super) fn within(&self, topology: &Fabric) -> Self {
        let known = |node: NodeId| node.index() < topology.nodes().len();
        let fits = |tree: &&WeightedTree| {
            let ranks = tree.tree.parent.iter().flatten().chain([&tree.tree.root]);
            tree.tree.parent.len() <= topology.nranks() as usize
                && ranks.copied().all(|rank| rank.0 < topology.nranks())
                && tree.routes.iter().flatten().all(|way| way.through.iter().copied().all(known))
        };
        let trees = self.trees.iter().filter(fits).cloned().collect();
        Self { trees, ..self.clone() }
    }

    /// Whether there are trees to draw.
    pub(super) fn any(&self) -> bool {
        !self.trees.is_empty()
    }

    /// Returns the line below the name, if there are trees.
    pub(super) fn caption(&self) -> Option<&String> {
        self.any().then_some(&self.caption)
    }

    /// Returns the roots, each once.
    pub(super) fn roots(&self) -> BTreeSet<RankId> {
        self.trees.iter().map(|tree| tree.tree.root).collect()
    }

    /// Returns the class of each tree with its words for the legend.
    pub(super) fn entries(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let several = self.roots().len() > 1;
        self.trees.iter().enumerate().map(move |(number, tree)| {
            let root = if several { format!(", root {}", tree.tree.root) } else { String::new() };
            let words = match self.parts {
                1 => format!("tree {}{root}: all data", number + 1),
                parts => format!("tree {}{root}: {} of {parts} parts", number + 1, tree.weight),
            };
            (class(number), words)
        })
    }

    /// Returns the lines of all trees. A tree has one line along a cable in each direction that it uses.
    pub(super) fn lines(&self, topology: &Fabric, router: &Router<'_>) -> Vec<TreeLine> {
        let mut lanes: BTreeMap<(NodeId, NodeId), BTreeMap<(bool, usize), u64>> = BTreeMap::new();
        for (number, tree) in self.trees.iter().enumerate() {
            for (rank, parent) in (0..).map(RankId).zip(&tree.tree.parent) {
                let Some(parent) = *parent else { continue };
                let (from, to) = if self.up { (rank, parent) } else { (parent, rank) };
                for route in &tree.routes[rank.index()] {
                    let mut at = NodeId::from(from);
                    for next in route.through.iter().copied().chain([to.into()]) {
                        let cable = lanes.entry((at.min(next), at.max(next))).or_default();
                        *cable.entry((next < at, number)).or_default() += route.weight;
                        at = next;
                    }
                }
            }
        }
        let name = |node: NodeId| &topology.nodes()[node.index()].name;
        let mut lines = Vec::new();
        for ((low, high), lanes) in lanes {
            let way = router.way(low, high, 0);
            let middle = (lanes.len() as f64 - 1.0) / 2.0;
            let gap = if middle > 0.0 { GAP.min(ROOM / (2.0 * middle)) } else { 0.0 };
            for (at, ((back, number), weight)) in lanes.into_iter().enumerate() {
                let aside = at as f64 - middle;
                let way = way.beside(gap * aside);
                let (from, to, way) = if back { (high, low, way.back()) } else { (low, high, way) };
                let parts = if weight == 1 { "part" } else { "parts" };
                let title = format!(
                    "tree {}: {} to {}, {weight} {parts}",
                    number + 1,
                    name(from),
                    name(to)
                );
                let head = HEAD + STAGGER * aside.clamp(-3.0, 3.0);
                lines.push(TreeLine { class: class(number), way, title, head });
            }
        }
        lines
    }
}

/// The line of a tree along a cable, in the direction of the data.
pub(super) struct TreeLine {
    pub(super) class: String,
    pub(super) way: CableWay,
    pub(super) title: String,
    /// The place of the arrow head as a share of the line.
    pub(super) head: f64,
}

/// Returns the class of a tree in the style.
fn class(number: usize) -> String {
    let dashed = if number < COLORS { "" } else { " dashed" };
    format!("tree tree{}{dashed}", number % COLORS)
}
