//! A box with a root: a leaf switch above its ranks, or a CPU above its PCI switches, cards and ports.

use std::collections::VecDeque;

use super::plane::{PITCH, PlanePoint, ROW, half};
use roundelay_topology::{Fabric, Link, NodeId, NodeKind};

/// The most leaves of a node in one row.
const ABREAST: usize = 16;
/// The gap between adjacent nodes.
const GAP: f64 = 10.0;
/// The gap between adjacent nodes if cables between ranks must avoid other nodes.
const WIDE_GAP: f64 = 34.0;

/// The height of a node above a row of ranks as a share of the row's width, such that its links avoid other ranks.
const SLOPE: f64 = 0.26;

/// The nodes of a box, as a tree from its root.
pub(super) struct DrawnTree {
    pub(super) root: NodeId,
    /// The nodes in the order in which they were reached, the root first.
    found: Vec<Member>,
}

struct Member {
    node: NodeId,
    depth: usize,
    children: Vec<usize>,
}

impl DrawnTree {
    /// Returns the tree of a box; `None` if no CPU or switch among `nodes` reaches all nodes.
    pub(super) fn new(topology: &Fabric, nodes: &[NodeId]) -> Option<Self> {
        let kind = |n: &&NodeId| topology.nodes()[n.index()].kind;
        let cpu = nodes.iter().find(|n| kind(n) == NodeKind::Cpu);
        let root = *cpu.or_else(|| nodes.iter().find(|n| kind(n) != NodeKind::Rank))?;
        let mut open: Vec<bool> = vec![false; topology.nodes().len()];
        for node in nodes {
            open[node.index()] = true;
        }
        open[root.index()] = false;
        let mut found = vec![Member { node: root, depth: 0, children: Vec::new() }];
        let mut queue = VecDeque::from([0]);
        while let Some(at) = queue.pop_front() {
            let (node, depth) = (found[at].node, found[at].depth + 1);
            // Links of ranks are not followed: a card is a child of its switch, not of a card that it is joined to.
            let from_rank = topology.is_rank(node);
            for link in topology.out(node).iter().filter(|_| !from_rank) {
                if std::mem::replace(&mut open[link.to.index()], false) {
                    let child = found.len();
                    found.push(Member { node: link.to, depth, children: Vec::new() });
                    found[at].children.push(child);
                    queue.push_back(child);
                }
            }
        }
        (found.len() == nodes.len()).then_some(Self { root, found })
    }

    /// Returns the width of the longest row of ranks below one node.
    fn widest(&self, topology: &Fabric) -> f64 {
        let ranks = |m: &Member| {
            let rank = |c: &&usize| topology.is_rank(self.found[**c].node);
            m.children.iter().filter(rank).count().min(ABREAST)
        };
        PITCH * self.found.iter().map(ranks).max().unwrap_or(0) as f64
    }

    /// Returns the places of the nodes, with the root at the top.
    pub(super) fn places(&self, topology: &Fabric) -> Vec<(NodeId, PlanePoint)> {
        let deepest = self.found.iter().map(|m| m.depth).max().unwrap_or(0);
        let half = |at: usize| half(topology, self.found[at].node);
        let cable = |l: &Link| topology.is_rank(l.from) && topology.is_rank(l.to);
        let gap = if topology.links().iter().any(cable) { WIDE_GAP } else { GAP };
        let step = ROW.max(SLOPE * self.widest(topology));
        let mut extents: Vec<Extent> = (0..self.found.len()).map(|_| Extent::default()).collect();
        // Children have higher positions than their parents.
        for at in (0..self.found.len()).rev() {
            let Member { depth, children, .. } = &self.found[at];
            let row = if children.is_empty() { deepest } else { *depth };
            let mut extent =
                Extent { width: half(at).x * 2.0, y: row as f64 * step, ..Extent::default() };
            let leaves = children.iter().all(|c| self.found[*c].children.is_empty());
            let rows = if leaves { children.len().div_ceil(ABREAST).max(1) } else { 1 };
            for (r, row) in children.chunks(children.len().div_ceil(rows).max(1)).enumerate() {
                let mut x = if r % 2 == 1 { PITCH / 2.0 } else { 0.0 };
                for child in row {
                    extents[*child].y += r as f64 * PITCH;
                    extent.children.push((*child, x + extents[*child].width / 2.0));
                    x += extents[*child].width + gap;
                }
                extent.below = extent.below.max(x - gap);
            }
            extent.width = extent.width.max(extent.below);
            extents[at] = extent;
        }
        let mut x = vec![extents[0].width / 2.0; self.found.len()];
        for at in 0..self.found.len() {
            let left = x[at] - extents[at].below / 2.0;
            for (child, by) in &extents[at].children {
                x[*child] = left + by;
            }
        }
        let at = |i: usize| (self.found[i].node, PlanePoint::new(x[i], extents[i].y));
        (0..self.found.len()).map(at).collect()
    }
}

/// The room that a node takes with all its descendants.
#[derive(Default)]
struct Extent {
    width: f64,
    /// The width of all children together.
    below: f64,
    y: f64,
    /// The children, each with the distance of its middle from the left end of their row.
    children: Vec<(usize, f64)>,
}
