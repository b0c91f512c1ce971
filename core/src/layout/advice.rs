//! Advice for a finding that needs the author's statements: the source texts of its regions, and the start of a loop that
//! makes a rank signal itself.

use std::collections::HashMap;

use super::wrap::{self, Remainder};
use crate::diagnostics::{Code, Finding, Operand};
use crate::ids::SpanId;
use crate::program::ir::{Expr, Kind, Op, Program, Stmt, StmtKind, VarId};
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

    /// Keeps the texts of a peer, and of its number.
    fn peer(&mut self, peer: &Expr, source: &Source) {
        for part in std::iter::once(peer).chain(&peer.args) {
            self.texts.insert(part.span, source.text_at(part.span));
        }
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
            self.texts.entry(part.span).or_insert_with(|| source.text_at(part.span));
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
            StmtKind::Switch(src, dst) => vec![src, dst],
            StmtKind::Reduce(srcs, dst) => [dst].into_iter().chain(srcs).chain([dst]).collect(),
            StmtKind::For(_, lo, hi, _) | StmtKind::Parallel(_, lo, hi, _) => {
                all.sum(lo, source);
                all.sum(hi, source);
                continue;
            }
            StmtKind::Let(_, value) => {
                all.sum(value, source);
                for number in value.args.iter().filter(|_| value.op == Op::Peer) {
                    all.texts.insert(number.span, source.text_at(number.span));
                }
                continue;
            }
            StmtKind::Scratch(_, count, like, _) => {
                for part in count.iter().chain([like]) {
                    all.texts.insert(part.span, source.text_at(part.span));
                }
                continue;
            }
            StmtKind::Post(_, peer) | StmtKind::Wait(_, peer) => {
                all.peer(peer, source);
                continue;
            }
            StmtKind::Pass(pass) => {
                pass.from.iter().chain(&pass.to).for_each(|peer| all.peer(peer, source));
                continue;
            }
            _ => continue,
        };
        for operand in &operands {
            all.texts.insert(operand.span, source.text_at(operand.span));
            operand.walk(&mut |part| match (part.op, &*part.args) {
                (Op::Piece, [_, index]) => all.sum(index, source),
                (Op::On, [peer, _]) => {
                    all.texts.insert(peer.span, source.text_at(peer.span));
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

/// Returns the advice for a signal or a message to oneself: the start of a loop that begins with the distance 0, or the
/// condition that leaves this rank out.
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
    let peers: Vec<&Expr> = match &stmt.kind {
        StmtKind::Post(_, peer) | StmtKind::Wait(_, peer) => vec![peer],
        StmtKind::Pass(pass) => pass.from.iter().chain(&pass.to).collect(),
        _ => return None,
    };
    let lets = program.stmts().filter_map(|stmt| match &stmt.kind {
        StmtKind::Let(var, value) => Some((*var, value)),
        _ => None,
    });
    let lets = lets.collect();
    let from_rank = |peer: &Expr| mentions(peer, &lets, &|part| part.op == Op::Rank);
    // A loop over distances begins with the distance 0.
    let mut loops = path.iter().rev();
    let distance = loops.find_map(|(var, lo, hi)| {
        let of_loop = |peer: &&&Expr| mentions(peer, &lets, &|part| part.op == Op::Var(*var));
        let peer = peers.iter().find(of_loop)?;
        (lo.op == Op::Int(0) && from_rank(peer)).then_some((var, hi))
    });
    if let Some((var, hi)) = distance {
        let (name, end) = (&program.var(*var).name, written.text(hi.span)?);
        return Some(format!(
            "at {name} = 0 the peer is this rank itself: start the loop at 1, `for {name} in 1..{end}`"
        ));
    }
    // A number that is the same on every rank is this rank's own on one of them.
    let number = |peer: &&Expr| {
        let peer = match peer.op {
            Op::Var(var) => *lets.get(&var)?,
            _ => *peer,
        };
        let [number] = &*peer.args else { return None };
        let name = match number.op {
            Op::Var(var) => program.var(var).name.clone(),
            _ => written.text(number.span)?.to_owned(),
        };
        (peer.op == Op::Peer && !from_rank(peer)).then_some(name)
    };
    let name = peers.iter().find_map(number)?;
    let what = if matches!(stmt.kind, StmtKind::Pass(_)) { "message" } else { "signal" };
    Some(match path.last() {
        Some(_) => format!(
            "the loop comes to this rank itself: put the {what} into `if {name} != rank {{ … }}`"
        ),
        None => format!(
            "`{name}` is this rank's own number on one rank: put the {what} into `if rank != {name} {{ … }}`"
        ),
    })
}

/// Returns the advice for a move between slots without a length: the scratch with the length of one piece.
pub(super) fn length_of_slots(
    program: &Program,
    finding: &Finding,
    written: &SourceTexts,
) -> Option<String> {
    let stmt = program.stmts().find(|stmt| stmt.at == finding.at)?;
    let (StmtKind::Copy(first, _) | StmtKind::Reduce(_, first)) = &stmt.kind else { return None };
    if finding.code != Code::UnknownSlotLength || finding.exact.is_some() {
        return None;
    }
    let mut used = None;
    first.walk(&mut |part| {
        if let Op::Var(var) = part.op {
            used = used.or(Some(var).filter(|var| program.var(*var).kind == Kind::Pieces));
        }
    });
    let (name, count, like) = program.stmts().find_map(|stmt| match &stmt.kind {
        StmtKind::Scratch(var, count, like, _) if Some(*var) == used => {
            Some((&program.var(*var).name, count, like))
        }
        _ => None,
    })?;
    let like = written.text(like.span)?;
    let count = match count {
        Some(count) => written.text(count.span)?.to_owned() + " ",
        None => String::new(),
    };
    Some(format!(
        "let one operand be a region of `input` or `output`, or give the slots the length of one piece: \
         `scratch {name}: {count}like {like}[0];`"
    ))
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
