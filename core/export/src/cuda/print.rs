//! Prints the loop form as CUDA text: a function for each function of the form, with the author's names and loops, and
//! each statement below the line of its source.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::words::{HEADER_WORDS, SCRATCH_WORDS};
use crate::loops::cpp::NumberText;
use crate::loops::ir::{At, LoopNode, LoopPlace, NodeId, Number, Piece, binary, times};
use crate::loops::machine::RunFacts;
use crate::loops::reserved::mentions;
use crate::loops::scopes::NameScopes;
use crate::loops::{LoopFunction, Loops};
use roundelay_core::schedule::{Buffer, SignalKind};
use roundelay_core::syntax::ast::BinOp;
use roundelay_core::syntax::expr_text::{Target, Text};

/// The width of the book's page.
const WIDTH: usize = 100;

/// The names that the text uses itself.
const OWN: [&str; 3] = ["lane", "me", "nranks"];

/// Prints the functions of a kernel.
pub(super) struct KernelPrinter<'t> {
    loops: &'t Loops,
    facts: &'t RunFacts,
    /// Whether slots hold lines, which are passed on at once.
    lined: bool,
    /// The moves after which the parts of a stream meet.
    meets: &'t BTreeSet<NodeId>,
    /// The passes that the kernel performs.
    passes: BTreeSet<&'static str>,
    /// The names of the functions.
    functions: Vec<String>,
    names: NameScopes,
    text: String,
}

/// The text of a kernel's functions.
pub(super) struct KernelFunctions {
    /// The definitions; the last is that of the whole algorithm.
    pub(super) text: String,
    /// The name of the last function.
    pub(super) name: String,
    /// The passes that the kernel performs.
    pub(super) passes: BTreeSet<&'static str>,
}

/// Returns the functions of a kernel.
pub(super) fn functions(
    loops: &Loops,
    facts: &RunFacts,
    lined: bool,
    meets: &BTreeSet<NodeId>,
) -> KernelFunctions {
    let mut printer = KernelPrinter {
        loops,
        facts,
        lined,
        meets,
        passes: BTreeSet::new(),
        functions: Vec::new(),
        names: NameScopes::new(&OWN),
        text: String::new(),
    };
    let mut text = String::new();
    for function in &loops.functions {
        text += &printer.function(function);
    }
    let (name, body) = (loops.algorithm.clone(), loops.body.clone());
    text += &printer.function(&LoopFunction { name, params: Vec::new(), body });
    let name = printer.functions.pop().unwrap_or_default();
    let mut numbers = String::new();
    if mentions(&text, "nranks") {
        let _ = writeln!(numbers, "constexpr num nranks = {};", loops.nranks);
    }
    for ((number, table), at) in (0..).zip(&loops.tables.all).zip(firsts(loops)) {
        let sizes: Vec<_> =
            table.dims(loops.nranks).iter().map(|size| format!("[{size}]")).collect();
        let words = if table.has_pieces() { "[4]" } else { "" };
        let name = name_of(number);
        let _ = writeln!(
            numbers,
            "constexpr num {name} = {at}; // the first word of {}{words}",
            sizes.concat()
        );
    }
    KernelFunctions { text: numbers + &text, name, passes: printer.passes }
}

/// Returns the first word of each table, among the facts.
fn firsts(loops: &Loops) -> impl Iterator<Item = usize> + '_ {
    let first = HEADER_WORDS + SCRATCH_WORDS * loops.scratch.len();
    loops.tables.all.iter().scan(first, |next, table| {
        let first = *next;
        *next += table.entries.iter().map(Vec::len).sum::<usize>();
        Some(first)
    })
}

/// Returns the name of a table by its number.
fn name_of(table: usize) -> String {
    format!("table_{table}")
}

