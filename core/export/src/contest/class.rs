//! A class of sizes as C++: its tables, its functions, and the function that enqueues it, printed from the loop form.

use std::fmt::Write as _;

use super::flags::LinkFlags;
use super::handshakes::{Closed, Pair};
use super::interface::Interface;
use super::moves;
use super::print::{Contest, name_of};
use crate::loops::Loops;
use crate::loops::columns::ColumnPlace;
use crate::loops::cpp::{array, list};
use crate::loops::cpp_names::{identifier, mentions};
use crate::loops::ir::{At, LoopNode, LoopTable, Number};
use crate::loops::lanes::lanes_within;
use crate::loops::machine::RunFacts;
use crate::loops::printer::Printer;
use roundelay_core::diagnostics::Finding;
use roundelay_core::layout::Configured;
use roundelay_core::schedule::{Schedule, SignalKind};
use roundelay_core::syntax::Source;

/// The numbers of streams that fork streams.
const STREAMS: &str = include_str!("streams.h");

/// The objects that statements use, as parameters of a function and as its arguments.
const OBJECTS: [(&str, &str); 4] = [
    ("Run& run", "run"),
    ("Lane lane", "lane"),
    ("Streams& streams", "streams"),
    ("u32 stream", "stream"),
];

/// Returns the functions of a class that runs `algorithm`. `schedule` is its schedule, `closed` the same with the signals
/// that its links need, and `single` has the moves of a copy engine besides, in equal pieces of a unit. For an operator,
/// `flags` has the numbers of the lanes.
pub(super) fn functions(
    algorithm: &Configured,
    (schedule, closed): (&Schedule, &Closed),
    (single, pieces): (&Schedule, u64),
    source: Option<&Source>,
    (interface, flags): (Interface, &LinkFlags),
) -> Result<String, Vec<Finding>> {
    let has_lanes = interface == Interface::Operator;
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
    let flat = || Loops::flat(single, pieces, has_lanes);
    let (loops, facts) = Loops::checked(lifted, flat, single)?;
    let (functions, body) = parts(&loops, &facts, source, has_lanes);
    let mut text = String::new();
    if !loops.of_program {
        text += "// These loops were found in the schedule: the program's own have no form here.\n";
    }
    let _ = writeln!(text, "constexpr i64 nranks = {};", loops.nranks);
    for (number, table) in loops.tables.all.iter().enumerate() {
        let name = name_of(table, number);
        if mentions(&functions, &name) || mentions(&body, &name) {
            let _ = writeln!(text, "{}", definition(table, &name, loops.nranks));
        }
    }
    if has_lanes {
        let lanes = loops.lane_numbers(&facts, single);
        let (flags, within) = (list(flags.first_of(&lanes)), list(lanes_within(&lanes)));
        let _ = writeln!(text, "const u32 FLAGS[] = {{{flags}}}; // by lane");
        let _ = writeln!(text, "const i64 WITHIN[] = {{{within}}};");
    }
    let streams = if facts.nested {
        text += STREAMS;
        "    Streams streams;\n"
    } else {
        ""
    };
    text += &functions;
    let lane = if mentions(&body, "lane") { "    Lane lane(run, 0);\n" } else { "" };
    let _ = write!(text, "\nHcclResult Enqueue(Run& run) {{\n{}{streams}{lane}{body}", me(&body));
    text += "    return HCCL_SUCCESS;\n}\n";
    Ok(text)
}

/// Returns the text of all functions, and the statements of the body.
fn parts(
    loops: &Loops,
    facts: &RunFacts,
    source: Option<&Source>,
    has_lanes: bool,
) -> (String, String) {
    let dialect = Contest { functions: Vec::new(), forked: true, has_lanes };
    let mut printer = Printer::new((loops, facts), source, dialect);
    let mut functions = String::new();
    for (number, function) in loops.functions.iter().enumerate() {
        let (params, body) = printer.function(&function.params, &function.body);
        let me = me(&body);
        let uses = |name| mentions(&body, name) || (name == "run" && !me.is_empty());
        let used: Vec<_> = OBJECTS.into_iter().filter(|(_, name)| uses(name)).collect();
        let objects = used.iter().map(|(object, _)| (*object).to_owned());
        let params = objects.chain(params.into_iter().map(|name| format!("i64 {name}")));
        // That of the form with a capital letter, and its number if another has that name.
        let first = loops.functions.iter().position(|other| other.name == function.name);
        let nth = if first == Some(number) { String::new() } else { format!("_{number}") };
        let name = format!("Step_{}{nth}", identifier(&function.name));
        let _ = write!(
            functions,
            "\nHcclResult {name}({}) {{\n{me}{body}    return HCCL_SUCCESS;\n}}\n",
            params.collect::<Vec<_>>().join(", ")
        );
        let objects = used.into_iter().map(|(_, name)| name).collect();
        printer.dialect.functions.push((name, objects));
    }
    printer.dialect.forked = false;
    let (_, body) = printer.function(&[], &loops.body);
    (functions, body)
}

/// Returns the declaration of the executing rank, if the text of a body uses it.
fn me(body: &str) -> &'static str {
    if mentions(body, "me") { "    const i64 me = run.rank;\n" } else { "" }
}

/// Returns the definition of a table.
fn definition(table: &LoopTable, name: &str, nranks: u32) -> String {
    let pieces = table.has_pieces();
    let ty = if pieces { "Piece" } else { "i64" };
    let entry = |entry: &[i64]| {
        // Pieces of input or output have slot and base 0; for these two numbers the text relies on the default.
        let plain = pieces && entry[2..] == [0, 0];
        let shown = if plain { &entry[..2] } else { entry };
        let shown = list(shown);
        if pieces { format!("{{{shown}}}") } else { shown }
    };
    let ranks = (nranks, &*nranks.to_string());
    format!("const {ty} {};", array(name, table, ranks, entry))
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
        let (lo, hi) = (Number::int(0), place.number(&mut loops.tables, &vec![counts]));
        let var = loops.vars.len();
        loops.vars.push("nth".to_owned());
        place.enter(many, var);
        let rows = (0..many).map(row).collect();
        let body = vec![signal(place.number(&mut loops.tables, &rows))];
        all.push(LoopNode::Loop { var, lo, hi, body });
    }
    all
}
