//! Finds the signal that is missing: a wait or a post is put beside the statements around the one that is to blame, until
//! the program is proved.

use super::repairs::Counts;
use crate::diagnostics::{Code, Diagnostic, Edit};
use crate::layout::Configured;
use crate::program::ir::{Expr, Op, Stmt, StmtKind};
use crate::schedule::SignalKind;
use crate::source::Span;

/// The most programs that are tried.
const MOST: usize = 96;

/// A signal of the language: its statement, its kind and its name.
type Signal = (fn(SignalKind, Expr) -> StmtKind, SignalKind, &'static str);

const TX_ACK: Signal = (StmtKind::Post, SignalKind::Ack, "TxAck");
const RX_ACK: Signal = (StmtKind::Wait, SignalKind::Ack, "RxAck");
const TX_DATA: Signal = (StmtKind::Post, SignalKind::Data, "TxDataSignal");
const RX_DATA: Signal = (StmtKind::Wait, SignalKind::Data, "RxDataSignal");

/// A place of a block for another statement: behind the statement of this number, or at the beginning.
type Place = Option<usize>;

/// Statements that may be missing at a place of a block.
struct Insertion<'a> {
    /// The waits and posts, each with its text.
    stmts: Vec<(Stmt, String)>,
    place: Place,
    /// The statements of the block.
    block: &'a [Stmt],
}

/// Puts the first signal that makes the algorithm right into `error`; returns whether there is one.
pub(super) fn propose(error: &mut Diagnostic, algorithm: &Configured, nranks: u32) -> bool {
    let program = algorithm.program();
    let Some((block, blamed)) = program.blocks().find_map(|block| {
        let at = |stmt: &Stmt| program.spans.get(stmt.at.index()) == Some(&error.primary);
        block.iter().position(at).map(|blamed| (block, blamed))
    }) else {
        return false;
    };
    let signals = [Code::UnmatchedWait, Code::LeftOverSignal, Code::Race, Code::RaceWithCaller];
    if !signals.contains(&error.code) {
        return false;
    }
    let Some(counts) = Counts::around(algorithm, nranks) else { return false };
    let right = |missing: &Insertion<'_>| {
        let mut changed = (**program).clone();
        changed.edit_blocks(&mut |other| {
            if other == missing.block {
                let at = missing.place.map_or(0, |place| place + 1);
                other.splice(at..at, missing.stmts.iter().map(|(stmt, _)| stmt.clone()));
            }
        });
        counts.hold(&algorithm.with_program(changed))
    };
    let blamed = &block[blamed];
    let others = program.blocks().filter(|other| *other != block && !other.is_empty());
    let all = std::iter::once(block).chain(others);
    // The kind of signal that the help names is tried first.
    let data = error.help.as_ref().is_some_and(|help| help.contains(TX_DATA.2));
    let case = (error.code, data);
    let candidates = all.flat_map(|block| candidates(case, algorithm, block, blamed));
    let Some(found) = candidates.take(MOST).find(right) else { return false };
    let location = |stmt: &Stmt| program.locations[stmt.at.index()];
    let span = |stmt: &Stmt| program.spans[stmt.at.index()];
    let texts: Vec<&str> = found.stmts.iter().map(|(_, text)| text.as_str()).collect();
    let beside = &found.block[found.place.unwrap_or(0)];
    let next = "\n".to_owned() + &" ".repeat(location(beside).column as usize - 1);
    let lines = texts.join(&next);
    let (side, line) = match found.place {
        Some(_) => {
            let last = Span { lo: span(beside).hi - 1, hi: span(beside).hi };
            let end = if beside.blocks().is_empty() { ";" } else { "}" };
            error.edits.push(Edit { at: last, text: format!("{end}{next}{lines}") });
            ("after", location(beside).end_line)
        }
        None => {
            let first = Span { lo: span(beside).lo, hi: span(beside).lo };
            error.edits.push(Edit { at: first, text: format!("{lines}{next}") });
            ("before", location(beside).line)
        }
    };
    let counts = counts.text();
    error.help = Some(match &texts[..] {
        [one] => {
            format!(
                "a signal is missing: with `{one}` {side} line {line} it is proved for nranks {counts}"
            )
        }
        several => format!(
            "signals are missing: it is proved for nranks {counts} with these {side} line {line}:\n`{}`",
            several.join(" ")
        ),
    });
    true
}

