//! Indexes that go around: where an index is this rank's number plus or minus something, the author may have left out
//! the remainder, which the advice adds.

use std::collections::HashMap;

use crate::diagnostics::Edit;
use crate::program::ir::{Expr, Kind, Op, Program, StmtKind, VarId};
use crate::source::Span;
use crate::syntax::Source;
use crate::syntax::ast::BinOp;

/// The definitions of the names of a program.
struct Names<'a> {
    program: &'a Program,
    source: &'a Source,
    /// `let` and `view`
    lets: HashMap<VarId, &'a Expr>,
    /// The number of slots of a `scratch`.
    slots: HashMap<VarId, &'a Expr>,
}

/// A number with the remainder that may be missing.
#[derive(Debug)]
pub(super) struct Remainder {
    /// The advice.
    pub(super) help: String,
    /// The remainder in place of the number.
    pub(super) edit: Edit,
}

/// Returns the remainders by the place of the indexed expression, as a fault names it.
pub(super) fn around(program: &Program, source: &Source) -> HashMap<Span, Remainder> {
    let mut names = Names { program, source, lets: HashMap::new(), slots: HashMap::new() };
    for stmt in program.stmts() {
        match &stmt.kind {
            StmtKind::Let(var, value) => names.lets.insert(*var, value),
            StmtKind::Scratch(var, Some(count), ..) => names.slots.insert(*var, count),
            _ => None,
        };
    }
    let mut around = HashMap::new();
    program.clone().edit_exprs(&mut |part| {
        let (many, index) = match (part.op, &*part.args) {
            (Op::Piece | Op::Element | Op::RingSeat, [base, index]) => {
                (names.many(base, part.op), index)
            }
            (Op::Peer, [index]) => ("nranks".to_owned(), index),
            _ => return,
        };
        if let Some((text, edit)) = names.remainder(index, &many) {
            let what = if part.op == Op::Peer { "rank" } else { "index" };
            let help = format!("if the {what} is to go around, write `{text}`");
            around.insert(part.span, Remainder { help, edit });
        }
    });
    around
}

impl Names<'_> {
    /// Returns the number of elements that `base` has, which `op` indexes, as the author writes it.
    fn many(&self, base: &Expr, op: Op) -> String {
        let counted = match (base.op, &*base.args) {
            (Op::Var(var), _) => match (self.slots.get(&var), self.lets.get(&var)) {
                (Some(count), _) => Some(*count),
                (None, Some(value)) if self.program.var(var).kind == Kind::Pieces => {
                    return self.many(value, op);
                }
                _ => None,
            },
            (Op::On, [_, pieces]) => return self.many(pieces, op),
            // The pieces of `block(…)` are not written.
            (Op::Split, [_, Expr { op: Op::Nranks, .. }]) => return "nranks".to_owned(),
            (Op::Split, [_, many]) if self.program.kind(many) != Some(Kind::List) => Some(many),
            _ if op == Op::RingSeat => return "nranks".to_owned(),
            _ => None,
        };
        match counted {
            Some(count) => self.bracketed(count),
            None => format!("len({})", self.source.text_at(base.span)),
        }
    }

    /// Returns the remainder of `index`, or of the value of the name that it is, as the author reads it and as an edit;
    /// `None` where it is not this rank's number plus or minus other numbers.
    fn remainder(&self, index: &Expr, many: &str) -> Option<(String, Edit)> {
        if let Op::Var(var) = index.op {
            let value = self.lets.get(&var).filter(|value| from_rank(value))?;
            let name = &self.program.var(var).name;
            let text = format!("{} % {many}", self.bracketed(value));
            let told = format!("let {name} = {text};");
            return Some((told, Edit { at: value.span, text }));
        }
        let text = from_rank(index).then(|| format!("{} % {many}", self.bracketed(index)))?;
        Some((text.clone(), Edit { at: index.span, text }))
    }

    /// Returns the source text of an expression, in brackets where it is an operator's.
    fn bracketed(&self, expr: &Expr) -> String {
        let text = self.source.text_at(expr.span);
        match expr.op {
            Op::Binary(_) | Op::Neg | Op::Flip | Op::Not | Op::If => format!("({text})"),
            _ => text,
        }
    }
}

/// Whether the expression is a sum or a difference with this rank's number, or its place in a ring, as a part.
fn from_rank(expr: &Expr) -> bool {
    fn part(expr: &Expr) -> bool {
        matches!(expr.op, Op::Rank | Op::RingPosition) || from_rank(expr)
    }
    matches!(expr.op, Op::Binary(BinOp::Add | BinOp::Sub)) && expr.args.iter().any(part)
}
