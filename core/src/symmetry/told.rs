//! The findings of a replay of rank 0, with the numbers of the ranks that meet at rank 0.

use super::order::Event;
use super::space::Space;
use super::values::{Shapes, Value};
use crate::collective::Expected;
use crate::diagnostics::{Code, Finding, NamedOp};
use crate::ids::{OpId, SpanId};
use crate::schedule::{Buffer, Operand, Region, Schedule};
use crate::verify::{Access, named_op, piece_text};

/// The most ranks that a finding names.
const LISTED: usize = 8;

/// The note of every finding.
const ALIKE: &str = "so at every rank: all ranks do the same, turned";

fn name(own: &Schedule, operand: Operand) -> String {
    format!("rank {} {}", operand.rank, piece_text(own, own.region(operand)))
}

fn finding(own: &Schedule, code: Code, op: OpId, title: String) -> Finding {
    here(own, Finding::new(code, own.op(op).at, title).note(ALIKE), op)
}

/// Adds the line of an op of rank 0, which stands for all ranks.
fn here(own: &Schedule, finding: Finding, op: OpId) -> Finding {
    let name = format!("rank 0, line {}", own.location(own.op(op).at).line);
    let mut finding = finding.note(&*name);
    finding.ops.push(named_op(own, op, name));
    finding
}

pub(super) fn shared_signal(own: &Schedule, earlier: OpId, at: OpId) -> Finding {
    let title = "two streams of rank 0 use one end of a signal, and are not ordered".to_owned();
    let mut found = finding(own, Code::SharedSignal, at, title);
    found.others.push((own.op(earlier).at, "and here".to_owned()));
    found
}

pub(super) fn shifted(own: &Schedule, at: OpId) -> Finding {
    let title = "a source and a destination overlap, and are not the same memory".to_owned();
    finding(own, Code::RepeatedDestination, at, title)
        .label("reads memory that it writes at another offset")
}

pub(super) fn uninitialized(own: &Schedule, at: OpId, operand: Operand) -> Finding {
    let title = format!("{} is read, and nothing was written to it", name(own, operand));
    finding(own, Code::UninitializedRead, at, title).label("reads garbage")
}

pub(super) fn slot_length(own: &Schedule, at: OpId, operand: Operand) -> Finding {
    let title = format!("{} is not what the slot holds", name(own, operand));
    finding(own, Code::SlotLength, at, title).label("read as another piece than was written")
}

pub(super) fn race(
    own: &Schedule,
    space: &Space,
    first: (Event, Access),
    second: (Event, Access),
    operand: Operand,
) -> Finding {
    // The second access is rank 0's own here, and its operand has the owner's real number.
    let seen = |event: Event| space.turns.between(second.0.rank, event.rank);
    let step = |event: Event| {
        let stream = own.streams[own.stream_of(event.op).index()];
        event.op.0 - stream.first.0
    };
    let across = first.0.run != second.0.run;
    let swap = !across && step(first.0) > step(second.0);
    let (first, second) = if swap { (second, first) } else { (first, second) };
    let (code, when) =
        if across { (Code::ScratchRace, " of the run before") } else { (Code::Race, "") };
    let (a, b) = (seen(first.0), seen(second.0));
    let title = format!(
        "race on {}: rank {b} {} it while rank {a}{when} {} it",
        name(own, operand),
        second.1.verb(),
        first.1.verb()
    );
    let mut found = finding(own, code, second.0.op, title);
    found.label = format!("rank {b} {} here", second.1.verb());
    let label = format!("rank {a}{when} {} here", first.1.verb());
    found.others.push((own.op(first.0.op).at, label));
    found
}

pub(super) fn before_enter(own: &Schedule, at: OpId, operand: Operand, access: Access) -> Finding {
    let owner = operand.rank;
    let title = format!(
        "rank 0 {} {} before rank {owner} has entered the collective",
        access.verb(),
        name(own, operand)
    );
    finding(own, Code::RaceWithCaller, at, title)
        .label(format!("rank {owner}'s caller may still be writing this buffer"))
        .help(format!("let rank {owner} post `TxAck` to rank 0, and rank 0 wait for it (`RxAck`)"))
}

