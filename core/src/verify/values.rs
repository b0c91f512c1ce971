//! What a cell holds: an expression over inputs, each distinct one once, with a fingerprint of the
//! multiset of contributions in it.
//!
//! Nearly always the contributions in a value are of one input cell, so that cell is kept beside the
//! expression, and cells of which the same becomes share it.
//!
//! The fingerprint is the sum of 96-bit weights of ranks, and stops at the top instead of wrapping: modulo a
//! power of two, doubling a contribution often enough would make it vanish. A wrong multiset passes with
//! probability about 2^-96. What mixes cells is at the top: no result does.

use std::collections::BTreeMap;

use super::reduction::Signatures;
use crate::ids::{OpId, RankId};

/// An expression of [`Values`] over one cell of inputs; over others as well where cells are mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ValueId {
    pub(crate) expr: u32,
    pub(crate) cell: u32,
}

impl ValueId {
    /// Nothing was written here.
    pub(crate) const NONE: Self = Self { expr: u32::MAX, cell: 0 };
    /// Computed from something that was reported already.
    pub(crate) const POISON: Self = Self { expr: u32::MAX - 1, cell: 0 };

    pub(crate) fn is_value(self) -> bool {
        self.expr < Self::POISON.expr
    }
}

/// `left op right`, and the op that computed it first.
#[derive(Clone, Copy)]
struct Node {
    left: u32,
    right: u32,
    /// From the cell of `left` to that of `right`.
    skew: u32,
    op: OpId,
    depth: u32,
    /// A number of 128 bits, without the gap that one would leave.
    fingerprint: [u8; 16],
}

/// The operands of a node, and its skew.
type Key = ((u32, u32), u32);

impl Node {
    fn key(&self) -> Key {
        ((self.left, self.right), self.skew)
    }
}

