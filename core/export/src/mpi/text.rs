//! Prints the loop form of messages as C: a function for the ranks that have the same statements with different numbers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Parts;
use super::names::harmless;
use crate::loops::Loops;
use crate::loops::cpp::{NumberText, array, said};
use crate::loops::ir::{LoopNode, LoopPlace, MessageStep, Number, Piece};
use crate::loops::machine::{Machine, RunFacts};
use crate::loops::reserved::mentions;
use crate::picture::wrapped;
use roundelay_core::messages::FormPart;
use roundelay_core::schedule::Buffer;
use roundelay_core::syntax::Source;

/// The width of a line, in characters.
pub(super) const WIDTH: usize = 100;

/// Prints the functions that exchange messages, and the tables that they read.
pub(super) struct MpiPrinter<'a> {
    pub(super) loops: &'a Loops,
    pub(super) facts: &'a RunFacts,
    pub(super) parts: &'a Parts,
    pub(super) source: Option<&'a Source>,
    /// The names of the tables that are read: the meaning of their numbers.
    pub(super) roles: BTreeMap<usize, &'static str>,
    /// The peers that have names in the current function.
    pub(super) peers: [Option<String>; 2],
}

/// The names of the peer of all sends and of the peer of all receives, in the order of [`MpiPrinter::peers`].
const PEERS: [&str; 2] = ["from", "to"];

impl<'a> MpiPrinter<'a> {
    /// Returns the tables and functions; the last function is `exchange`.
    pub(super) fn functions(mut self, form: &FormPart<'_>) -> String {
        let (mut functions, mut cases) = (String::new(), String::new());
        let mut shapes: Vec<(&[LoopNode], Vec<String>)> = Vec::new();
        for (rank, _) in &form.of {
            let nodes = self.nodes_of(rank.0);
            match shapes.iter_mut().find(|(known, _)| std::ptr::eq(*known, nodes)) {
                Some((_, own)) => own.push(rank.to_string()),
                None => shapes.push((nodes, vec![rank.to_string()])),
            }
        }
        if let [(nodes, _)] = shapes[..] {
            let all = || "What every rank does.".to_owned();
            let comment = form.only().map_or_else(all, |rank| format!("What rank {rank} does."));
            self.function(&comment, "exchange", nodes, &mut functions);
        } else {
            // The other ranks have no statements.
            shapes.retain(|(nodes, _)| !nodes.is_empty());
            for (nth, (nodes, own)) in shapes.into_iter().enumerate() {
                let plural = if own.len() == 1 { "Rank" } else { "Ranks" };
                let (comment, name) = (own.join(", "), format!("exchange_{nth}"));
                self.function(&format!("{plural} {comment}."), &name, nodes, &mut functions);
                let own = own.join(":\n    case ");
                let _ = writeln!(cases, "    case {own}:\n        return {name}(r);");
            }
            let _ = writeln!(
                functions,
                "static int exchange(run *r) {{\n    switch (r->rank) {{\n{cases}    default:\n        return MPI_SUCCESS;\n    }}\n}}\n"
            );
        }
        self.definitions() + &functions
    }

