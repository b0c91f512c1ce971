//! The dialect of Rust: calls of the trait [`Lane`](super::lane::Lane), and functions with the names of the author's steps.

use crate::loops::ir::{At, LoopNode, LoopPlace, Number};
use crate::loops::printer::{Dialect, Printer};
use roundelay_core::ids::ScratchId;
use roundelay_core::schedule::SignalKind;
use roundelay_core::syntax::expr_text::{OPERATOR, Target, Text};

/// The width of a line.
const WIDTH: usize = 100;

/// Plain Rust.
pub(super) struct Rust {
    /// The names of the functions.
    pub(super) functions: Vec<String>,
}

impl Dialect for Rust {
    const OWN: &'static [&'static str] = &[
        "lane", "me", "run", "NRANKS", "PIECES", "UNITS", "SCRATCH", "L", "Lane", "Place", "Input",
        "Output", "Scratch", "Ack", "Data", "Head", "Tail", "Fork", "Join", "Some", "None", "Ok",
        "Err", "Self", "abstract", "as", "async", "await", "become", "box", "crate", "dyn",
        "extern", "final", "fn", "gen", "impl", "in", "let", "loop", "macro", "match", "mod",
        "move", "mut", "override", "priv", "pub", "ref", "self", "super", "trait", "type",
        "typeof", "unsafe", "unsized", "use", "where", "yield",
    ];
    const NUMBER: &'static str = "i64";
    const PIECE: [&'static str; 2] = ["[", "]"];
    const TARGET: Target = Target::Rust;
    const NRANKS: &'static str = "NRANKS";
    const BUFFERS: [&'static str; 2] = ["Input", "Output"];

    fn signal(post: bool, kind: SignalKind, peer: &str, lane: Option<String>) -> String {
        let kind = match kind {
            SignalKind::Ack => "Ack",
            SignalKind::Data => "Data",
            SignalKind::Head => "Head",
            SignalKind::Tail => "Tail",
            SignalKind::Fork => "Fork",
            SignalKind::Join => "Join",
            SignalKind::Local => unreachable!("no page has signals within a rank"),
        };
        let lane = lane.map(|lane| format!(".in_lane({lane})")).unwrap_or_default();
        format!("lane{lane}.{}({kind}, {peer});", if post { "post" } else { "wait" })
    }

    fn fold(printer: &mut Printer<'_, Self>, _: At, [srcs, dsts]: [&[LoopPlace]; 2]) -> String {
        let places = |all: &[LoopPlace]| all.iter().map(|place| printer.place(place)).collect();
        let [srcs, dsts]: [Vec<_>; 2] = [srcs, dsts].map(places);
        let text = match (&srcs[..], &dsts[..]) {
            ([src], [dst]) => format!("lane.copy({src}, {dst});"),
            ([into, src], [dst]) if into == dst => format!("lane.reduce({src}, {dst});"),
            _ => format!("lane.fold(&[{}], &[{}]);", srcs.join(", "), dsts.join(", ")),
        };
        let indent = 4 * printer.names.depth();
        if indent + text.len() <= WIDTH {
            return text;
        }
        let (inner, outer) = (" ".repeat(indent + 4), " ".repeat(indent));
        match (&srcs[..], &dsts[..]) {
            ([_] | [_, _], [dst]) if !text.starts_with("lane.fold") => {
                let src = &srcs[srcs.len() - 1];
                let head = text.split('(').next().unwrap_or_default();
                format!("{head}(\n{inner}{src},\n{inner}{dst},\n{outer});")
            }
            _ => {
                let list = |all: &[String]| all.join(&format!(",\n{inner}    "));
                let [srcs, dsts] =
                    [srcs, dsts].map(|all| format!("&[\n{inner}    {},\n{inner}]", list(&all)));
                format!("lane.fold(\n{inner}{srcs},\n{inner}{dsts},\n{outer});")
            }
        }
    }

    fn entry(printer: &Printer<'_, Self>, table: usize, indices: &[Number]) -> String {
        let index = printer.number(&printer.loops.tables.index(table, indices));
        format!("TABLE_{table}[{} as usize]", index.at_least(OPERATOR + 10))
    }

    fn call(printer: &Printer<'_, Self>, function: usize, args: Vec<String>) -> String {
        let args: Vec<_> = std::iter::once("lane".to_owned()).chain(args).collect();
        format!("{}({});", printer.dialect.functions[function], args.join(", "))
    }

    fn streams(printer: &mut Printer<'_, Self>, var: usize, bounds: [Text; 2], body: &[LoopNode]) {
        let [lo, hi] = bounds.map(|bound| bound.at_least(OPERATOR));
        let head = |name: &str| format!("lane.parallel({lo}..{hi}, |lane, {name}| {{");
        printer.nested(var, head, |printer, _| printer.nodes(body), "});");
    }

    fn shifted(value: i64) -> String {
        format!("{value}_i64")
    }

    fn scratch(id: ScratchId) -> String {
        format!("Scratch({id})")
    }

    fn constant(name: &str, value: &str) -> String {
        // A literal alone may have fewer bits.
        let ty = if value.parse::<i64>().is_ok() { ": i64" } else { "" };
        format!("let {name}{ty} = {value};")
    }

    fn head(name: &str, lo: Text, hi: Text) -> String {
        // Between two literals the variable has the type of these.
        let literals = [&lo, &hi].iter().all(|bound| bound.code.parse::<i64>().is_ok());
        let ty = if literals { "_i64" } else { "" };
        format!("for {name} in {}..{}{ty} {{", lo.at_least(OPERATOR), hi.at_least(OPERATOR))
    }

    fn condition(condition: Text) -> String {
        condition.at_least(OPERATOR)
    }
}
