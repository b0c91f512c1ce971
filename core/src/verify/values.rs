//! The value of a cell: an expression over inputs. Each distinct expression is kept once.
//!
//! Nearly always all contributions in a value are of one input cell, so that cell is kept beside the expression, and
//! cells with equal computations share the expression.
//!
//! A fold rounds its result to the element type, or leaves it as the f32 in which it was computed: inside a move that
//! rounds once, and in scratch that keeps narrow floats as f32. The two are different values of narrow floats.
//!
//! A switch folds in an order that is open, and that may differ from op to op. Its sum is a chain of folds that belong to
//! this op alone: the sums of two such ops are never equal.
//!
//! Expressions are distinguished by their operands, and contributions are counted one by one: no decision rests on a
//! hash or a sum of weights, for which an author could look for two programs that agree. Each node keeps the number of
//! its contributions. The number is only a first test: an expression with as many contributions as there are ranks is
//! walked once, leaf by leaf, and the walk ends at the first leaf that it has seen before, so it takes at most twice as
//! many steps as there are ranks.

pub(super) mod orders;

use std::collections::BTreeMap;

use crate::ids::{OpId, RankId};

/// The value of a cell.
pub(crate) trait CellValue: Copy + PartialEq {
    /// The value of a cell before any write.
    const NONE: Self;
    /// A value that was computed from an error that was reported already.
    const POISON: Self;

    fn is_value(self) -> bool;

    /// The contribution of a rank.
    fn leaf(leaf: Leaf) -> Self;

    /// The cell of the inputs that the value is of.
    fn cell(self) -> u32;
}

/// The manner in which a move folds two values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FoldWay {
    /// Whether the result is rounded to the element type.
    pub(crate) rounds: bool,
    /// Whether the fold is a part of a sum of its op whose order is open.
    pub(crate) open: bool,
}

impl FoldWay {
    /// A fold in the order that is written.
    pub(crate) const fn in_order(rounds: bool) -> Self {
        Self { rounds, open: false }
    }
}

/// The expressions over inputs that values are.
pub(crate) trait Expressions {
    type Value: CellValue;

    /// Folds two values to `left op right`; `None` where the two have no fold here.
    fn fold(
        &mut self,
        left: Self::Value,
        right: Self::Value,
        way: FoldWay,
        op: OpId,
    ) -> Option<Self::Value>;

    /// Rounds a value to the element type.
    fn rounded(&mut self, value: Self::Value, op: OpId) -> Self::Value;

    /// Whether a value is the contributions of all ranks to one cell, each once.
    fn is_complete(&mut self, value: Self::Value) -> bool;

    /// Returns the length of the longest chain of reduces in a value.
    fn depth(&self, value: Self::Value) -> u32;

    /// Calls `tell` with the value in the expressions of all ranks.
    fn write_out<T>(&self, value: Self::Value, tell: impl FnOnce(ValueId, &Values) -> T) -> T;
}

/// An expression of [`Values`] over one cell of inputs; over several cells where they are mixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ValueId {
    pub(crate) expr: u32,
    pub(crate) cell: u32,
}

/// `left op right`, and the op that computed it first.
#[derive(Clone, Copy)]
struct ValueNode {
    left: u32,
    right: u32,
    /// The distance from the cell of `left` to that of `right`.
    skew: u32,
    /// Whether the result is rounded to the element type.
    rounds: bool,
    /// Whether the fold is a part of a sum of `op` whose order is open.
    open: bool,
    op: OpId,
    depth: u32,
    /// The most folds that round, from a leaf to this node.
    roundings: u32,
    /// The number of contributions, with repetitions; [`MIXED`] where they are of several cells.
    total: u32,
}

/// The total of an expression over several cells. No result has it.
const MIXED: u32 = 0;

/// The operands of a node, its skew, whether it rounds, and the op whose open order it is folded in.
type ExprKey = ((u32, u32), u32, bool, Option<OpId>);

impl ValueNode {
    fn key(&self) -> ExprKey {
        ((self.left, self.right), self.skew, self.rounds, self.open.then_some(self.op))
    }
}

fn hash(((left, right), skew, rounds, open): ExprKey) -> u64 {
    let product = (u64::from(left) << 32 | u64::from(right)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let open = open.map_or(0, |op| u64::from(op.0) + 1);
    (product ^ product >> 29 ^ u64::from(skew) ^ u64::from(rounds) << 32 ^ open << 33)
        .wrapping_mul(0xBF58_476D_1CE4_E5B9)
        >> 32
}

/// The number of folds remembered beside the table of all folds.
const RECENT: usize = 1 << 10;

/// The most folds for which memory is reserved; the tables grow as folds come.
const MOST_ROOM: usize = 1 << 21;

/// The source of a contribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Leaf {
    pub(crate) rank: RankId,
    pub(crate) cell: u32,
}

