//! The dialect of kernels for GPUs: the author's loops, and each statement below the line of its source.

use std::collections::BTreeSet;

use crate::loops::ir::{At, LoopNode, LoopPlace, NodeId, Number, Op, executing, times};
use crate::loops::printer::{Dialect, Printer};
use roundelay_core::ids::ScratchId;
use roundelay_core::schedule::SignalKind;
use roundelay_core::syntax::ast::BinOp;
use roundelay_core::syntax::expr_text::{Target, Text};

/// The width of the book's page.
pub(super) const WIDTH: usize = 100;

/// CUDA C++ with the device library.
pub(super) struct Cuda<'t> {
    /// Whether slots hold lines, which are passed on at once.
    pub(super) lined: bool,
    /// The moves after which the parts of a stream meet.
    pub(super) meets: &'t BTreeSet<NodeId>,
    /// The passes that the kernel performs.
    pub(super) passes: BTreeSet<&'static str>,
    /// The names of the functions.
    pub(super) functions: Vec<String>,
}

impl Dialect for Cuda<'_> {
    const OWN: &'static [&'static str] = &["lane", "me", "nranks"];
    const NUMBER: &'static str = "num";
    const PIECE: [&'static str; 2] = ["{", "}"];
    const PLACES_BLOCKS: bool = false;

    fn place_line(printer: &mut Printer<'_, Self>, at: At) {
        if let Some(file) = printer.loops.files.get(at.file).filter(|_| at.line > 0) {
            let file = file.replace('\\', "\\\\").replace('"', "\\\"");
            printer.margin(&format!("#line {} \"{file}\"", at.line));
        }
    }

    fn signal(post: bool, kind: SignalKind, peer: &str, lane: Option<String>) -> String {
        let name = match kind {
            SignalKind::Ack => "Ack",
            SignalKind::Data => "DataSignal",
            SignalKind::Head => "Head",
            SignalKind::Tail => "Tail",
            SignalKind::Fork => "Fork",
            SignalKind::Join => "Join",
            SignalKind::Local => unreachable!("a kernel's schedule keeps its signals"),
        };
        let way = if post { "Tx" } else { "Rx" };
        let lane = lane.map(|lane| format!(".in({lane})")).unwrap_or_default();
        format!("lane{lane}.{way}{name}({peer});")
    }

    fn fold(printer: &mut Printer<'_, Self>, at: At, operands: [&[LoopPlace]; 2]) -> String {
        let mut text = format!("lane.{};", moved(printer, operands));
        if 4 * printer.names.depth() + text.len() > WIDTH {
            let more = format!(",\n{:1$}lane.", "", 4 * (printer.names.depth() + 1));
            text = text.replace(", lane.", &more);
        }
        if printer.dialect.meets.contains(&at.id) {
            // On the same line, which is the author's.
            text += " lane.meet();";
        }
        text
    }

    fn entry(printer: &Printer<'_, Self>, table: usize, indices: &[Number]) -> String {
        let method = if printer.loops.tables.all[table].has_pieces() { "piece" } else { "entry" };
        format!("lane.{method}({})", word(printer, table, indices).code)
    }

    fn scratch(id: ScratchId) -> String {
        if id.index() == 0 { "SCRATCH".to_owned() } else { format!("SCRATCH + {id}") }
    }

    fn call(printer: &Printer<'_, Self>, function: usize, args: Vec<String>) -> String {
        let args: Vec<_> = std::iter::once("lane".to_owned()).chain(args).collect();
        format!("{}({});", printer.dialect.functions[function], args.join(", "))
    }

    fn streams(printer: &mut Printer<'_, Self>, var: usize, bounds: [Text; 2], body: &[LoopNode]) {
        let (nested, [lo, hi]) = (printer.loops.forks(body), bounds.map(|bound| bound.code));
        let head =
            |name: &str| format!("lane.parallel<{nested}>({lo}, {hi}, [&](const num {name}) {{");
        printer.nested(var, head, |printer, _| printer.nodes(body), "});");
    }

    fn on(printer: &mut Printer<'_, Self>, stream: usize, body: &[LoopNode]) {
        printer.block(&format!("lane.on({stream}, [&] {{"), body, "});");
    }
}

fn moved(printer: &mut Printer<'_, Cuda<'_>>, [srcs, dsts]: [&[LoopPlace]; 2]) -> String {
    let lined = printer.dialect.lined;
    let slot = |place: &LoopPlace| lined && place.step.is_some();
    let places =
        |all: &[LoopPlace]| all.iter().map(|of| place(printer, of)).collect::<Vec<_>>().join(", ");
    if srcs.iter().chain(dsts).any(slot) {
        let has = |all: &[LoopPlace], lined| all.iter().any(|place| slot(place) == lined);
        let (own, received) = (has(srcs, false), has(srcs, true));
        let name = match (received, own, has(dsts, false), has(dsts, true)) {
            (false, ..) => "send",
            (true, false, _, false) => "recv",
            (true, false, _, true) => "recv_copy_send",
            (true, true, false, _) => "recv_reduce_send",
            (true, true, true, false) => "recv_reduce_copy",
            (true, true, true, true) => "recv_reduce_copy_send",
        };
        let text = format!("{name}({}, {})", places(srcs), places(dsts));
        printer.dialect.passes.insert(name);
        return text;
    }
    match (srcs, dsts) {
        ([src], _) => format!("copy({}, {})", place(printer, src), places(dsts)),
        ([into, src], [dst]) if place(printer, into) == place(printer, dst) => {
            format!("reduce({}, {})", place(printer, src), place(printer, dst))
        }
        _ => format!("fold({{{}}}, {{{}}})", places(srcs), places(dsts)),
    }
}

fn place(printer: &Printer<'_, Cuda<'_>>, place: &LoopPlace) -> String {
    let Some(step) = place.step.as_ref().filter(|_| printer.dialect.lined) else {
        return printer.place(place);
    };
    let place = LoopPlace { of: place.of.clone().or(Some(executing())), ..place.clone() };
    printer.place_by(["", "lane.slot"], &place, &format!(", {}", printer.number(step).code))
}

/// Returns the number of the first word of an entry.
fn word(printer: &Printer<'_, Cuda<'_>>, table: usize, indices: &[Number]) -> Text {
    let tables = &printer.loops.tables;
    let index = tables.index(table, indices);
    let index = times(index, if tables.all[table].has_pieces() { 4 } else { 1 });
    let first = Text::atom(name_of(table));
    let plus = |sum, number: &Number| Target::Cpp.infix(BinOp::Add, sum, printer.number(number));
    match (index.op, &index.args) {
        (Op::Int(0), _) => first,
        (Op::Binary(BinOp::Add), sides) => plus(plus(first, &sides[0]), &sides[1]),
        _ => plus(first, &index),
    }
}

/// Returns the name of a table by its number.
pub(super) fn name_of(table: usize) -> String {
    format!("table_{table}")
}