fn hash(((left, right), skew): Key) -> u64 {
    let product = (u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (product ^ product >> 29 ^ u64::from(skew)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 32
}

/// Folds remembered beside the table of all.
const RECENT: usize = 1 << 10;

/// Room made in advance for folds; more is made as they come.
const MOST_ROOM: usize = 1 << 21;

/// Where a contribution comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Leaf {
    pub(crate) rank: RankId,
    pub(crate) cell: u32,
}

pub(crate) struct Values {
    /// The first expressions: each rank's input.
    leaves: u32,
    nodes: Vec<Node>,
    /// Where each node is, by hash: the next free place after that; 0 is free. Never more than half full.
    known: Vec<u32>,
    /// What was folded lately, by hash: the next cell and the next mode fold the same again.
    recent: Vec<(Key, u32)>,
}

impl Values {
    /// Leaves for `nranks` inputs, and room for so many folds.
    pub(crate) fn new(nranks: u32, folds: usize) -> Self {
        let folds = folds.clamp(RECENT, MOST_ROOM);
        Self {
            leaves: nranks,
            nodes: Vec::with_capacity(folds),
            known: vec![0; 2 * folds.next_power_of_two()],
            recent: vec![(((u32::MAX, u32::MAX), 0), 0); RECENT],
        }
    }

    pub(crate) fn leaf(leaf: Leaf) -> ValueId {
        ValueId { expr: leaf.rank.0, cell: leaf.cell }
    }

    fn as_leaf(&self, value: ValueId) -> Option<Leaf> {
        (value.expr < self.leaves).then_some(Leaf { rank: RankId(value.expr), cell: value.cell })
    }

    fn node(&self, expr: u32) -> &Node {
        &self.nodes[(expr - self.leaves) as usize]
    }

    /// The operands of an expression over one cell, and the op that computed it first; `None` for a leaf.
    pub(crate) fn parts(&self, expr: u32) -> Option<([u32; 2], OpId)> {
        let node = expr.checked_sub(self.leaves).map(|at| &self.nodes[at as usize])?;
        Some(([node.left, node.right], node.op))
    }

    /// Whether an expression takes all its inputs from one cell.
    pub(crate) fn is_straight(&self, expr: u32) -> bool {
        expr < self.leaves || self.node(expr).fingerprint != u128::MAX.to_ne_bytes()
    }

    /// What a value was folded from.
    fn operands(&self, value: ValueId) -> [ValueId; 2] {
        let Node { left, right, skew, .. } = *self.node(value.expr);
        let cell = value.cell;
        [ValueId { expr: left, cell }, ValueId { expr: right, cell: cell.wrapping_add(skew) }]
    }

    /// `left op right`, both values.
    pub(crate) fn fold(&mut self, left: ValueId, right: ValueId, op: OpId) -> ValueId {
        let skew = right.cell.wrapping_sub(left.cell);
        let key = ((left.expr, right.expr), skew);
        let slot = hash(key) as usize % RECENT;
        if self.recent[slot].0 == key {
            return ValueId { expr: self.recent[slot].1, cell: left.cell };
        }
        let place = self.place(key);
        let expr = if self.known[place] == 0 {
            let sum = self.fingerprint(left).saturating_add(self.fingerprint(right));
            let fingerprint = if skew == 0 { sum } else { u128::MAX };
            let depth = 1 + self.depth(left).max(self.depth(right));
            let fingerprint = fingerprint.to_ne_bytes();
            let operands = (left.expr, right.expr);
            self.nodes.push(Node {
                left: operands.0,
                right: operands.1,
                skew,
                op,
                depth,
                fingerprint,
            });
            self.known[place] = self.nodes.len() as u32;
            if 2 * self.nodes.len() > self.known.len() {
                self.grow();
            }
            self.leaves + self.nodes.len() as u32 - 1
        } else {
            self.leaves + self.known[place] - 1
        };
        self.recent[slot] = (key, expr);
        ValueId { expr, cell: left.cell }
    }

    /// Where in `known` the node of these operands is, or would be.
    fn place(&self, key: Key) -> usize {
        let mask = self.known.len() - 1;
        let mut place = hash(key) as usize & mask;
        while self.known[place] != 0 && self.nodes[self.known[place] as usize - 1].key() != key {
            place = (place + 1) & mask;
        }
        place
    }

    fn grow(&mut self) {
        self.known = vec![0; 2 * self.known.len()];
        for node in 0..self.nodes.len() {
            let place = self.place(self.nodes[node].key());
            self.known[place] = node as u32 + 1;
        }
    }

    /// Of the ranks in it; the cell is known besides.
    pub(crate) fn fingerprint(&self, value: ValueId) -> u128 {
        match self.as_leaf(value) {
            Some(leaf) => weight(leaf.rank),
            None => u128::from_ne_bytes(self.node(value.expr).fingerprint),
        }
    }

    /// The longest chain of reduces in it.
    pub(crate) fn depth(&self, value: ValueId) -> u32 {
        if value.expr < self.leaves { 0 } else { self.node(value.expr).depth }
    }

    /// How often each contribution is in it.
    pub(crate) fn contributions(&self, value: ValueId) -> BTreeMap<Leaf, u64> {
        let mut open = BTreeMap::from([(value, 1_u64)]);
        let mut leaves = BTreeMap::new();
        // A node's operands are older than the node: the largest id has nothing above it left.
        while let Some((value, times)) = open.pop_last() {
            if let Some(leaf) = self.as_leaf(value) {
                leaves.insert(leaf, times);
                continue;
            }
            for operand in self.operands(value) {
                let count = open.entry(operand).or_insert(0);
                *count = count.saturating_add(times);
            }
        }
        leaves
    }

    /// Hashes of all expressions' trees.
    pub(crate) fn signatures(&self) -> Signatures {
        let mut exact: Vec<u64> = (0..self.leaves).map(|rank| mix(u64::from(rank))).collect();
        let mut commuted = exact.clone();
        for Node { left, right, .. } in &self.nodes {
            let (l, r) = (*left as usize, *right as usize);
            exact.push(mix(mix(exact[l]).wrapping_add(exact[r])));
            let (a, b) = (commuted[l], commuted[r]);
            commuted.push(mix(mix(a.min(b)).wrapping_add(a.max(b))));
        }
        Signatures { exact, commuted }
    }

    /// The order of reduction, such as `((0 1) 2)`; long ones are cut.
    pub(crate) fn tree(&self, value: ValueId) -> String {
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
                        let [left, right] = self.operands(value);
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
    pub(crate) fn first_double(&self, value: ValueId) -> Option<OpId> {
        let mut open = vec![value];
        let mut oldest: Option<ValueId> = None;
        let doubled = |v| self.contributions(v).values().any(|times| *times > 1);
        while let Some(value) = open.pop() {
            if value.expr < self.leaves || oldest.is_some_and(|o| value >= o) || !doubled(value) {
                continue;
            }
            oldest = Some(value);
            open.extend(self.operands(value));
        }
        oldest.map(|value| self.node(value.expr).op)
    }
}

/// The weight of a rank's contribution: two rounds of splitmix64. There are fewer than 2^31 ranks, so all of
/// them once stay below the top.
pub(crate) fn weight(rank: RankId) -> u128 {
    let seed = u64::from(rank.0);
    let high = mix(seed ^ 0x6A09_E667_F3BC_C908);
    (u128::from(high) << 64 | u128::from(mix(seed.wrapping_add(high)))) >> 32
}

fn mix(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