/// A contribution that is counted twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Double {
    /// The fold of two values that both have the contribution.
    pub(crate) op: OpId,
    /// The rank that made the contribution.
    pub(crate) rank: RankId,
    /// The op that brought the contribution first; `None` where it was there from the start.
    pub(crate) before: Option<OpId>,
}

pub(crate) struct Values {
    /// The first expressions: each rank's input.
    leaves: u32,
    nodes: Vec<ValueNode>,
    /// The position of each node, by hash: a taken entry means the next free one; 0 is free. At most half of it is
    /// full.
    known: Vec<u32>,
    /// The latest folds, by hash: the next cell and the next mode repeat them.
    recent: Vec<(ExprKey, u32)>,
    /// For each node that was counted: whether it has each rank once.
    counted: Vec<Option<bool>>,
    /// The last count that met each rank.
    met: Vec<u32>,
    /// The number of counts up to now.
    counts: u32,
}

impl CellValue for ValueId {
    const NONE: Self = Self { expr: u32::MAX, cell: 0 };
    const POISON: Self = Self { expr: u32::MAX - 1, cell: 0 };

    fn is_value(self) -> bool {
        self.expr < Self::POISON.expr
    }

    fn leaf(leaf: Leaf) -> Self {
        Values::leaf(leaf)
    }

    fn cell(self) -> u32 {
        self.cell
    }
}

impl Expressions for Values {
    type Value = ValueId;

    fn fold(&mut self, left: ValueId, right: ValueId, way: FoldWay, op: OpId) -> Option<ValueId> {
        Some(self.fold(left, right, way, op))
    }

    fn rounded(&mut self, value: ValueId, op: OpId) -> ValueId {
        if !self.is_unrounded(value) {
            return value;
        }
        let [left, right] = self.operands(value);
        let ValueNode { open, op: by, .. } = *self.node(value.expr);
        Self::fold(self, left, right, FoldWay { rounds: true, open }, if open { by } else { op })
    }

    fn is_complete(&mut self, ValueId { expr, .. }: ValueId) -> bool {
        // There are fewer than 2^31 ranks, so a saturated total is not equal to their number.
        if self.total(expr) != self.leaves {
            return false;
        }
        let at = expr as usize;
        if self.counted.len() <= at {
            self.counted.resize(self.leaves as usize + self.nodes.len(), None);
        }
        if let Some(known) = self.counted[at] {
            return known;
        }
        let once = self.each_once(expr);
        self.counted[at] = Some(once);
        once
    }

    fn depth(&self, value: ValueId) -> u32 {
        self.depth(value)
    }

    fn write_out<T>(&self, value: ValueId, tell: impl FnOnce(ValueId, &Values) -> T) -> T {
        tell(value, self)
    }
}

impl Values {
    /// Creates leaves for `nranks` inputs, and room for `folds` folds.
    pub(crate) fn new(nranks: u32, folds: usize) -> Self {
        let folds = folds.clamp(RECENT, MOST_ROOM);
        Self {
            leaves: nranks,
            nodes: Vec::with_capacity(folds),
            known: vec![0; 2 * folds.next_power_of_two()],
            recent: vec![(((u32::MAX, u32::MAX), 0, false, None), 0); RECENT],
            counted: Vec::new(),
            met: vec![0; nranks as usize],
            counts: 0,
        }
    }

    pub(crate) fn leaf(leaf: Leaf) -> ValueId {
        ValueId { expr: leaf.rank.0, cell: leaf.cell }
    }

    fn as_leaf(&self, value: ValueId) -> Option<Leaf> {
        (value.expr < self.leaves).then_some(Leaf { rank: RankId(value.expr), cell: value.cell })
    }

    fn node(&self, expr: u32) -> &ValueNode {
        &self.nodes[(expr - self.leaves) as usize]
    }

    /// Returns the operands of an expression over one cell, and the op that computed it first; `None` for a leaf.
    pub(crate) fn parts(&self, expr: u32) -> Option<([u32; 2], OpId)> {
        let node = expr.checked_sub(self.leaves).map(|at| &self.nodes[at as usize])?;
        Some(([node.left, node.right], node.op))
    }

    /// Whether an expression takes all its inputs from one cell.
    pub(crate) fn is_straight(&self, expr: u32) -> bool {
        self.total(expr) != MIXED
    }

    /// Returns the values that a value was folded from.
    fn operands(&self, value: ValueId) -> [ValueId; 2] {
        let ValueNode { left, right, skew, .. } = *self.node(value.expr);
        let cell = value.cell;
        [ValueId { expr: left, cell }, ValueId { expr: right, cell: cell.wrapping_add(skew) }]
    }

