//! The value of a cell: an expression over inputs, turned. Expressions that differ by a turn are kept once.

use rustc_hash::FxHashMap;

use crate::ids::OpId;
use crate::turns::Turns;
use crate::verify::values::{CellValue, Expressions, FoldWay, Leaf, ValueId, Values};

/// A value: a node of [`Shapes`], turned, over one cell of inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Value {
    pub(super) node: u32,
    /// The turn. A leaf that is turned so is the contribution of this rank.
    pub(super) by: u32,
    /// The cell of the input whose contributions it holds.
    pub(super) cell: u32,
}

impl CellValue for Value {
    const NONE: Self = Self { node: u32::MAX, by: 0, cell: 0 };
    const POISON: Self = Self { node: u32::MAX - 1, by: 0, cell: 0 };

    fn is_value(self) -> bool {
        self.node < Self::POISON.node
    }

    fn leaf(leaf: Leaf) -> Self {
        Self { node: 0, by: leaf.rank.0, cell: leaf.cell }
    }

    fn cell(self) -> u32 {
        self.cell
    }
}

/// A fold of two values of one cell: the nodes, the turn from the left to the right, and whether the result is rounded.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Fold {
    left: u32,
    right: u32,
    turn: u32,
    rounds: bool,
}

struct Node {
    fold: Fold,
    op: OpId,
    depth: u32,
    roundings: u32,
    /// The number of contributions, with repetitions.
    total: u32,
    /// Whether each rank contributes once, if that was counted.
    complete: Option<bool>,
}

/// The expressions of a replay, each once for all its turns. Node 0 is a contribution.
pub(super) struct Shapes {
    turns: Turns,
    nodes: Vec<Node>,
    known: FxHashMap<Fold, u32>,
    recent: Option<(Fold, u32)>,
}

impl Expressions for Shapes {
    type Value = Value;

    fn fold(&mut self, left: Value, right: Value, way: FoldWay, op: OpId) -> Option<Value> {
        let FoldWay { rounds, open } = way;
        if open || left.cell != right.cell {
            return None;
        }
        let turn = self.turns.turn_between(left.by, right.by);
        let fold = Fold { left: left.node, right: right.node, turn, rounds };
        let node = match self.recent {
            Some((known, node)) if known == fold => node,
            _ => self.known.get(&fold).copied().unwrap_or_else(|| self.add(fold, op)),
        };
        self.recent = Some((fold, node));
        Some(Value { node, ..left })
    }

    fn rounded(&mut self, value: Value, op: OpId) -> Value {
        if !self.is_unrounded(value) {
            return value;
        }
        let Some(fold) = self.get(value.node).map(|node| Fold { rounds: true, ..node.fold }) else {
            return value;
        };
        let node = self.known.get(&fold).copied().unwrap_or_else(|| self.add(fold, op));
        Value { node, ..value }
    }

    fn is_complete(&mut self, Value { node, .. }: Value) -> bool {
        if self.total(node) != self.turns.nranks() {
            return false;
        }
        let Some(known) = self.get(node).map(|node| node.complete) else { return true };
        let once = known.unwrap_or_else(|| self.each_once(node));
        if let Some(node) = self.nodes.get_mut(node as usize - 1) {
            node.complete = Some(once);
        }
        once
    }

    fn depth(&self, value: Value) -> u32 {
        self.depth(value.node)
    }

    fn write_out<T>(&self, value: Value, tell: impl FnOnce(ValueId, &Values) -> T) -> T {
        let mut all = Values::new(self.turns.nranks(), 0);
        if !value.is_value() {
            return tell(ValueId::NONE, &all);
        }
        let written = self.written(value, &mut all, &mut FxHashMap::default());
        tell(ValueId { cell: value.cell, ..written }, &all)
    }
}

impl Shapes {
    pub(super) fn new(turns: &Turns) -> Self {
        Self { turns: turns.clone(), nodes: Vec::new(), known: FxHashMap::default(), recent: None }
    }