/// Returns the signals that may be missing in a block, those beside the statement to blame first, if it is there.
fn candidates<'a>(
    (code, data): (Code, bool),
    algorithm: &Configured,
    block: &'a [Stmt],
    blamed: &Stmt,
) -> Vec<Insertion<'a>> {
    let peers = peers(algorithm, block);
    let signal = |(stmt, kind, name): Signal, (peer, text): &(Expr, String)| {
        (Stmt { at: blamed.at, kind: stmt(kind, peer.clone()) }, format!("{text}.{name}();"))
    };
    let alone = |one: Signal| peers.iter().map(|peer| vec![signal(one, peer)]).collect();
    let sets: Vec<Vec<(Stmt, String)>> = match (code, &blamed.kind) {
        (Code::LeftOverSignal, StmtKind::Post(SignalKind::Ack, _)) => alone(RX_ACK),
        (Code::LeftOverSignal, StmtKind::Post(SignalKind::Data, _)) => alone(RX_DATA),
        (Code::UnmatchedWait, StmtKind::Wait(SignalKind::Ack, _)) => alone(TX_ACK),
        (Code::UnmatchedWait, StmtKind::Wait(SignalKind::Data, _)) => alone(TX_DATA),
        (Code::Race | Code::RaceWithCaller, _) => {
            let mut kinds = [(TX_ACK, RX_ACK), (TX_DATA, RX_DATA)];
            kinds[..].rotate_left(usize::from(data));
            let pairs = peers.iter().flat_map(|to| peers.iter().map(move |from| (to, from)));
            let both = pairs.flat_map(|(to, from)| {
                kinds.map(|(post, wait)| vec![signal(post, to), signal(wait, from)])
            });
            both.collect()
        }
        _ => Vec::new(),
    };
    let mut places: Vec<Place> = std::iter::once(None).chain((0..block.len()).map(Some)).collect();
    let near = block.iter().position(|stmt| stmt == blamed).unwrap_or_default() as i64;
    places.sort_by_key(|place| place.map_or(-1, |at| at as i64).abs_diff(near));
    let of_set = |place: Place| {
        sets.iter().map(move |stmts| Insertion { stmts: stmts.clone(), place, block })
    };
    places.into_iter().flat_map(of_set).collect()
}

/// Returns the peers that the statements of a block name, each with its text.
fn peers(algorithm: &Configured, block: &[Stmt]) -> Vec<(Expr, String)> {
    let mut found: Vec<(Expr, String)> = Vec::new();
    let mut add = |peer: &Expr| {
        if let Some(text) = algorithm.text(peer.span)
            && !found.iter().any(|(_, known)| known == text)
            && peer.op != Op::Local
        {
            found.push((peer.clone(), text.to_owned()));
        }
    };
    for stmt in block {
        let operands: Vec<&Expr> = match &stmt.kind {
            StmtKind::Post(_, peer) | StmtKind::Wait(_, peer) => {
                add(peer);
                continue;
            }
            StmtKind::Copy(src, dsts) => std::iter::once(src).chain(dsts).collect(),
            StmtKind::Reduce(srcs, dst) => srcs.iter().chain([dst]).collect(),
            StmtKind::Switch(src, dst) => vec![src, dst],
            _ => continue,
        };
        let mut left = operands;
        while let Some(expr) = left.pop() {
            left.extend(&expr.args);
            if let (Op::On, [peer, _]) = (expr.op, &*expr.args) {
                add(peer);
            }
        }
    }
    found
}