impl KernelPrinter<'_> {
    fn function(&mut self, function: &LoopFunction) -> String {
        self.names.begin();
        let name = self.names.global(&function.name);
        let params: Vec<_> =
            function.params.iter().map(|var| format!("const num {}", self.declare(*var))).collect();
        self.nodes(&function.body);
        let body = std::mem::take(&mut self.text);
        let params = std::iter::once("Lane& lane".to_owned()).chain(params);
        let params = params.collect::<Vec<_>>().join(", ");
        let head = format!("\nROUNDELAY_DEVICE void {name}({params}) {{\n");
        let head = if head.len() <= WIDTH + 2 {
            head
        } else {
            format!("\nROUNDELAY_DEVICE void {name}(\n    {params}) {{\n")
        };
        self.functions.push(name);
        let me = if mentions(&body, "me") { "    const num me = lane.me;\n" } else { "" };
        format!("{head}{me}{body}}}\n")
    }

    fn declare(&mut self, var: usize) -> String {
        self.names.declare(var, &self.loops.vars[var])
    }

    fn line(&mut self, text: &str) {
        let _ = writeln!(self.text, "{:1$}{text}", "", 4 * self.names.depth());
    }

    /// Prints the author's line number.
    fn at(&mut self, at: At) {
        if let Some(file) = self.loops.files.get(at.file).filter(|_| at.line > 0) {
            let file = file.replace('\\', "\\\\").replace('"', "\\\"");
            let _ = writeln!(self.text, "#line {} \"{file}\"", at.line);
        }
    }

    /// Prints a statement below the author's line number.
    fn statement(&mut self, at: At, text: &str) {
        self.at(at);
        self.line(text);
    }

    /// Prints the statements of a block whose head declares a variable.
    fn nested(&mut self, var: usize, head: impl Fn(&str) -> String, body: &[LoopNode], end: &str) {
        self.names.open();
        let name = self.declare(var);
        let head = head(&name);
        let _ = writeln!(self.text, "{:1$}{head}", "", 4 * (self.names.depth() - 1));
        self.nodes(body);
        self.names.close();
        self.line(end);
    }

    fn block(&mut self, body: &[LoopNode]) {
        self.names.open();
        self.nodes(body);
        self.names.close();
    }

    /// Prints the statements of a scope that ends after them. A block that comes last needs no braces: it ends with the
    /// scope.
    fn nodes(&mut self, nodes: &[LoopNode]) {
        for (nth, node) in nodes.iter().enumerate() {
            match node {
                LoopNode::Block { body, .. } if nth + 1 == nodes.len() => self.nodes(body),
                node => self.node(node),
            }
        }
    }

    fn node(&mut self, node: &LoopNode) {
        match node {
            LoopNode::Message { .. } => unreachable!("a kernel has no messages"),
            LoopNode::Let(var, value) => {
                let value = self.number(value).code;
                let name = self.declare(*var);
                self.line(&format!("const num {name} = {value};"));
            }
            LoopNode::Loop { var, lo, hi, body } => {
                let (lo, hi) = (self.number(lo).code, self.number(hi));
                let head = |name: &str| {
                    let more = Target::Cpp.binary(BinOp::Lt, Text::atom(name.into()), hi.clone());
                    format!("for (num {name} = {lo}; {}; ++{name}) {{", more.code)
                };
                self.nested(*var, head, body, "}");
            }
            LoopNode::Streams { at, var, lo, hi, body } => {
                let (lo, hi) = (self.number(lo).code, self.number(hi).code);
                let nested = forks(self.loops, body);
                self.at(*at);
                let head = |name: &str| {
                    format!("lane.parallel<{nested}>({lo}, {hi}, [&](const num {name}) {{")
                };
                self.nested(*var, head, body, "});");
            }
            LoopNode::If(arms, otherwise) => {
                for (nth, (condition, body)) in arms.iter().enumerate() {
                    let condition = self.number(condition).code;
                    let word = if nth == 0 { "if" } else { "} else if" };
                    self.line(&format!("{word} ({condition}) {{"));
                    self.block(body);
                }
                if !otherwise.is_empty() {
                    self.line("} else {");
                    self.block(otherwise);
                }
                self.line("}");
            }
            LoopNode::Block { body, .. } => {
                self.line("{");
                self.block(body);
                self.line("}");
            }
            LoopNode::On { stream, body } => {
                self.line(&format!("lane.on({stream}, [&] {{"));
                self.block(body);
                self.line("});");
            }
            LoopNode::Do { at, function, args } => {
                let args = args.iter().map(|arg| self.number(arg).code);
                let args: Vec<_> = std::iter::once("lane".to_owned()).chain(args).collect();
                let call = format!("{}({});", self.functions[*function], args.join(", "));
                self.statement(*at, &call);
            }
            LoopNode::Signal { at, post, kind, peer, lane } => {
                let peer = self.number(peer).code;
                let name = match kind {
                    SignalKind::Ack => "Ack",
                    SignalKind::Data => "DataSignal",
                    SignalKind::Head => "Head",
                    SignalKind::Tail => "Tail",
                    SignalKind::Fork => "Fork",
                    SignalKind::Join => "Join",
                    SignalKind::Local => unreachable!("a kernel's schedule keeps its signals"),
                };
                let way = if *post { "Tx" } else { "Rx" };
                let lane = lane.as_ref().map(|lane| format!(".in({})", self.number(lane).code));
                let lane = lane.unwrap_or_default();
                self.statement(*at, &format!("lane{lane}.{way}{name}({peer});"));
            }
            LoopNode::Move { at, srcs, dsts, .. } => {
                let mut text = format!("lane.{};", self.moved(srcs, dsts));
                if 4 * self.names.depth() + text.len() > WIDTH {
                    let more = format!(",\n{:1$}lane.", "", 4 * (self.names.depth() + 1));
                    text = text.replace(", lane.", &more);
                }
                if self.meets.contains(&at.id) {
                    // On the same line, which is the author's.
                    text += " lane.meet();";
                }
                self.statement(*at, &text);
            }
        }
    }

    fn moved(&mut self, srcs: &[LoopPlace], dsts: &[LoopPlace]) -> String {
        let slot = |place: &LoopPlace| self.lined && place.step.is_some();
        let places = |all: &[LoopPlace]| {
            all.iter().map(|place| self.place(place)).collect::<Vec<_>>().join(", ")
        };
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
            self.passes.insert(name);
            return text;
        }
        match (srcs, dsts) {
            ([src], _) => format!("copy({}, {})", self.place(src), places(dsts)),
            ([into, src], [dst]) if self.place(into) == self.place(dst) => {
                format!("reduce({}, {})", self.place(src), self.place(dst))
            }
            _ => format!("fold({{{}}}, {{{}}})", places(srcs), places(dsts)),
        }
    }

    fn place(&self, place: &LoopPlace) -> String {
        let buffer = match place.buffer {
            Buffer::Input => "INPUT".to_owned(),
            Buffer::Output => "OUTPUT".to_owned(),
            Buffer::Scratch(id) if id.index() == 0 => "SCRATCH".to_owned(),
            Buffer::Scratch(id) => format!("SCRATCH + {id}"),
        };
        let piece = match &place.piece {
            Piece::Entry(table, indices) => {
                format!("lane.piece({})", self.word(*table, indices).code)
            }
            Piece::Computed { lo, width, slot, base } => {
                let plain = [slot, base].into_iter().all(|number| *number == Number::Const(0));
                let numbers = [lo, width, slot, base];
                let numbers = if plain { &numbers[..2] } else { &numbers[..] };
                let numbers: Vec<_> =
                    numbers.iter().map(|number| self.number(number).code).collect();
                format!("{{{}}}", numbers.join(", "))
            }
        };
        let of = place.of.as_ref().map(|of| self.number(of).code);
        match (&place.step, of) {
            (Some(step), of) if self.lined => {
                let (of, step) = (of.unwrap_or_else(|| "me".into()), self.number(step).code);
                format!("lane.slot({of}, {buffer}, {piece}, {step})")
            }
            (_, Some(of)) => format!("lane.of({of}, {buffer}, {piece})"),
            (_, None) => format!("lane.mine({buffer}, {piece})"),
        }
    }

    /// Returns the number of the first word of an entry.
    fn word(&self, table: usize, indices: &[Number]) -> Text {
        let of = &self.loops.tables.all[table];
        let mut index = Number::Const(0);
        let rank = of.by_rank.then_some(&Number::Me);
        for (number, size) in indices.iter().chain(rank).zip(of.dims(self.loops.nranks)) {
            index = match index {
                Number::Const(0) => number.clone(),
                index => binary(BinOp::Add, times(index, size as i64), number.clone()),
            };
        }
        let index = times(index, if of.has_pieces() { 4 } else { 1 });
        let first = Text::atom(name_of(table));
        let plus = |sum, number: &Number| Target::Cpp.infix(BinOp::Add, sum, self.number(number));
        match &index {
            Number::Const(0) => first,
            Number::Binary(BinOp::Add, sides) => plus(plus(first, &sides[0]), &sides[1]),
            index => plus(first, index),
        }
    }

    fn number(&self, number: &Number) -> Text {
        let text = NumberText {
            me: "me",
            ty: Some("num"),
            nranks: (self.loops.nranks, "nranks"),
            var: &|var| self.names.of(var).to_owned(),
            entry: &|table, indices| format!("lane.entry({})", self.word(table, indices).code),
            least: &self.facts.least,
        };
        text.text(number)
    }
}

/// Whether statements may fork streams.
fn forks(loops: &Loops, body: &[LoopNode]) -> bool {
    let forks = |node: &LoopNode| match node {
        LoopNode::Streams { .. } => true,
        LoopNode::Do { function, .. } => forks(loops, &loops.functions[*function].body),
        _ => false,
    };
    body.iter().any(|node| node.any(&forks))
}
