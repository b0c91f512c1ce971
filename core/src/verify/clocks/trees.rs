//! The knowledge about streams, as trees that share their common parts.
//!
//! A tree forks where the numbers of its streams differ, at the highest differing bit first, and nowhere else (a
//! Patricia tree). No tree ever changes: the union of two trees takes over the parts that only one tree has, or that
//! both share. So to add a small tree to a large tree takes few steps.

use crate::ids::StreamId;

/// The numbers of events that are known of some streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClockTree(u32);

impl ClockTree {
    /// The tree of no known streams.
    pub(super) const EMPTY: Self = Self(0);
}

/// A fork, or the number of known events of one stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClockNode {
    /// The stream; for a fork the bits that its streams have in common, the bit in which they differ, and zeros.
    key: u32,
    /// The node of the streams without that bit; for a stream the number of its known events.
    low: u32,
    /// The node of the streams with that bit; 0 for a stream.
    high: u32,
}

impl ClockNode {
    fn is_leaf(self) -> bool {
        self.high == 0
    }

    /// Returns the bit at which a node forks; 0 for a stream.
    fn bit(self) -> u32 {
        if self.is_leaf() { 0 } else { self.key & self.key.wrapping_neg() }
    }

    /// Whether streams, or a fork of streams, below a lower bit belong below this fork.
    fn holds(self, key: u32) -> bool {
        (self.key ^ key) & !below(self.bit()) == 0
    }
}

/// Returns a bit and all lower bits.
fn below(bit: u32) -> u32 {
    bit | bit.wrapping_sub(1)
}

/// The nodes of all trees.
pub(super) struct ClockTrees {
    /// All nodes; the first stands for no node.
    nodes: Vec<ClockNode>,
    /// The number of nodes that were visited up to now, to join trees.
    steps: usize,
}

impl ClockTrees {
    pub(super) fn new() -> Self {
        Self { nodes: vec![ClockNode { key: 0, low: 0, high: 0 }], steps: 0 }
    }

    /// Returns the number of nodes that were visited up to now to make trees. There are at most twice as many nodes.
    pub(super) fn steps(&self) -> usize {
        self.steps
    }

    fn push(&mut self, node: ClockNode) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    /// Returns the number of events of a stream that are known.
    pub(super) fn known(&self, tree: ClockTree, of: StreamId) -> u32 {
        let mut at = tree.0;
        while at != 0 {
            let node = self.nodes[at as usize];
            if node.is_leaf() {
                return if node.key == of.0 { node.low } else { 0 };
            }
            at = if of.0 & node.bit() == 0 { node.low } else { node.high };
        }
        0
    }

    /// Whether `is` holds for any stream of the tree.
    pub(super) fn any(&self, tree: ClockTree, is: impl Fn(StreamId) -> bool) -> bool {
        let mut open = vec![tree.0];
        while let Some(at) = open.pop() {
            let node = self.nodes[at as usize];
            if !node.is_leaf() {
                open.extend([node.high, node.low]);
            } else if at != 0 && is(StreamId(node.key)) {
                return true;
            }
        }
        false
    }

    /// Returns the tree with at least `count` events of stream `of`.
    pub(super) fn with(&mut self, tree: ClockTree, of: StreamId, count: u32) -> ClockTree {
        if count <= self.known(tree, of) {
            return tree;
        }
        let leaf = self.push(ClockNode { key: of.0, low: count, high: 0 });
        ClockTree(self.join(tree.0, leaf))
    }

    /// Returns the union of the knowledge of two trees.
    pub(super) fn both(&mut self, a: ClockTree, b: ClockTree) -> ClockTree {
        ClockTree(self.join(a.0, b.0))
    }

    fn join(&mut self, a: u32, b: u32) -> u32 {
        if a == b || b == 0 {
            return a;
        }
        if a == 0 {
            return b;
        }
        self.steps += 1;
        let (left, right) = (self.nodes[a as usize], self.nodes[b as usize]);
        let (fork, other) = (left.bit(), right.bit());
        if fork == other && left.key == right.key {
            if fork == 0 {
                return if left.low >= right.low { a } else { b };
            }
            let low = self.join(left.low, right.low);
            let high = self.join(left.high, right.high);
            let made = ClockNode { low, high, ..left };
            return if made == left {
                a
            } else if made == right {
                b
            } else {
                self.push(made)
            };
        }
        if fork > other && left.holds(right.key) {
            return self.within(a, b, right.key);
        }
        if other > fork && right.holds(left.key) {
            return self.within(b, a, left.key);
        }
        let bit = 1 << (left.key ^ right.key).ilog2();
        let key = left.key & !below(bit) | bit;
        let (low, high) = if left.key & bit == 0 { (a, b) } else { (b, a) };
        self.push(ClockNode { key, low, high })
    }

    /// Joins a fork with a part that belongs below it.
    fn within(&mut self, fork: u32, part: u32, key: u32) -> u32 {
        let node = self.nodes[fork as usize];
        let made = if key & node.bit() == 0 {
            ClockNode { low: self.join(node.low, part), ..node }
        } else {
            ClockNode { high: self.join(node.high, part), ..node }
        };
        if made == node { fork } else { self.push(made) }
    }
}
