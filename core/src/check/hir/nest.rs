//! Nested loops, where the number of runs of the innermost loop is known before any of them begins.

use super::{Expr, ExprKind, Iter, Stmt, StmtKind, Ty, VarId};

/// The bounds of nested loops, the outermost first.
pub(crate) type Nest<'a> = Vec<(&'a Expr, &'a Expr)>;

impl Stmt {
    /// Returns for a loop the loops inside it that every iteration reaches, with bounds that no iteration decides.
    pub(crate) fn nests(&self) -> Vec<Nest<'_>> {
        let mut nests = Vec::new();
        if let Some((var, lo, hi, body)) = self.looped()
            && told(lo, &[])
            && told(hi, &[])
        {
            inside(body, &mut vec![var], &mut vec![(lo, hi)], &mut nests);
        }
        nests
    }

    /// Returns the variable, bounds and body of a loop over a range.
    fn looped(&self) -> Option<(VarId, &Expr, &Expr, &[Self])> {
        match &self.kind {
            StmtKind::For(var, Iter::Range(lo, hi), body)
            | StmtKind::Parallel(var, lo, hi, body) => Some((*var, lo, hi, body)),
            _ => None,
        }
    }
}

/// Adds the nests of a loop's body. `bound` are the variables without a value when the outermost loop begins.
fn inside<'a>(
    body: &'a [Stmt],
    bound: &mut Vec<VarId>,
    around: &mut Nest<'a>,
    nests: &mut Vec<Nest<'a>>,
) {
    let innermost = nests.len();
    for stmt in body {
        if let StmtKind::Let(var, _) = &stmt.kind {
            bound.push(*var);
        }
        let Some((var, lo, hi, body)) = stmt.looped() else { continue };
        bound.push(var);
        if told(lo, bound) && told(hi, bound) {
            around.push((lo, hi));
            inside(body, bound, around, nests);
            around.pop();
        }
    }
    if nests.len() == innermost && around.len() > 1 {
        nests.push(around.clone());
    }
}

/// Whether the value of an expression is known, and depends on numbers alone.
fn told(expr: &Expr, bound: &[VarId]) -> bool {
    let mut told = true;
    expr.walk(&mut |part| {
        told &= match &*part.kind {
            ExprKind::Int(_)
            | ExprKind::Rank
            | ExprKind::Nranks
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::IntFn(..) => part.ty == Ty::Int,
            ExprKind::Var(var) => part.ty == Ty::Int && !bound.contains(var),
            _ => false,
        };
    });
    told
}