    /// Folds two values to `left op right`.
    pub(crate) fn fold(
        &mut self,
        left: ValueId,
        right: ValueId,
        FoldWay { rounds, open }: FoldWay,
        op: OpId,
    ) -> ValueId {
        let skew = right.cell.wrapping_sub(left.cell);
        let key = ((left.expr, right.expr), skew, rounds, open.then_some(op));
        let slot = hash(key) as usize % RECENT;
        if self.recent[slot].0 == key {
            return ValueId { expr: self.recent[slot].1, cell: left.cell };
        }
        let place = self.place(key);
        let expr = if self.known[place] == 0 {
            let totals = [self.total(left.expr), self.total(right.expr)];
            let straight = skew == 0 && !totals.contains(&MIXED);
            let total = if straight { totals[0].saturating_add(totals[1]) } else { MIXED };
            let depth = 1 + self.depth(left).max(self.depth(right));
            // A switch need not round to the nearest, so its error is that of two roundings that do.
            let more = u32::from(rounds) << u32::from(open);
            let roundings = self.roundings(left).max(self.roundings(right)) + more;
            let ((left, right), skew, ..) = key;
            let node = ValueNode { left, right, skew, rounds, open, op, depth, roundings, total };
            self.nodes.push(node);
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

    /// Whether an expression is rounded to the element type after its last fold; contributions are.
    pub(crate) fn rounds(&self, expr: u32) -> bool {
        expr < self.leaves || self.node(expr).rounds
    }

    /// Whether a value is as wide as f32, because it was not rounded since it was folded.
    pub(crate) fn is_unrounded(&self, value: ValueId) -> bool {
        value.is_value() && !self.rounds(value.expr)
    }

    /// Returns the position in `known` of the node of these operands, or of the entry for it.
    fn place(&self, key: ExprKey) -> usize {
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

    /// Returns the number of contributions to an expression over one cell.
    fn total(&self, expr: u32) -> u32 {
        if expr < self.leaves { 1 } else { self.node(expr).total }
    }

    /// Whether no rank's contribution is in an expression twice.
    fn each_once(&mut self, expr: u32) -> bool {
        if self.counts == u32::MAX {
            self.met.fill(0);
            self.counts = 0;
        }
        self.counts += 1;
        let mut open = vec![expr];
        while let Some(expr) = open.pop() {
            if expr >= self.leaves {
                let node = self.node(expr);
                open.extend([node.left, node.right]);
            } else if std::mem::replace(&mut self.met[expr as usize], self.counts) == self.counts {
                return false;
            }
        }
        true
    }

    /// Returns the length of the longest chain of reduces in a value.
    pub(crate) fn depth(&self, value: ValueId) -> u32 {
        if value.expr < self.leaves { 0 } else { self.node(value.expr).depth }
    }

    /// Returns the most roundings to the element type that a contribution to a value goes through.
    pub(crate) fn roundings(&self, value: ValueId) -> u32 {
        if value.expr < self.leaves { 0 } else { self.node(value.expr).roundings }
    }

    /// Returns the ops that round a contribution with the most roundings, the first rounding first.
    pub(crate) fn rounding_ops(&self, value: ValueId) -> Vec<OpId> {
        let mut ops = Vec::new();
        let mut next = value;
        while next.expr >= self.leaves {
            let ValueNode { rounds, op, .. } = *self.node(next.expr);
            ops.extend(rounds.then_some(op));
            let [left, right] = self.operands(next);
            next = if self.roundings(right) > self.roundings(left) { right } else { left };
        }
        ops.reverse();
        ops
    }

    /// Returns the number of times that each contribution is in a value.
    pub(crate) fn contributions(&self, value: ValueId) -> BTreeMap<Leaf, u64> {
        let mut open = BTreeMap::from([(value, 1_u64)]);
        let mut leaves = BTreeMap::new();
        // A node's operands are older than the node: no node that uses the largest id is left.
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

    /// Returns the op that first counted a contribution twice.
    pub(crate) fn first_double(&self, value: ValueId) -> Option<Double> {
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
        let value = oldest?;
        let [came, held] = self.operands(value);
        let (came, there) = (self.contributions(came), self.contributions(held));
        let leaf = *came.keys().find(|leaf| there.contains_key(leaf))?;
        let op = self.node(value.expr).op;
        Some(Double { op, rank: leaf.rank, before: self.came_in(held, leaf) })
    }

    /// Returns the op by which a value took in `leaf`; `None` where the value began with it.
    fn came_in(&self, mut value: ValueId, leaf: Leaf) -> Option<OpId> {
        while value.expr >= self.leaves {
            let [came, held] = self.operands(value);
            if self.contributions(came).contains_key(&leaf) {
                return Some(self.node(value.expr).op);
            }
            value = held;
        }
        None
    }
}
