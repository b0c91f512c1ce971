//! A class of sizes as C++: its tables, its functions, and the function that enqueues it, printed from the loop form.

use std::fmt::Write as _;

use super::handshakes::{Closed, Pair};
use super::moves;
use super::print::{self, Printer};
use crate::loops::Loops;
use crate::loops::columns::ColumnPlace;
use crate::loops::cpp::said;
use crate::loops::ir::{At, LoopNode, Number};
use crate::loops::reserved::mentions;
use roundelay_core::diagnostics::Finding;
use roundelay_core::layout::Configured;
use roundelay_core::schedule::{Schedule, SignalKind};
use roundelay_core::syntax::Source;

/// The numbers of streams that fork streams.
const STREAMS: &str = include_str!("streams.h");

/// Returns the functions of a class that runs `algorithm`. `schedule` is its schedule, `closed` the same with the signals
/// that its links need, and `single` has the moves of a copy engine besides, in equal pieces of a unit.
pub(super) fn functions(
    algorithm: &Configured,
    schedule: &Schedule,
    closed: &Closed,
    (single, pieces): (&Schedule, u64),
    source: Option<&Source>,
) -> Result<String, Vec<Finding>> {
    let lifted = Loops::lifted(algorithm, schedule, pieces).map(|mut loops| {
        let mut all = signals(&mut loops, SignalKind::Ack, &closed.begun);
        all.extend(moves::split_nodes(std::mem::take(&mut loops.body)));
        all.extend(signals(&mut loops, SignalKind::Data, &closed.ended));
        loops.body = all;
        for function in &mut loops.functions {
            function.body = moves::split_nodes(std::mem::take(&mut function.body));
        }
        loops
    });
    let flat = || Loops::flat(single, pieces, false);
    let (loops, facts) = Loops::checked(lifted, flat, single)?;
    let said = |line| said(source, line);
    let (functions, body) = Printer::class(&loops, &facts, &said);
    let mut text = String::new();
    if !loops.of_program {
        text += "// These loops were found in the schedule: the program's own have no form here.\n";
    }
    let _ = writeln!(text, "constexpr i64 nranks = {};", loops.nranks);
    for (number, table) in loops.tables.all.iter().enumerate() {
        let name = print::name_of(table, number);
        if mentions(&functions, &name) || mentions(&body, &name) {
            let _ = writeln!(text, "{}", print::table(table, number, loops.nranks));
        }
    }
    let streams = if facts.nested {
        text += STREAMS;
        "    Streams streams;\n"
    } else {
        ""
    };
    text += &functions;
    let lane = if mentions(&body, "lane") { "    Lane lane(run, 0);\n" } else { "" };
    let _ = write!(
        text,
        "\nHcclResult Enqueue(Run& run) {{\n{}{streams}{lane}{body}",
        print::me(&body)
    );
    text += "    return HCCL_SUCCESS;\n}\n";
    Ok(text)
}

/// Returns the statements of the signals of a kind that close a run, from the first to the second rank of each pair: all
/// posts before all waits.
fn signals(loops: &mut Loops, kind: SignalKind, pairs: &[Pair]) -> Vec<LoopNode> {
    let mut all = Vec::new();
    for post in [true, false] {
        let peers = |rank| {
            let own =
                pairs.iter().map(|(from, to)| if post { (from.0, to.0) } else { (to.0, from.0) });
            own.filter(|(own, _)| *own == rank).map(|(_, peer)| i64::from(peer)).collect()
        };
        let peers: Vec<Vec<i64>> = (0..loops.nranks).map(peers).collect();
        let counts: Vec<_> = peers.iter().map(|own| own.len() as i64).collect();
        let many = counts.iter().copied().max().unwrap_or(0) as usize;
        let ranks: Vec<u32> = (0..loops.nranks).collect();
        let mut place = ColumnPlace::new(&ranks, loops.nranks);
        let row = |nth: usize| peers.iter().map(|own| own.get(nth).copied().unwrap_or(0)).collect();
        let signal = |peer| LoopNode::Signal { at: At::default(), post, kind, peer, lane: None };
        if counts.iter().all(|count| *count as usize == many) {
            all.extend(
                (0..many).map(|nth| signal(place.number(&mut loops.tables, &vec![row(nth)]))),
            );
            continue;
        }
        // Where ranks have different numbers of signals, each rank has a list.
        let (lo, hi) = (Number::Const(0), place.number(&mut loops.tables, &vec![counts]));
        let var = loops.vars.len();
        loops.vars.push("nth".to_owned());
        place.enter(many, var);
        let rows = (0..many).map(row).collect();
        let body = vec![signal(place.number(&mut loops.tables, &rows))];
        all.push(LoopNode::Loop { var, lo, hi, body });
    }
    all
}
