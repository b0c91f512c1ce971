//! Writes a form as text.

use std::collections::HashMap;
use std::fmt::{Display, Write as _};

use crate::loops::form::Loops;
use crate::loops::ir::{At, LoopNode, LoopPlace, MessageStep, Number, Piece};
use roundelay_core::program::ir::Op;
use roundelay_core::program::text::write_expr;
use roundelay_core::schedule::Buffer;
use roundelay_core::schedule::text::signal_name;

/// Returns the text of a form.
pub fn print(loops: &Loops) -> String {
    let mut many: HashMap<&str, u32> = HashMap::new();
    for name in &loops.vars {
        *many.entry(name).or_default() += 1;
    }
    let name = |(id, name): (usize, &String)| {
        if many[&**name] == 1 { format!("%{name}") } else { format!("%{name}#{id}") }
    };
    let vars = loops.vars.iter().enumerate().map(name).collect();
    let mut writer = LoopsWriter { loops, vars, text: String::new() };
    writer.header();
    for function in &loops.functions {
        let params: Vec<_> = function.params.iter().map(|var| &*writer.vars[*var]).collect();
        let head = format!("step {}({}) {{", function.name, params.join(", "));
        writer.block(0, &head, &function.body, "}");
    }
    writer.block(0, "body {", &loops.body, "}");
    writer.text
}

struct LoopsWriter<'l> {
    loops: &'l Loops,
    /// The texts of the variables.
    vars: Vec<String>,
    text: String,
}