    /// Returns the statements of a rank.
    fn nodes_of(&self, rank: u32) -> &'a [LoopNode] {
        let Loops { tables, nranks, functions, body, .. } = self.loops;
        let mut machine = Machine::new(&tables.all, *nranks, rank, 0);
        let own = match &body[..] {
            [LoopNode::If(arms, otherwise)] => {
                let arm = arms.iter().find(|(condition, _)| machine.number(condition) == Ok(1));
                arm.map_or(otherwise, |(_, body)| body)
            }
            _ => body,
        };
        match &own[..] {
            [LoopNode::Do { function, .. }] => &functions[*function].body,
            own => own,
        }
    }

    fn function(&mut self, comment: &str, name: &str, nodes: &[LoopNode], functions: &mut String) {
        let mut body = String::new();
        self.peers = [false, true].map(|send| self.peer(nodes, send));
        for (peer, name) in self.peers.iter().zip(PEERS).rev() {
            if let Some(peer) = peer {
                let _ = writeln!(body, "    const int {name} = {peer};");
            }
        }
        self.nodes(nodes, 1, &mut body);
        if mentions(&body, "rank") {
            body.insert_str(0, "    const int rank = r->rank;\n");
        }
        if body.is_empty() {
            body += "    (void)r;\n";
        }
        let comment = broken(&format!("/* {comment} */"), " * ");
        let _ = writeln!(
            functions,
            "{comment}static int {name}(run *r) {{\n{body}    return MPI_SUCCESS;\n}}\n"
        );
    }

    /// Returns the peer of all sends, or of all receives, if it has a name: it is one for all of several messages, and
    /// neither a plain number nor one that changes with the iteration.
    fn peer(&self, nodes: &[LoopNode], send: bool) -> Option<String> {
        let mut peers = Vec::new();
        let mut open: Vec<_> = nodes.iter().collect();
        while let Some(node) = open.pop() {
            match node {
                LoopNode::Loop { body, .. } => open.extend(body),
                LoopNode::Message { send: of, step: MessageStep::Begin { peer, .. }, .. } => {
                    peers.extend((*of == send).then_some(peer));
                }
                _ => {}
            }
        }
        let code = |peer: &&Number| (!varies(peer)).then(|| self.code(peer));
        let codes = peers.iter().map(code).collect::<Option<Vec<_>>>()?;
        let first = codes.first().filter(|first| first.contains(' '))?;
        (codes.len() > 1 && codes.iter().all(|code| code == first)).then(|| first.clone())
    }

    fn code(&self, number: &Number) -> String {
        let text = NumberText {
            me: "rank",
            ty: None,
            nranks: (self.loops.nranks, "RANKS"),
            var: &|var| self.loops.vars[var].clone(),
            entry: &|table, indices| self.entry(table, indices),
            least: &self.facts.least,
        };
        text.text(number).code
    }

    fn entry(&self, table: usize, indices: &[Number]) -> String {
        let rank = if self.loops.tables.all[table].by_rank { "[rank]" } else { "" };
        let indices = indices.iter().map(|index| format!("[{}]", self.code(index)));
        format!("{}_{table}{}{rank}", self.roles[&table], indices.collect::<String>())
    }

    /// Returns a number; a table that it is looked up in is named by its role.
    fn value(&mut self, role: &'static str, number: &Number) -> String {
        if let Number::Entry(table, _) = number {
            self.roles.entry(*table).or_insert(role);
        }
        self.code(number)
    }

    fn nodes(&mut self, nodes: &[LoopNode], depth: usize, text: &mut String) {
        let indent = "    ".repeat(depth);
        let mut last = 0;
        for node in nodes {
            match node {
                LoopNode::Loop { var, lo, hi, body } => {
                    let (var, lo, hi) = (&self.loops.vars[*var], self.code(lo), self.code(hi));
                    let _ =
                        writeln!(text, "{indent}for (int {var} = {lo}; {var} < {hi}; {var}++) {{");
                    self.nodes(body, depth + 1, text);
                    let _ = writeln!(text, "{indent}}}");
                    last = 0;
                }
                LoopNode::Message { at, .. } | LoopNode::Move { at, .. } => {
                    let line = &at.line;
                    if *line > 0 && last != *line {
                        last = *line;
                        let said = self.source.and_then(|source| said(Some(source), *line));
                        if let Some(said) = said {
                            let _ = writeln!(text, "{indent}// {}", harmless(&said));
                        }
                    }
                    let (function, args) = self.statement(node);
                    call(&format!("{indent}TRY({function}("), &args, text);
                }
                _ => unreachable!("a rank has messages, moves and loops"),
            }
        }
    }

    /// Returns the function that does a statement, and its arguments.
    fn statement(&mut self, node: &LoopNode) -> (&'static str, Vec<String>) {
        let run = "r".to_owned();
        match node {
            LoopNode::Message { send, request, step, .. } => {
                let request = self.value("request", request);
                match step {
                    MessageStep::Begin { peer, tag, place } => {
                        let (way, peer) = (usize::from(*send), self.value("peer", peer));
                        let named = self.peers[way].as_ref() == Some(&peer);
                        let peer = if named { PEERS[way].to_owned() } else { peer };
                        let tag = self.value("tag", tag);
                        let function = if *send { "start_send" } else { "start_receive" };
                        (function, vec![run, request, peer, tag, self.place(place)])
                    }
                    MessageStep::Finish(many) => {
                        let requests = if *send { "sends" } else { "receives" };
                        let first = format!("&r->{requests}[{request}]");
                        match many {
                            Number::Const(1) => ("finish", vec![first]),
                            many => ("finish_all", vec![self.value("requests", many), first]),
                        }
                    }
                }
            }
            LoopNode::Move { srcs, dsts, .. } => {
                let to = self.place(&dsts[0]);
                let mut from: Vec<_> = srcs.iter().map(|src| self.place(src)).collect();
                match &mut from[..] {
                    [from] => ("copy", vec![run, to, std::mem::take(from)]),
                    [first, from] if *first == to => {
                        ("reduce", vec![run, to, std::mem::take(from)])
                    }
                    all => {
                        let all = format!("(const span[]){{{}}}", all.join(", "));
                        ("fold", vec![run, to, srcs.len().to_string(), all])
                    }
                }
            }
            _ => unreachable!("other statements are no calls"),
        }
    }

    fn place(&mut self, place: &LoopPlace) -> String {
        let Piece::Computed { lo, width, slot, base } = &place.piece else {
            unreachable!("each number has a table of its own");
        };
        let (at, len) = (self.value("piece", lo), self.value("pieces", width));
        let name = match place.buffer {
            Buffer::Input => "in",
            Buffer::Output => "out",
            Buffer::Scratch(id) => {
                let name = &self.parts.scratch[id.index()];
                let slot = self.value("slot", slot);
                let first = self.value("piece", base);
                if first == at {
                    return format!("slot(r, r->{name}, {slot}, {at}, {len})");
                }
                return format!("within(r, r->{name}, {slot}, {first}, {at}, {len})");
            }
        };
        format!("part(r, r->{name}, {at}, {len})")
    }

    /// Returns the definitions of all tables that are read.
    fn definitions(&self) -> String {
        let Loops { tables, nranks, .. } = self.loops;
        let mut text = String::new();
        for (number, role) in &self.roles {
            let (name, entry) = (format!("{role}_{number}"), |entry: &[i64]| entry[0].to_string());
            let array = array(&name, &tables.all[*number], (*nranks, "RANKS"), entry);
            let array = format!("static const int {array};");
            text.extend(array.lines().map(|line| broken(line, "    ")));
        }
        if text.is_empty() {
            return text;
        }
        format!("/* Numbers by iteration, where there are loops, and by rank. */\n{text}\n")
    }
}