pub(super) fn after_exit(own: &Schedule, event: Event, access: Access, buffer: usize) -> Finding {
    let buffer = if buffer == 0 { Buffer::Input } else { Buffer::Output };
    let title = format!(
        "rank 0 may return while rank {} still {} rank 0 {}",
        event.rank,
        access.verb(),
        own.buffer_name(buffer)
    );
    finding(own, Code::RaceWithCaller, event.op, title)
        .label("rank 0's caller may overwrite the block while this runs")
        .help(format!(
            "let rank {0} post `TxDataSignal` to rank 0, and rank 0 wait for it (`RxDataSignal`)",
            event.rank
        ))
}

pub(super) fn one_mode(own: &Schedule, at: OpId) -> Finding {
    let title = format!(
        "the ranks of {} cannot choose by themselves whether they run in place",
        own.algorithm
    );
    finding(own, Code::OneMode, at, title)
        .label("in place, the output has overwritten what is read here")
}

pub(super) fn wrong_result(
    own: &Schedule,
    (shapes, value): (&Shapes, Value),
    expected: Expected,
    piece: &Region,
    writer: Option<OpId>,
) -> Finding {
    let name = format!("rank 0 {}", piece_text(own, piece));
    let at = writer.map_or(SpanId(0), |op| own.op(op).at);
    let list = |ranks: &[u32]| {
        let text: Vec<_> = ranks.iter().take(LISTED).map(u32::to_string).collect();
        let more = if ranks.len() > LISTED { ", …" } else { "" };
        format!("{}{more}", text.join(", "))
    };
    let title = match (value.is_value(), expected) {
        (false, _) => format!("{name} is never written"),
        (true, Expected::Copied { rank, .. }) => {
            format!("{name} does not hold the input of rank {rank}")
        }
        (true, Expected::Reduced { .. }) => {
            let odd = shapes.odd(value, 4 * LISTED);
            let of = |lacks: bool| -> Vec<u32> {
                odd.iter().filter(|(_, n)| (*n == 0) == lacks).map(|(rank, _)| *rank).collect()
            };
            let (missing, twice) = (of(true), of(false));
            match (missing.is_empty(), twice.is_empty()) {
                (true, true) => format!("{name} holds data that belongs elsewhere"),
                (false, true) => {
                    format!("{name} lacks the contribution of rank {}", list(&missing))
                }
                (true, false) => format!("{name} counts rank {} more than once", list(&twice)),
                (false, false) => format!(
                    "{name} lacks the contribution of rank {} and counts rank {} more than once",
                    list(&missing),
                    list(&twice)
                ),
            }
        }
    };
    let finding = Finding::new(Code::WrongResult, at, title).note(ALIKE);
    match writer {
        Some(op) => here(own, finding, op),
        None => finding,
    }
}

/// Returns the findings of signals that never meet, in the words of a schedule where one rank stands for all.
pub(super) fn signals(own: &Schedule, found: Vec<Finding>) -> Vec<Finding> {
    let told = |finding: Finding| {
        let line = own.location(finding.at).line;
        let title = match finding.code {
            Code::Deadlock | Code::FifoTooShallow => {
                format!("deadlock: every rank waits in line {line} for a rank that waits there too")
            }
            Code::UnmatchedWait => format!("no rank posts the signal that line {line} waits for"),
            Code::LeftOverSignal => format!("no rank waits for the signal of line {line}"),
            _ => finding.title.clone(),
        };
        let others =
            finding.others.into_iter().map(|(at, _)| (at, "and here".to_owned())).collect();
        let mut fresh = Finding::new(finding.code, finding.at, title).note(ALIKE);
        let op = finding.ops.into_iter().find(|op| op.at == finding.at);
        if let Some(op) = op {
            let name = format!("rank {}, line {line}", op.rank);
            fresh = fresh.note(&*name);
            fresh.ops.push(NamedOp { name, ..op });
        }
        Finding { others, ..fresh }
    };
    found.into_iter().map(told).collect()
}
