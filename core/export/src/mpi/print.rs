//! The dialect of C for MPI: messages with requests, and moves of one destination.

use std::collections::BTreeMap;

use super::Parts;
use super::names::harmless;
use crate::loops::cpp::said;
use crate::loops::ir::{At, LoopPlace, MessageStep, Number, Op, Piece};
use crate::loops::printer::{Dialect, Printer};
use roundelay_core::schedule::Buffer;
use roundelay_core::syntax::expr_text::Text;

/// The width of a line, in characters.
pub(super) const WIDTH: usize = 100;

/// The names of the peer of all sends and of the peer of all receives, in the order of [`Mpi::peers`].
pub(super) const PEERS: [&str; 2] = ["from", "to"];

pub(super) struct Mpi<'a> {
    pub(super) parts: &'a Parts,
    /// The names of the tables that are read: the meaning of their numbers.
    pub(super) roles: BTreeMap<usize, &'static str>,
    /// The peers that have names in the current function.
    pub(super) peers: [Option<String>; 2],
}

type MpiPrinter<'t, 'a> = Printer<'t, Mpi<'a>>;

impl Dialect for Mpi<'_> {
    const OWN: &'static [&'static str] = &[];
    const NUMBER: &'static str = "int";
    const ME: &'static str = "rank";
    const NRANKS: &'static str = "RANKS";

    fn place_line(printer: &mut Printer<'_, Self>, At { line, .. }: At) {
        if line > 0 {
            let said = printer.source.and_then(|source| said(Some(source), line));
            printer.comment(line, said.map(|said| harmless(&said)));
        }
    }

    fn message(
        printer: &mut Printer<'_, Self>,
        send: bool,
        request: &Number,
        step: &MessageStep,
    ) -> String {
        let request = value(printer, "request", request);
        match step {
            MessageStep::Begin { peer, tag, place: of } => {
                let (way, peer) = (usize::from(send), value(printer, "peer", peer));
                let named = printer.dialect.peers[way].as_ref() == Some(&peer);
                let peer = if named { PEERS[way].to_owned() } else { peer };
                let tag = value(printer, "tag", tag);
                let function = if send { "start_send" } else { "start_receive" };
                let args = ["r".to_owned(), request, peer, tag, place(printer, of)];
                call(printer, function, &args)
            }
            MessageStep::Finish(many) => {
                let requests = if send { "sends" } else { "receives" };
                let first = format!("&r->{requests}[{request}]");
                match many.op {
                    Op::Int(1) => call(printer, "finish", &[first]),
                    _ => {
                        let many = value(printer, "requests", many);
                        call(printer, "finish_all", &[many, first])
                    }
                }
            }
        }
    }

    fn fold(printer: &mut Printer<'_, Self>, _: At, [srcs, dsts]: [&[LoopPlace]; 2]) -> String {
        let (run, to) = ("r".to_owned(), place(printer, &dsts[0]));
        let from: Vec<_> = srcs.iter().map(|src| place(printer, src)).collect();
        match &from[..] {
            [from] => call(printer, "copy", &[run, to, from.clone()]),
            [first, from] if *first == to => call(printer, "reduce", &[run, to, from.clone()]),
            all => {
                let all = format!("(const span[]){{{}}}", all.join(", "));
                call(printer, "fold", &[run, to, srcs.len().to_string(), all])
            }
        }
    }

    fn entry(printer: &Printer<'_, Self>, table: usize, indices: &[Number]) -> String {
        format!("{}_{table}{}", printer.dialect.roles[&table], printer.indices(table, indices))
    }

    fn shifted(value: i64) -> String {
        value.to_string()
    }

    fn head(name: &str, lo: Text, hi: Text) -> String {
        format!("for (int {name} = {}; {name} < {}; {name}++) {{", lo.code, hi.code)
    }
}

/// Returns a number; a table that it is looked up in is named by its role.
fn value(printer: &mut MpiPrinter<'_, '_>, role: &'static str, number: &Number) -> String {
    if let Op::Entry(table) = number.op {
        printer.dialect.roles.entry(table as usize).or_insert(role);
    }
    printer.number(number).code
}

fn place(printer: &mut MpiPrinter<'_, '_>, place: &LoopPlace) -> String {
    let Piece::Computed { lo, width, slot, base } = &place.piece else {
        unreachable!("each number has a table of its own");
    };
    let (at, len) = (value(printer, "piece", lo), value(printer, "pieces", width));
    let name = match place.buffer {
        Buffer::Input => "in",
        Buffer::Output => "out",
        Buffer::Scratch(id) => {
            let name = &printer.dialect.parts.scratch[id.index()];
            let slot = value(printer, "slot", slot);
            let first = value(printer, "piece", base);
            if first == at {
                return format!("slot(r, r->{name}, {slot}, {at}, {len})");
            }
            return format!("within(r, r->{name}, {slot}, {first}, {at}, {len})");
        }
    };
    format!("part(r, r->{name}, {at}, {len})")
}

/// Returns a call. Arguments that do not fit the line go on lines of their own.
fn call(printer: &MpiPrinter<'_, '_>, function: &str, args: &[String]) -> String {
    let (indent, head) = (4 * printer.names.depth(), format!("TRY({function}("));
    let mut text = head.clone();
    let mut len = indent + head.len();
    if len + args.join(", ").len() + "));".len() <= WIDTH {
        return format!("{head}{}));", args.join(", "));
    }
    for (at, arg) in args.iter().enumerate() {
        let end = if at + 1 == args.len() { "));" } else { "," };
        if at > 0 && len + 1 + arg.len() + end.len() > WIDTH {
            len = indent + head.len();
            text.push('\n');
            text += &" ".repeat(len);
        } else if at > 0 {
            len += 1;
            text.push(' ');
        }
        len += arg.len() + end.len();
        text += arg;
        text += end;
    }
    text
}
