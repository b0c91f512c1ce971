//! What a cell holds: an expression over inputs, each distinct one once, with a fingerprint of the
//! multiset of contributions in it.
//!
//! The fingerprint is the sum of 96-bit weights of (rank, input cell), and stops at the top instead of
//! wrapping: modulo a power of two, doubling a contribution often enough would make it vanish. A wrong
//! multiset passes with probability about 2^-96.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;

use super::reduction::Signatures;
use crate::ids::{OpId, RankId};
use crate::schedule::tables::Mix;

/// An index into [`Values`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ValueId(pub(super) u32);

impl ValueId {
    /// Nothing was written here.
    pub(super) const NONE: Self = Self(u32::MAX);
    /// Computed from something that was reported already.
    pub(super) const POISON: Self = Self(u32::MAX - 1);

    pub(super) fn is_value(self) -> bool {
        self < Self::POISON
    }
}

/// `left op right`, and the op that computed it first.
#[derive(Clone, Copy)]
struct Node {
    left: ValueId,
    right: ValueId,
    op: OpId,
    depth: u32,
    fingerprint: u128,
}

/// Where a contribution comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Leaf {
    pub(super) rank: RankId,
    pub(super) cell: u32,
}

pub(super) struct Values {
    /// Cells of every rank's input: leaf (rank, cell) is value `rank * cells + cell`.
    cells: u32,
    leaves: u32,
    nodes: Vec<Node>,
    known: HashMap<u64, u32, BuildHasherDefault<Mix>>,
}

impl Values {
    /// Leaves for `nranks` inputs of `cells` cells.
    pub(super) fn new(nranks: u32, cells: u32) -> Self {
        let leaves = nranks * cells;
        Self { cells, leaves, nodes: Vec::new(), known: HashMap::default() }
    }

    pub(super) fn leaf(&self, leaf: Leaf) -> ValueId {
        ValueId(leaf.rank.0 * self.cells + leaf.cell)
    }

    fn as_leaf(&self, value: ValueId) -> Option<Leaf> {
        (value.0 < self.leaves)
            .then(|| Leaf { rank: RankId(value.0 / self.cells), cell: value.0 % self.cells })
    }

    fn node(&self, value: ValueId) -> &Node {
        &self.nodes[(value.0 - self.leaves) as usize]
    }

    /// `left op right`, both values.
    pub(super) fn fold(&mut self, left: ValueId, right: ValueId, op: OpId) -> ValueId {
        let next = self.leaves + self.nodes.len() as u32;
        let key = u64::from(left.0) << 32 | u64::from(right.0);
        let id = *self.known.entry(key).or_insert(next);
        if id == next {
            let fingerprint = self.fingerprint(left).saturating_add(self.fingerprint(right));
            let depth = 1 + self.depth(left).max(self.depth(right));
            self.nodes.push(Node { left, right, op, depth, fingerprint });
        }
        ValueId(id)
    }

    pub(super) fn fingerprint(&self, value: ValueId) -> u128 {
        match self.as_leaf(value) {
            Some(leaf) => weight(leaf),
            None => self.node(value).fingerprint,
        }
    }

    /// The longest chain of reduces in it.
    pub(super) fn depth(&self, value: ValueId) -> u32 {
        if value.0 < self.leaves { 0 } else { self.node(value).depth }
    }

    /// How often each contribution is in it.
    pub(super) fn contributions(&self, value: ValueId) -> BTreeMap<Leaf, u64> {
        let mut open = BTreeMap::from([(value, 1_u64)]);
        let mut leaves = BTreeMap::new();
        // A node's operands are older than the node: the largest id has nothing above it left.
        while let Some((value, times)) = open.pop_last() {
            if let Some(leaf) = self.as_leaf(value) {
                leaves.insert(leaf, times);
                continue;
            }
            let Node { left, right, .. } = self.node(value);
            for operand in [left, right] {
                let count = open.entry(*operand).or_insert(0);
                *count = count.saturating_add(times);
            }
        }
        leaves
    }

    /// Hashes of all values' trees.
    pub(super) fn signatures(&self) -> Signatures {
        let leaf = |value| mix(u64::from(value / self.cells.max(1)));
        let mut exact: Vec<u64> = (0..self.leaves).map(leaf).collect();
        let mut commuted = exact.clone();
        for Node { left, right, .. } in &self.nodes {
            let (l, r) = (left.0 as usize, right.0 as usize);
            exact.push(mix(mix(exact[l]).wrapping_add(exact[r])));
            let (a, b) = (commuted[l], commuted[r]);
            commuted.push(mix(mix(a.min(b)).wrapping_add(a.max(b))));
        }
        Signatures { exact, commuted }
    }

    /// The order of reduction, such as `((0 1) 2)`; long ones are cut.
    pub(super) fn tree(&self, value: ValueId) -> String {
        /// Characters of an order.
        const LONGEST: usize = 72;
        enum Part {
            Value(ValueId),
            Text(&'static str),
        }
        let mut text = String::new();
        let mut open = vec![Part::Value(value)];
        while let Some(part) = open.pop() {
            if text.len() > LONGEST {
                text.push_str(" …");
                break;
            }
            match part {
                Part::Text(part) => text.push_str(part),
                Part::Value(value) => match self.as_leaf(value) {
                    Some(leaf) => text.push_str(&leaf.rank.to_string()),
                    None => {
                        let Node { left, right, .. } = *self.node(value);
                        text.push('(');
                        let space = Part::Text(" ");
                        open.extend([
                            Part::Text(")"),
                            Part::Value(right),
                            space,
                            Part::Value(left),
                        ]);
                    }
                },
            }
        }
        text
    }

    /// The op that first put a contribution in twice.
    pub(super) fn first_double(&self, value: ValueId) -> Option<OpId> {
        let mut open = vec![value];
        let mut oldest: Option<ValueId> = None;
        let doubled = |v| self.contributions(v).values().any(|times| *times > 1);
        while let Some(value) = open.pop() {
            if value.0 < self.leaves || oldest.is_some_and(|o| value >= o) || !doubled(value) {
                continue;
            }
            oldest = Some(value);
            let Node { left, right, .. } = self.node(value);
            open.extend([*left, *right]);
        }
        oldest.map(|value| self.node(value).op)
    }
}

/// The weight of a contribution: two rounds of splitmix64 over (rank, cell). There are fewer than 2^31 leaves,
/// so all of them once stay below the top.
pub(super) fn weight(leaf: Leaf) -> u128 {
    let seed = u64::from(leaf.rank.0) << 32 | u64::from(leaf.cell);
    let high = mix(seed ^ 0x6A09_E667_F3BC_C908);
    (u128::from(high) << 64 | u128::from(mix(seed.wrapping_add(high)))) >> 32
}

fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
