//! Advice for a finding that needs the author's statements: the source texts of its regions, and the start of a loop that
//! makes a rank signal itself.

use std::collections::HashMap;

use super::wrap::{self, Remainder};
use crate::diagnostics::{Code, Finding, Operand};
use crate::ids::SpanId;
use crate::program::ir::{Expr, Op, Program, Stmt, StmtKind, VarId};
use crate::source::{Location, Span};
use crate::syntax::Source;

/// The texts that an author wrote.
#[derive(Debug, Default)]
pub(super) struct SourceTexts {
    /// The places of the operands of each move, in the order of the op.
    operands: HashMap<SpanId, Vec<Span>>,
    /// The texts at these places, of peers, of bounds of loops, and of sums that have a name or are an index.
    texts: HashMap<Span, String>,
    /// The advice for indexes that add to this rank's number, by the place of the index.
    around: HashMap<Span, Remainder>,
}

impl SourceTexts {
    /// Returns the place of an operand. For a reduce that became more than one op the tree cannot tell which operand
    /// it is.
    fn operand(&self, Operand { at, index, of, .. }: &Operand) -> Option<Span> {
        self.operands.get(at).filter(|places| places.len() == *of)?.get(*index).copied()
    }

    /// Returns the text at a place that is known.
    pub(super) fn text(&self, place: Span) -> Option<&str> {
        self.texts.get(&place).map(String::as_str)
    }

    /// Keeps the texts of a number, and of the two sides of the sum that it is or takes a remainder of.
    fn sum(&mut self, number: &Expr, source: &Source) {
        let mut parts = vec![number];
        for _ in 0..2 {
            let sums = parts.iter().filter(|part| matches!(part.op, Op::Binary(_)));
            let inner: Vec<&Expr> = sums.flat_map(|sum| &sum.args).collect();
            parts.extend(inner);
        }
        for part in parts {
            self.texts.entry(part.span).or_insert_with(|| source.written(part.span));
        }
    }
}

/// Returns the texts of `source`, from which `program` was lowered, that messages may show.
pub(super) fn written(program: &Program, source: &Source) -> SourceTexts {
    let around = wrap::around(program, source);
    let mut all = SourceTexts { around, ..SourceTexts::default() };
    for stmt in program.stmts() {
        let operands: Vec<&Expr> = match &stmt.kind {
            StmtKind::Copy(src, dsts) => std::iter::once(src).chain(dsts).collect(),
            StmtKind::Reduce(srcs, dst) => [dst].into_iter().chain(srcs).chain([dst]).collect(),
            StmtKind::For(_, lo, hi, _) | StmtKind::Parallel(_, lo, hi, _) => {
                all.sum(lo, source);
                all.sum(hi, source);
                continue;
            }
            StmtKind::Let(_, value) => {
                all.sum(value, source);
                continue;
            }
            StmtKind::Post(_, peer) | StmtKind::Wait(_, peer) => {
                all.texts.insert(peer.span, source.written(peer.span));
                continue;
            }
            _ => continue,
        };
        for operand in &operands {
            all.texts.insert(operand.span, source.written(operand.span));
            operand.walk(&mut |part| match (part.op, &*part.args) {
                (Op::Piece, [_, index]) => all.sum(index, source),
                (Op::On, [peer, _]) => {
                    all.texts.insert(peer.span, source.written(peer.span));
                }
                _ => {}
            });
        }
        all.operands.insert(stmt.at, operands.iter().map(|operand| operand.span).collect());
    }
    all
}

/// Returns a note for each region of a finding: rank 1 output[1..2] is `left.block[b]` in line 9.
pub(super) fn regions(
    finding: &Finding,
    written: &SourceTexts,
    locations: &[Location],
) -> Vec<String> {
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    for operand @ Operand { region, at, part, .. } in &finding.operands {
        let Some(text) = written.operand(operand).and_then(|place| written.text(place)) else {
            continue;
        };
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

/// Returns the place of the operand of a write to an input, which is wrong for any other operands.
pub(super) fn operand(finding: &Finding, written: &SourceTexts) -> Option<Span> {
    let operand = finding.operands.first().filter(|_| finding.code == Code::InputWritten)?;
    written.operand(operand)
}

/// Returns the advice for an index that is beyond the pieces or before the first piece, and for the number of a peer that
/// is not there.
pub(super) fn around<'w>(finding: &Finding, written: &'w SourceTexts) -> Option<&'w Remainder> {
    let codes = [Code::IndexOutOfRange, Code::RankOutOfRange];
    written.around.get(&finding.exact.filter(|_| codes.contains(&finding.code))?)
}

/// Returns the advice for a signal to oneself in a loop that begins with the distance 0, or that runs over all ranks.
pub(super) fn to_oneself(
    program: &Program,
    finding: &Finding,
    written: &SourceTexts,
) -> Option<String> {
    if finding.code != Code::SelfSignal {
        return None;
    }
    let mut path = Vec::new();
    let stmt = find(&program.body, finding.at, &mut path)?;
    let (StmtKind::Post(_, peer) | StmtKind::Wait(_, peer)) = &stmt.kind else { return None };
    let lets = program.stmts().filter_map(|stmt| match &stmt.kind {
        StmtKind::Let(var, value) => Some((*var, value)),
        _ => None,
    });
    let lets = lets.collect();
    let mut loops = path.into_iter().rev();
    let (var, lo, hi) =
        loops.find(|(var, ..)| mentions(peer, &lets, &|part| part.op == Op::Var(*var)))?;
    if lo.op != Op::Int(0) {
        return None;
    }
    let name = &program.var(var).name;
    if mentions(peer, &lets, &|part| part.op == Op::Rank) {
        let end = written.text(hi.span).unwrap_or("…");
        return Some(format!(
            "at {name} = 0 the peer is this rank itself: start the loop at 1, `for {name} in 1..{end}`"
        ));
    }
    // This advice is right only where the variable of the loop is the number of the peer.
    let numbers = mentions(peer, &lets, &|part| {
        part.op == Op::Peer && part.args.iter().any(|number| number.op == Op::Var(var))
    });
    numbers.then(|| {
        format!(
            "the loop comes to this rank itself: put the signal into `if {name} != rank {{ … }}`"
        )
    })
}

/// A loop over a range: its variable and its bounds.
type Loop<'a> = (VarId, &'a Expr, &'a Expr);

/// Returns the statement `at`; `path` gets the loops over ranges around it, from the outermost on.
fn find<'a>(body: &'a [Stmt], at: SpanId, path: &mut Vec<Loop<'a>>) -> Option<&'a Stmt> {
    for stmt in body {
        if stmt.at == at {
            return Some(stmt);
        }
        let around = path.len();
        let found = match &stmt.kind {
            StmtKind::For(var, lo, hi, body) | StmtKind::Parallel(var, lo, hi, body) => {
                path.push((*var, lo, hi));
                find(body, at, path)
            }
            _ => stmt.blocks().into_iter().find_map(|body| find(body, at, path)),
        };
        if found.is_some() {
            return found;
        }
        path.truncate(around);
    }
    None
}

/// Whether a wanted expression is in `expr`, or in the values of the names in it.
fn mentions(expr: &Expr, lets: &HashMap<VarId, &Expr>, wanted: &dyn Fn(&Expr) -> bool) -> bool {
    let mut found = false;
    expr.walk(&mut |part| {
        found |= wanted(part);
        if let Op::Var(var) = part.op
            && let Some(value) = lets.get(&var)
        {
            found |= mentions(value, lets, wanted);
        }
    });
    found
}