/// Whether a number changes with the iteration of a loop, or is in a table.
fn varies(number: &Number) -> bool {
    matches!(number, Number::Var(_) | Number::Entry(..)) || number.parts().into_iter().any(varies)
}

/// Prints a call that begins with `head`. Arguments that do not fit the line go on lines of their own.
fn call(head: &str, args: &[String], text: &mut String) {
    let whole = format!("{head}{}));", args.join(", "));
    if whole.len() <= WIDTH {
        let _ = writeln!(text, "{whole}");
        return;
    }
    let mut line = head.to_owned();
    for (at, arg) in args.iter().enumerate() {
        let end = if at + 1 == args.len() { "));" } else { "," };
        if at > 0 && line.len() + 1 + arg.len() + end.len() > WIDTH {
            let _ = writeln!(text, "{line}");
            line = " ".repeat(head.len());
        } else if at > 0 {
            line.push(' ');
        }
        line += arg;
        line += end;
    }
    let _ = writeln!(text, "{line}");
}

/// Returns a line as several of at most [`WIDTH`] characters; further lines begin with `more`.
fn broken(line: &str, more: &str) -> String {
    let indent = &line[..line.len() - line.trim_start().len()];
    let words = wrapped(line, WIDTH - indent.len() - more.len());
    format!("{indent}{}\n", words.join(&format!("\n{indent}{more}")))
}