    fn get(&self, node: u32) -> Option<&Node> {
        self.nodes.get(node.checked_sub(1)? as usize)
    }

    fn add(&mut self, fold: Fold, op: OpId) -> u32 {
        let [a, b] = [fold.left, fold.right];
        let node = Node {
            fold,
            op,
            depth: 1 + self.depth(a).max(self.depth(b)),
            roundings: self.roundings(a).max(self.roundings(b)) + u32::from(fold.rounds),
            total: self.total(a).saturating_add(self.total(b)),
            complete: None,
        };
        self.nodes.push(node);
        let number = self.nodes.len() as u32;
        self.known.insert(fold, number);
        number
    }

    pub(super) fn depth(&self, node: u32) -> u32 {
        self.get(node).map_or(0, |node| node.depth)
    }

    pub(super) fn roundings(&self, node: u32) -> u32 {
        self.get(node).map_or(0, |node| node.roundings)
    }

    fn total(&self, node: u32) -> u32 {
        self.get(node).map_or(1, |node| node.total)
    }

    /// Whether a value is as wide as f32, because it was not rounded since it was folded.
    fn is_unrounded(&self, value: Value) -> bool {
        value.is_value() && self.get(value.node).is_some_and(|node| !node.fold.rounds)
    }

    fn each_once(&self, node: u32) -> bool {
        let mut met = vec![false; self.turns.nranks() as usize];
        let mut open = vec![(node, 0)];
        while let Some((node, by)) = open.pop() {
            match self.get(node) {
                Some(Node { fold, .. }) => {
                    open.push((fold.left, by));
                    open.push((fold.right, self.turns.turn(by, fold.turn)));
                }
                None if std::mem::replace(&mut met[by as usize], true) => return false,
                None => {}
            }
        }
        true
    }

    /// Writes a value out in the expressions of all ranks; `known` has those that were written already.
    pub(super) fn written(
        &self,
        value: Value,
        all: &mut Values,
        known: &mut FxHashMap<(u32, u32), ValueId>,
    ) -> ValueId {
        let mut open = vec![(value.node, value.by)];
        while let Some(&(node, by)) = open.last() {
            if known.contains_key(&(node, by)) {
                open.pop();
                continue;
            }
            let Some(Node { fold, op, .. }) = self.get(node) else {
                let leaf = Values::leaf(Leaf { rank: crate::ids::RankId(by), cell: 0 });
                known.insert((node, by), leaf);
                open.pop();
                continue;
            };
            let parts = [(fold.left, by), (fold.right, self.turns.turn(by, fold.turn))];
            match parts.map(|part| known.get(&part).copied()) {
                [Some(left), Some(right)] => {
                    let way = FoldWay::in_order(fold.rounds);
                    known.insert((node, by), all.fold(left, right, way, *op));
                    open.pop();
                }
                found => {
                    let missing = parts.into_iter().zip(found).filter(|(_, found)| found.is_none());
                    open.extend(missing.map(|(part, _)| part));
                }
            }
        }
        known[&(value.node, value.by)]
    }
}

impl Shapes {
    /// Returns the op that computed a node first.
    pub(super) fn op(&self, node: u32) -> OpId {
        self.get(node).map_or(OpId(0), |node| node.op)
    }

    /// Whether a value is the contributions of neighboring ranks, in the order of the ranks.
    pub(super) fn is_ascending(&self, value: Value) -> bool {
        let mut last: Option<u32> = None;
        let mut open = vec![(value.node, value.by)];
        while let Some((node, by)) = open.pop() {
            if let Some(Node { fold, .. }) = self.get(node) {
                open.push((fold.right, self.turns.turn(by, fold.turn)));
                open.push((fold.left, by));
            } else if last.replace(by).is_some_and(|last| last + 1 != by) {
                return false;
            }
        }
        true
    }
}
