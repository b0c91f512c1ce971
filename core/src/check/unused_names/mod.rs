//! The declarations of a checked algorithm that it never uses. Every occurrence of a name is a use, even in a branch
//! that no rank takes or in the declaration of another unused thing. Each word of a `rust { }` escape is an occurrence.

mod messages;
mod units;

use super::hir::{self, Demand, Expr, ExprKind, Primitive, Stmt, StmtKind, Ty, VarId};
use crate::diagnostics::Diagnostic;
use crate::source::Span;

/// Returns the warnings of one algorithm, in source order, with the levels of its attributes.
pub(super) fn warnings(algorithm: &hir::Algorithm) -> Vec<Diagnostic> {
    let mut usage = Usage::of(algorithm);
    let declared = std::mem::take(&mut usage.declared);
    let unused = declared.into_iter().filter(|(var, _)| !algorithm.var(*var).name.starts_with('_'));
    let mut warnings: Vec<_> = unused.filter_map(|(var, kind)| usage.warning(var, kind)).collect();
    warnings.sort_by_key(|warning| warning.primary.lo);
    algorithm.levels.apply(warnings)
}

/// The kind of declaration of a variable. A loop's variable counts as used, whether or not its value is read.
#[derive(Clone, Copy)]
enum UnusedKind<'a> {
    /// The number of slots, and their shape.
    Scratch(Option<&'a Expr>, &'a Expr),
    Param,
    /// A parameter of the step with this name.
    StepParam(VarId),
    Let,
    View,
    Step,
    Fifo,
}

/// The uses of variables, found in one walk over an algorithm.
struct Usage<'a> {
    algorithm: &'a hir::Algorithm,
    declared: Vec<(VarId, UnusedKind<'a>)>,
    used: Vec<bool>,
    /// The place of the first write of a variable, as long as it is only written.
    written: Vec<Option<Span>>,
}

impl<'a> Usage<'a> {
    fn of(algorithm: &'a hir::Algorithm) -> Self {
        let vars = algorithm.vars.len();
        let mut usage = Self {
            algorithm,
            declared: Vec::new(),
            used: vec![false; vars],
            written: vec![None; vars],
        };
        for param in &algorithm.params {
            param.default.iter().for_each(|default| usage.expr(default));
            usage.declared.push((param.var, UnusedKind::Param));
        }
        let fifo = algorithm.vars.iter().position(|var| var.ty == Ty::Fifo);
        let fifo = fifo.map(|index| VarId(index as u32));
        usage.declared.extend(fifo.map(|fifo| (fifo, UnusedKind::Fifo)));
        hir::walk(&algorithm.body, &mut |stmt| usage.stmt(stmt, fifo));
        usage
    }

    fn stmt(&mut self, stmt: &'a Stmt, fifo: Option<VarId>) {
        self.operands(stmt);
        match &stmt.kind {
            StmtKind::Let(var, _) => {
                let region = matches!(self.algorithm.var(*var).ty, Ty::Region | Ty::Pieces);
                self.declared.push((*var, if region { UnusedKind::View } else { UnusedKind::Let }));
            }
            StmtKind::Scratch(var, count, like, _) => {
                self.declared.push((*var, UnusedKind::Scratch(count.as_ref(), like)));
            }
            StmtKind::Step(step) => {
                let params =
                    step.params.iter().map(|param| (*param, UnusedKind::StepParam(step.name)));
                self.declared.extend(params.chain([(step.name, UnusedKind::Step)]));
            }
            StmtKind::Call(step, _) => self.used[step.0 as usize] = true,
            StmtKind::Primitive { .. } => {
                if let Some(fifo) = fifo {
                    self.used[fifo.0 as usize] = true;
                }
            }
            StmtKind::Demand(Demand::Budget(_, value) | Demand::Roundings(value)) => {
                self.expr(value);
            }
            _ => {}
        }
    }

    /// Visits the expressions of a statement itself, with destinations that are only written apart from the others.
    fn operands(&mut self, stmt: &'a Stmt) {
        let written: &[Expr] = match &stmt.kind {
            StmtKind::Copy(_, dsts) => dsts,
            StmtKind::Primitive { primitive, places, .. }
                if primitive.writes() && *primitive != Primitive::RecvReduce =>
            {
                &places[places.len() - 1..]
            }
            _ => &[],
        };
        for expr in stmt.exprs() {
            match &*expr.kind {
                ExprKind::On(peer, region) if written.iter().any(|w| std::ptr::eq(w, expr)) => {
                    self.expr(peer);
                    self.written(region, expr.span);
                }
                _ => self.expr(expr),
            }
        }
    }

    fn written(&mut self, region: &'a Expr, at: Span) {
        match &*region.kind {
            ExprKind::Var(var) => {
                self.written[var.0 as usize].get_or_insert(at);
            }
            ExprKind::Split(base, n) | ExprKind::Block(base, n) | ExprKind::Piece(base, n) => {
                self.written(base, at);
                self.expr(n);
            }
            ExprKind::Range(base, lo, hi) => {
                self.written(base, at);
                self.expr(lo);
                self.expr(hi);
            }
            _ => self.expr(region),
        }
    }

    fn expr(&mut self, expr: &Expr) {
        expr.walk(&mut |part| {
            if let ExprKind::Var(var) = &*part.kind {
                self.used[var.0 as usize] = true;
            }
        });
    }
}

impl hir::Algorithm {
    pub(super) fn var(&self, var: VarId) -> &hir::Var {
        &self.vars[var.0 as usize]
    }
}