impl LoopsWriter<'_> {
    fn header(&mut self) {
        let Loops { algorithm, collective, nranks, root, pieces, of_program, .. } = self.loops;
        let of = if *of_program { "of program" } else { "of schedule" };
        let _ = writeln!(
            self.text,
            "loops {algorithm} {collective} nranks {nranks} root {root} pieces {pieces} {of}"
        );
        for file in &self.loops.files {
            let _ = writeln!(self.text, "file {file}");
        }
        for (id, name) in self.loops.scratch.iter().enumerate() {
            let _ = writeln!(self.text, "scratch {name}#{id}");
        }
        for (id, table) in self.loops.tables.all.iter().enumerate() {
            let mut head = vec![format!("t{id}")];
            head.extend(table.sizes.iter().map(ToString::to_string));
            head.extend(table.by_rank.then(|| "by rank".to_owned()));
            let entries = table.entries.iter().map(|entry| {
                let numbers: Vec<_> = entry.iter().map(ToString::to_string).collect();
                numbers.join(" ")
            });
            let entries: Vec<_> = entries.collect();
            let _ = writeln!(self.text, "{} = {}", head.join(" "), entries.join(", "));
        }
    }

    fn put(&mut self, depth: usize, line: &str) {
        let _ = writeln!(self.text, "{}{line}", "  ".repeat(depth));
    }

    fn block(&mut self, depth: usize, head: &str, body: &[LoopNode], end: &str) {
        self.put(depth, head);
        for node in body {
            self.node(depth + 1, node);
        }
        if !end.is_empty() {
            self.put(depth, end);
        }
    }

    fn node(&mut self, depth: usize, node: &LoopNode) {
        let at = |at: &At| match at {
            At { line: 0, .. } => String::new(),
            At { file: 0, line, .. } => format!(" @{line}"),
            At { file, line, .. } => format!(" @{file}:{line}"),
        };
        match node {
            LoopNode::Let(var, value) => {
                self.put(depth, &format!("let {} = {}", self.vars[*var], self.number(value)));
            }
            LoopNode::Loop { var, lo, hi, body } => {
                let (lo, hi) = (self.number(lo), self.number(hi));
                let head = format!("for {} in {lo} .. {hi} {{", self.vars[*var]);
                self.block(depth, &head, body, "}");
            }
            LoopNode::Streams { at: place, var, lo, hi, body } => {
                let (lo, hi) = (self.number(lo), self.number(hi));
                let head = format!("streams {} in {lo} .. {hi} {{{}", self.vars[*var], at(place));
                self.block(depth, &head, body, "}");
            }
            LoopNode::If(arms, otherwise) => {
                for (nth, (condition, body)) in arms.iter().enumerate() {
                    let word = if nth == 0 { "if" } else { "} else if" };
                    self.block(depth, &format!("{word} {} {{", self.number(condition)), body, "");
                }
                match &otherwise[..] {
                    [] => self.put(depth, "}"),
                    body => self.block(depth, "} else {", body, "}"),
                }
            }
            LoopNode::Block { at: place, body } => {
                self.block(depth, &format!("block {{{}", at(place)), body, "}");
            }
            LoopNode::On { stream, body } => {
                self.block(depth, &format!("on {stream} {{"), body, "}");
            }
            LoopNode::Do { at: place, function, args } => {
                let args = list(args.iter().map(|arg| self.number(arg)));
                self.put(depth, &format!("do {function} ({args}){}", at(place)));
            }
            LoopNode::Signal { at: place, post, kind, peer, lane } => {
                let word = if *post { "post" } else { "wait" };
                let (kind, peer) = (signal_name(*kind), self.number(peer));
                let lane = lane.as_ref().map(|lane| format!(" lane {}", self.number(lane)));
                let lane = lane.unwrap_or_default();
                self.put(depth, &format!("{word} {kind} {peer}{lane}{}", at(place)));
            }
            LoopNode::Move { at: place, chain, srcs, dsts } => {
                let word = match srcs.len() {
                    1 => "copy",
                    _ if *chain => "chain",
                    _ => "fold",
                };
                let [srcs, dsts] =
                    [srcs, dsts].map(|all| list(all.iter().map(|place| self.place(place))));
                self.put(depth, &format!("{word} {srcs} -> {dsts}{}", at(place)));
            }
            LoopNode::Message { at: place, send, request, step } => {
                let request = self.number(request);
                let text = match step {
                    MessageStep::Begin { peer, tag, place } => {
                        let word = if *send { "send" } else { "receive" };
                        let (peer, tag) = (self.number(peer), self.number(tag));
                        format!("{word} {request} {peer} tag {tag} {}", self.place(place))
                    }
                    MessageStep::Finish(many) => {
                        let word = if *send { "sent" } else { "received" };
                        format!("{word} {request}, {}", self.number(many))
                    }
                };
                self.put(depth, &format!("{text}{}", at(place)));
            }
        }
    }

    fn place(&self, place: &LoopPlace) -> String {
        let buffer = match place.buffer {
            Buffer::Input => "input".to_owned(),
            Buffer::Output => "output".to_owned(),
            Buffer::Scratch(id) => format!("{}#{id}", self.loops.scratch[id.index()]),
        };
        let piece = match &place.piece {
            Piece::Entry(table, indices) => self.entry(*table, indices),
            piece @ Piece::Computed { .. } => {
                list(piece.shown().into_iter().map(|number| self.number(number)))
            }
        };
        let of = place.of.as_ref().map(|of| format!(" of {}", self.number(of)));
        let step = place.step.as_ref().map(|step| format!(" step {}", self.number(step)));
        format!("{buffer}[{piece}]{}{}", of.unwrap_or_default(), step.unwrap_or_default())
    }

    fn entry(&self, table: usize, indices: &[Number]) -> String {
        let indices: Vec<_> = indices.iter().map(|index| self.number(index)).collect();
        format!("t{table}[{}]", indices.join(", "))
    }

    fn number(&self, number: &Number) -> String {
        let mut text = String::new();
        let written = write_expr(&mut text, number, &mut |part, text| {
            text.push_str(&match part.op {
                Op::Var(var) => self.vars[var.index()].clone(),
                Op::Local => "me".to_owned(),
                Op::Entry(table) => self.entry(table as usize, &part.args),
                _ => return false,
            });
            true
        });
        written.expect("a string grows");
        text
    }
}

fn list(items: impl Iterator<Item = impl Display>) -> String {
    items.map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}
