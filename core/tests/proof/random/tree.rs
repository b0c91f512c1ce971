//! Walks over a program's tree that may change the nodes.

use roundelay_core::syntax::ast::{Expr, ExprKind, Iter, Stmt, StmtKind};

/// Visits every list of statements, outer ones first.
pub(super) fn lists(body: &mut Vec<Stmt>, visit: &mut dyn FnMut(&mut Vec<Stmt>)) {
    visit(body);
    for stmt in body {
        for inner in bodies(stmt) {
            lists(inner, visit);
        }
    }
}

/// The statement lists of one statement.
pub(super) fn bodies(stmt: &mut Stmt) -> Vec<&mut Vec<Stmt>> {
    match &mut stmt.kind {
        StmtKind::For { body, .. }
        | StmtKind::Parallel { body, .. }
        | StmtKind::Step { body, .. } => vec![body],
        StmtKind::If { arms, otherwise } => {
            arms.iter_mut().map(|(_, body)| body).chain(otherwise).collect()
        }
        _ => Vec::new(),
    }
}

/// Visits every expression, outer ones first.
pub(super) fn exprs(body: &mut [Stmt], visit: &mut dyn FnMut(&mut Expr)) {
    for stmt in body {
        match &mut stmt.kind {
            StmtKind::Let { value, .. } | StmtKind::View { value, .. } | StmtKind::Expr(value) => {
                expr(value, visit);
            }
            StmtKind::For { iter, .. } | StmtKind::Parallel { iter, .. } => match iter {
                Iter::Range(lo, hi) => {
                    expr(lo, visit);
                    expr(hi, visit);
                }
                Iter::List(list) => expr(list, visit),
            },
            StmtKind::If { arms, .. } => arms.iter_mut().for_each(|(c, _)| expr(c, visit)),
            StmtKind::Scratch { count, like, .. } => {
                if let Some(count) = count {
                    expr(count, visit);
                }
                expr(like, visit);
            }
            StmtKind::Fifo { like, options } => {
                expr(like, visit);
                for (_, value) in options {
                    expr(value, visit);
                }
            }
            StmtKind::Within { group, .. } => expr(group, visit),
            StmtKind::Run { call, on } => {
                expr(call, visit);
                for region in on {
                    expr(region, visit);
                }
            }
            StmtKind::Require { .. } | StmtKind::Step { .. } | StmtKind::Error => {}
        }
        for inner in bodies(stmt) {
            exprs(inner, visit);
        }
    }
}

fn expr(at: &mut Expr, visit: &mut dyn FnMut(&mut Expr)) {
    visit(at);
    for inner in operands(at) {
        expr(inner, visit);
    }
}

/// The operands of one expression.
pub(super) fn operands(at: &mut Expr) -> Vec<&mut Expr> {
    match &mut *at.kind {
        ExprKind::List(all) | ExprKind::Call(_, all) => all.iter_mut().collect(),
        ExprKind::Unary(_, a) | ExprKind::Field(a, _) => vec![a],
        ExprKind::Binary(_, a, b) | ExprKind::Index(a, b) => vec![a, b],
        ExprKind::If(a, b, c) | ExprKind::Slice(a, b, c) | ExprKind::Without(a, b, c) => {
            vec![a, b, c]
        }
        ExprKind::Method(a, _, all) => std::iter::once(a).chain(all).collect(),
        _ => Vec::new(),
    }
}
