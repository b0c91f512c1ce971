//! The order in which expressions reduce: which of them are equal but for the order of two operands, which take the ranks
//! in order, and which have an open order.

use super::{FoldWay, ValueId, ValueNode, Values};
use crate::ids::OpId;

/// The operands of a fold, smaller first, and whether it rounds.
pub(crate) type CommutedFold = ([u32; 2], bool);

/// Expressions with the operands of each fold sorted, so that expressions that differ only in operand order are equal.
pub(crate) struct Commuted {
    /// The operands of each class that is no leaf, smaller class first; leaves are the first classes.
    pub(crate) folds: Vec<CommutedFold>,
    /// The class of each expression.
    pub(crate) class: Vec<u32>,
}

impl Values {
    /// Returns the op whose open order each expression depends on, the first found on the way to its leaves.
    pub(crate) fn open_orders(&self) -> Vec<Option<OpId>> {
        let mut all: Vec<Option<OpId>> = vec![None; self.leaves as usize];
        for ValueNode { left, right, open, op, .. } in &self.nodes {
            let inner = all[*left as usize].or(all[*right as usize]);
            all.push(if *open { Some(*op) } else { inner });
        }
        all
    }

    /// Returns, for each expression over neighboring ranks in order, its first rank and the rank after its last; `None`
    /// for other expressions.
    pub(crate) fn stretches(&self) -> Vec<Option<(u32, u32)>> {
        let mut all: Vec<_> = (0..self.leaves).map(|rank| Some((rank, rank + 1))).collect();
        for ValueNode { left, right, open, .. } in &self.nodes {
            let of = |expr: &u32| all[*expr as usize].filter(|_| !open);
            let joined = of(left).zip(of(right)).filter(|(left, right)| left.1 == right.0);
            all.push(joined.map(|(left, right)| (left.0, right.1)));
        }
        all
    }

    /// Returns all expressions, with those that differ only in the order of two operands as one class.
    pub(crate) fn commuted(&self) -> Commuted {
        let mut classes = Self::new(self.leaves, self.nodes.len());
        let mut class: Vec<u32> = (0..self.leaves).collect();
        for ValueNode { left, right, skew, rounds, open, op, .. } in &self.nodes {
            let of = |expr: &u32| class[*expr as usize];
            let (a, b) = (of(left).min(of(right)), of(left).max(of(right)));
            // The cell serves as the skew, which the values of a result do not have.
            let [a, b] = [(a, 0), (b, *skew)].map(|(expr, cell)| ValueId { expr, cell });
            let way = FoldWay { rounds: *rounds, open: *open };
            class.push(classes.fold(a, b, way, *op).expr);
        }
        let folds =
            classes.nodes.iter().map(|node| ([node.left, node.right], node.rounds)).collect();
        Commuted { folds, class }
    }

    /// Returns the order of reduction, such as `((0 1) 2)`, or `{0 1 2}` where it is open; long orders are cut.
    pub(crate) fn tree(&self, value: ValueId) -> String {
        /// The most characters of an order.
        const LONGEST: usize = 72;
        enum Token {
            Value(ValueId),
            Text(&'static str),
        }
        let mut text = String::new();
        let mut open = vec![Token::Value(value)];
        while let Some(token) = open.pop() {
            if text.len() > LONGEST {
                text.push_str(" …");
                break;
            }
            match token {
                Token::Text(word) => text.push_str(word),
                Token::Value(value) => match self.as_leaf(value) {
                    Some(leaf) => text.push_str(&leaf.rank.to_string()),
                    None if self.node(value.expr).open => {
                        text.push('{');
                        open.push(Token::Text("}"));
                        let (mut at, by) = (value, self.node(value.expr).op);
                        // The sum of one op is a chain, whose last operand is outermost.
                        while at.expr >= self.leaves
                            && (self.node(at.expr).open, self.node(at.expr).op) == (true, by)
                        {
                            let [operand, rest] = self.operands(at);
                            open.extend([Token::Value(operand), Token::Text(" ")]);
                            at = rest;
                        }
                        open.push(Token::Value(at));
                    }
                    None => {
                        let [left, right] = self.operands(value);
                        text.push('(');
                        let space = Token::Text(" ");
                        open.extend([
                            Token::Text(")"),
                            Token::Value(right),
                            space,
                            Token::Value(left),
                        ]);
                    }
                },
            }
        }
        text
    }
}
