//! What only the author's tree can add to a finding: how the regions that it speaks of are written, and where a loop
//! should begin that makes a rank signal itself.

use std::collections::HashMap;

use crate::check::hir::{self, Expr, ExprKind, Iter, Stmt, StmtKind, VarId, walk};
use crate::diagnostics::{Code, Finding, Operand};
use crate::ids::SpanId;
use crate::source::Location;
use crate::syntax::Source;

/// What an author wrote.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// The operands of each move, in the order of the op.
    operands: HashMap<SpanId, Vec<String>>,
    /// Where each loop over a range ends, by its variable.
    ends: HashMap<VarId, String>,
}

/// How `source` writes what messages show of `algorithm`.
pub(super) fn written(algorithm: &hir::Algorithm, source: &Source) -> Written {
    let mut all = Written::default();
    walk(&algorithm.body, &mut |stmt| {
        let operands: Vec<&Expr> = match &stmt.kind {
            StmtKind::Copy(src, dsts) => std::iter::once(src).chain(dsts).collect(),
            StmtKind::Reduce(srcs, dst) => [dst].into_iter().chain(srcs).chain([dst]).collect(),
            StmtKind::For(var, Iter::Range(_, hi), _) | StmtKind::Parallel(var, _, hi, _) => {
                all.ends.insert(*var, source.written(hi.span));
                return;
            }
            _ => return,
        };
        let texts = operands.iter().map(|operand| source.written(operand.span));
        all.operands.insert(stmt.at, texts.collect());
    });
    all
}

/// What each region of a finding is in the source: rank 1 output[1..2] is `left.block[b]` in line 9.
pub(super) fn regions(finding: &Finding, written: &Written, locations: &[Location]) -> Vec<String> {
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for Operand { region, at, index, of, part } in &finding.operands {
        // A reduce of many sources is more than one op: which of them this is the tree cannot say.
        let texts = written.operands.get(at).filter(|texts| texts.len() == *of);
        let Some(text) = texts.and_then(|texts| texts.get(*index)) else { continue };
        let line = locations.get(at.index()).map_or(0, |place| place.line);
        let part = if *part { "part of " } else { "" };
        let text = format!("{part}`{text}` in line {line}");
        match notes.iter_mut().find(|(known, _)| known == region) {
            Some((_, texts)) if texts.contains(&text) => {}
            Some((_, texts)) => texts.push(text),
            None => notes.push((region, vec![text])),
        }
    }
    let note =
        |(region, texts): (&str, Vec<String>)| format!("{region} is {}", texts.join(" and "));
    notes.into_iter().map(note).collect()
}

/// What to do about a signal to oneself in a loop that begins with the distance 0, or that runs over all ranks.
pub(super) fn to_oneself(
    algorithm: &hir::Algorithm,
    finding: &Finding,
    written: &Written,
) -> Option<String> {
    if finding.code != Code::SelfSignal {
        return None;
    }
    let mut path = Vec::new();
    let stmt = find(&algorithm.body, finding.at, &mut path)?;
    let StmtKind::Signal(_, peer) = &stmt.kind else { return None };
    let mut lets = HashMap::new();
    walk(&algorithm.body, &mut |stmt| {
        if let StmtKind::Let(var, value) = &stmt.kind {
            lets.insert(*var, value);
        }
    });
    let (var, lo) = path.into_iter().rev().find(|(var, _)| {
        mentions(peer, &lets, &|kind| matches!(kind, ExprKind::Var(v) if v == var))
    })?;
    if !matches!(*lo.kind, ExprKind::Int(0)) {
        return None;
    }
    let name = &algorithm.vars[var.0 as usize].name;
    if mentions(peer, &lets, &|kind| matches!(kind, ExprKind::Rank)) {
        let end = written.ends.get(&var).map_or("…", String::as_str);
        return Some(format!(
            "at {name} = 0 the peer is this rank itself: start the loop at 1, `for {name} in 1..{end}`"
        ));
    }
    // Only where the variable of the loop is the number of the peer.
    let numbers = mentions(peer, &lets, &|kind| match kind {
        ExprKind::Peer(number) => matches!(*number.kind, ExprKind::Var(v) if v == var),
        _ => false,
    });
    numbers.then(|| {
        format!(
            "the loop comes to this rank itself: put the signal into `if {name} != rank {{ … }}`"
        )
    })
}

/// The statement `at`, and the ranges of the loops around it from the outermost on: variable and first value.
fn find<'a>(body: &'a [Stmt], at: SpanId, path: &mut Vec<(VarId, &'a Expr)>) -> Option<&'a Stmt> {
    for stmt in body {
        if stmt.at == at {
            return Some(stmt);
        }
        let around = path.len();
        let found = match &stmt.kind {
            StmtKind::For(var, Iter::Range(lo, _), body) | StmtKind::Parallel(var, lo, _, body) => {
                path.push((*var, lo));
                find(body, at, path)
            }
            StmtKind::For(_, _, body) | StmtKind::Within(_, body) => find(body, at, path),
            StmtKind::If(arms, otherwise) => {
                let bodies = arms.iter().map(|(_, body)| body).chain(otherwise);
                let mut bodies = bodies.map(|body| &**body);
                bodies.find_map(|body| find(body, at, path))
            }
            _ => None,
        };
        if found.is_some() {
            return found;
        }
        path.truncate(around);
    }
    None
}

/// Whether something like that is in `expr`, or in what the names in it stand for.
fn mentions(expr: &Expr, lets: &HashMap<VarId, &Expr>, wanted: &dyn Fn(&ExprKind) -> bool) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        found |= wanted(&part.kind);
        if let ExprKind::Var(var) = &*part.kind
            && let Some(value) = lets.get(var)
        {
            found |= mentions(value, lets, wanted);
        }
    });
    found
}
