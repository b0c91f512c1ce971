//! The dialect of the contest: statements of C++ below the source line that they come from.

use crate::loops::ir::{At, LoopNode, LoopPlace, LoopTable, Number};
use crate::loops::printer::{Dialect, Printer};
use roundelay_core::schedule::SignalKind;
use roundelay_core::syntax::ast::BinOp;
use roundelay_core::syntax::expr_text::{Target, Text};

/// C++ of the contest.
pub(super) struct Contest {
    /// The name of each function in C++, and the objects that it takes.
    pub(super) functions: Vec<(String, Vec<&'static str>)>,
    /// Whether the statements are inside a loop whose iterations have streams.
    pub(super) forked: bool,
    /// Whether the signals of a lane have flags of their own.
    pub(super) has_lanes: bool,
}

impl Dialect for Contest {
    const OWN: &'static [&'static str] =
        &["lane", "run", "me", "nranks", "slave", "stream", "streams", "forked", "At", "Piece"];
    const NUMBER: &'static str = "i64";
    const PLACES: [&'static str; 2] = ["lane.Mine", "lane.Of"];
    const PIECE: [&'static str; 2] = ["At(", ")"];

    fn signal(post: bool, kind: SignalKind, peer: &str, lane: Option<String>) -> String {
        let call = match (kind, post) {
            (SignalKind::Fork, false) => "Begin()".to_owned(),
            (SignalKind::Join, true) => "End()".to_owned(),
            (SignalKind::Fork, true) => format!("Fork({peer})"),
            (SignalKind::Join, false) => format!("Join({peer})"),
            (SignalKind::Ack, true) => format!("TxAck({peer})"),
            (SignalKind::Ack, false) => format!("RxAck({peer})"),
            (SignalKind::Data, true) => format!("TxDataSignal({peer})"),
            (SignalKind::Data, false) => format!("RxDataSignal({peer})"),
            _ => unreachable!("no link has these signals"),
        };
        let lane = lane.map_or(String::new(), |lane| format!(".In({lane})"));
        format!("CHK_RET(lane{lane}.{call});")
    }

    fn fold(printer: &mut Printer<'_, Self>, _: At, [srcs, dsts]: [&[LoopPlace]; 2]) -> String {
        // A reduction has its destination as its first source.
        let method = if srcs.len() == 1 { "Copy" } else { "Reduce" };
        let [src, dst] = [&srcs[srcs.len() - 1], &dsts[0]].map(|place| printer.place(place));
        format!("CHK_RET(lane.{method}({src}, {dst}));")
    }

    fn entry(printer: &Printer<'_, Self>, table: usize, indices: &[Number]) -> String {
        name_of(&printer.loops.tables.all[table], table) + &printer.indices(table, indices)
    }

    fn call(printer: &Printer<'_, Self>, function: usize, args: Vec<String>) -> String {
        let (name, objects) = &printer.dialect.functions[function];
        let objects = objects.iter().map(|name| match *name {
            "stream" => stream(printer).to_owned(),
            name => name.to_owned(),
        });
        format!("CHK_RET({name}({}));", objects.chain(args).collect::<Vec<_>>().join(", "))
    }

    fn streams(printer: &mut Printer<'_, Self>, var: usize, bounds: [Text; 2], body: &[LoopNode]) {
        let many = match bounds.clone() {
            [lo, hi] if lo.code == "0" => hi,
            [lo, hi] => Target::Cpp.infix(BinOp::Sub, hi, lo),
        };
        if !printer.facts.nested {
            return iterations(printer, ("slave", many), var, bounds, body);
        }
        let stream = stream(printer);
        printer.put("{");
        printer.scope(|printer| {
            let forked = format!("streams.Fork({stream}, {})", many.code);
            printer.put(&format!("const std::vector<u32> forked = {forked};"));
            let many = Text::atom("i64(forked.size())".to_owned());
            iterations(printer, ("forked[slave]", many), var, bounds, body);
            printer.put("streams.Join(forked);");
        });
        printer.put("}");
    }

    fn on(printer: &mut Printer<'_, Self>, stream: usize, body: &[LoopNode]) {
        printer.put("{");
        printer.scope(|printer| {
            printer.put(&format!("Lane lane(run, {stream});"));
            printer.nodes(body);
        });
        printer.put("}");
    }
}

/// Returns the number of the current stream, where streams fork streams.
const fn stream(printer: &Printer<'_, Contest>) -> &'static str {
    if printer.dialect.forked { "stream" } else { "0" }
}

/// Prints a loop whose iterations have streams, between the forks and the joins of its children. They have the numbers of
/// the further iterations, or, where streams fork streams, numbers that are known at run time.
fn iterations(
    printer: &mut Printer<'_, Contest>,
    (child, many): (&str, Text),
    var: usize,
    [lo, hi]: [Text; 2],
    body: &[LoopNode],
) {
    let call = |printer: &mut Printer<'_, Contest>, head: &str, call: &str| {
        for line in [head, &format!("    CHK_RET(lane.{call});"), "}"] {
            printer.put(line);
        }
    };
    let slaves = Contest::head("slave", Text::atom("1".to_owned()), many);
    call(printer, &slaves, &format!("Fork({child})"));
    let infix = |op, name: &str| Target::Cpp.infix(op, Text::atom(name.to_owned()), lo.clone());
    let print = |printer: &mut Printer<'_, Contest>, name: &str| {
        let index = if lo.code == "0" { name.to_owned() } else { infix(BinOp::Sub, name).code };
        let (around, nested) = (printer.dialect.forked, printer.facts.nested);
        if nested {
            printer.put(&format!("const u32 stream = forked[{index}];"));
            printer.dialect.forked = true;
        }
        let value = if printer.dialect.has_lanes { format!(", {name}") } else { String::new() };
        let stream = if nested { "stream" } else { &index };
        printer.put(&format!("Lane lane(run, {stream}{value});"));
        let is_child = format!("if ({}) {{", infix(BinOp::Gt, name).code);
        call(printer, &is_child, "Begin()");
        printer.nodes(body);
        call(printer, &is_child, "End()");
        printer.dialect.forked = around;
    };
    printer.nested(var, |name| Contest::head(name, lo.clone(), hi), print, "}");
    call(printer, &slaves, &format!("Join({child})"));
}

/// Returns the name of a table.
pub(super) fn name_of(table: &LoopTable, number: usize) -> String {
    format!("{}_{number}", if table.has_pieces() { "PIECE" } else { "TABLE" })
}
