//! Indexes that go around: where an index is this rank's number plus or minus something, the author may have left out
//! the remainder, which the advice adds.

use std::collections::HashMap;

use crate::check::hir::{self, Expr, ExprKind, StmtKind, Ty, VarId, walk};
use crate::diagnostics::Edit;
use crate::source::Span;
use crate::syntax::Source;
use crate::syntax::ast::BinOp;

/// The definitions of the names of an algorithm.
#[derive(Default)]
struct Names<'a> {
    /// `let` and `view`
    lets: HashMap<VarId, &'a Expr>,
    /// The number of slots of a `scratch`.
    slots: HashMap<VarId, &'a Expr>,
}

/// A number with the remainder that may be missing.
#[derive(Debug)]
pub(super) struct Remainder {
    /// The advice; `None` where that of the fault says more.
    pub(super) help: Option<String>,
    /// The remainder in place of the number.
    pub(super) edit: Edit,
}

/// Returns the remainders by the place of the indexed expression, as a fault names it.
pub(super) fn around(algorithm: &hir::Algorithm, source: &Source) -> HashMap<Span, Remainder> {
    let mut names = Names::default();
    walk(&algorithm.body, &mut |stmt| match &stmt.kind {
        StmtKind::Let(var, value) => {
            names.lets.insert(*var, value);
        }
        StmtKind::Scratch(var, Some(count), ..) => {
            names.slots.insert(*var, count);
        }
        _ => {}
    });
    let mut around = HashMap::new();
    walk(&algorithm.body, &mut |stmt| {
        for expr in stmt.exprs() {
            expr.walk(&mut |part| {
                let (base, index) = match &*part.kind {
                    ExprKind::Piece(base, index)
                    | ExprKind::Element(base, index)
                    | ExprKind::RingSeat(base, index) => (Some(base), index),
                    ExprKind::Block(_, index) | ExprKind::Peer(index) => (None, index),
                    _ => return,
                };
                let many = base.map_or_else(|| "nranks".into(), |base| names.many(base, source));
                if let Some((text, edit)) = names.remainder(index, &many, algorithm, source) {
                    let help = format!("if the index is to go around, write `{text}`");
                    let of_peer = matches!(&*part.kind, ExprKind::Peer(_));
                    let help = (!of_peer).then_some(help);
                    around.insert(part.span, Remainder { help, edit });
                }
            });
        }
    });
    around
}

impl Names<'_> {
    /// Returns the number of elements that `base` has, as the author writes it.
    fn many(&self, base: &Expr, source: &Source) -> String {
        let counted = match &*base.kind {
            ExprKind::Var(var) => match (self.slots.get(var), self.lets.get(var)) {
                (Some(count), _) => Some(*count),
                (None, Some(value)) if value.ty == Ty::Pieces => {
                    return self.many(value, source);
                }
                _ => None,
            },
            ExprKind::On(_, pieces) => return self.many(pieces, source),
            ExprKind::Split(_, many) if many.ty == Ty::Int => Some(many),
            _ if base.ty == Ty::Ring => return "nranks".to_owned(),
            _ => None,
        };
        match counted {
            Some(count) => bracketed(count, source),
            None => format!("len({})", source.written(base.span)),
        }
    }

    /// Returns the remainder of `index`, or of the value of the name that it is, as the author reads it and as an edit;
    /// `None` where it is not this rank's number plus or minus other numbers.
    fn remainder(
        &self,
        index: &Expr,
        many: &str,
        algorithm: &hir::Algorithm,
        source: &Source,
    ) -> Option<(String, Edit)> {
        if let ExprKind::Var(var) = &*index.kind {
            let value = self.lets.get(var).filter(|value| from_rank(value))?;
            let name = &algorithm.vars[var.0 as usize].name;
            let text = format!("{} % {many}", bracketed(value, source));
            let told = format!("let {name} = {text};");
            return Some((told, Edit { at: value.span, text }));
        }
        let text = from_rank(index).then(|| format!("{} % {many}", bracketed(index, source)))?;
        Some((text.clone(), Edit { at: index.span, text }))
    }
}

/// Returns the source text of an expression, in brackets where it is an operator's.
fn bracketed(expr: &Expr, source: &Source) -> String {
    let text = source.written(expr.span);
    match &*expr.kind {
        ExprKind::Binary(..) | ExprKind::Unary(..) | ExprKind::If(..) => format!("({text})"),
        _ => text,
    }
}

/// Whether the expression is a sum or a difference with this rank's number, or its place in a ring, as a part.
fn from_rank(expr: &Expr) -> bool {
    fn part(expr: &Expr) -> bool {
        match &*expr.kind {
            ExprKind::Rank | ExprKind::RingPosition(_) => true,
            ExprKind::Binary(BinOp::Add | BinOp::Sub, left, right) => part(left) || part(right),
            _ => false,
        }
    }
    matches!(*expr.kind, ExprKind::Binary(BinOp::Add | BinOp::Sub, ..)) && part(expr)
}
