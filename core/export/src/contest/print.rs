//! Prints the loop form as C++: scopes and names, and statements below the source line that they come from.

use std::fmt::Write as _;

use crate::loops::Loops;
use crate::loops::cpp::{NumberText, array};
use crate::loops::ir::{At, LoopNode, LoopPlace, LoopTable, Number, Piece, binary};
use crate::loops::machine::RunFacts;
use crate::loops::reserved::identifier;
use crate::loops::reserved::mentions;
use crate::loops::scopes::NameScopes;
use roundelay_core::schedule::{Buffer, SignalKind};
use roundelay_core::syntax::ast::BinOp;
use roundelay_core::syntax::expr_text::{Target, Text};

/// Names that the generated text uses itself.
const TAKEN: [&str; 10] =
    ["lane", "run", "me", "nranks", "slave", "stream", "streams", "forked", "At", "Piece"];

/// The objects that statements use, as parameters of a function and as its arguments.
const OBJECTS: [(&str, &str); 4] = [
    ("Run& run", "run"),
    ("Lane lane", "lane"),
    ("Streams& streams", "streams"),
    ("u32 stream", "stream"),
];

/// Prints nodes.
pub(super) struct Printer<'t> {
    loops: &'t Loops,
    facts: &'t RunFacts,
    /// Returns a line of the source with its number, for a comment.
    said: &'t dyn Fn(u32) -> Option<String>,
    /// The parameters of each function in C++: the objects that it uses.
    heads: Vec<[bool; 4]>,
    /// Whether the statements are inside a loop whose iterations have streams.
    forked: bool,
    names: NameScopes,
    line: Option<u32>,
    text: String,
}

impl<'t> Printer<'t> {
    /// Returns the text of all functions, and the statements of the body.
    pub(super) fn class(
        loops: &'t Loops,
        facts: &'t RunFacts,
        said: &'t dyn Fn(u32) -> Option<String>,
    ) -> (String, String) {
        let mut printer = Self {
            loops,
            facts,
            said,
            heads: Vec::new(),
            forked: false,
            names: NameScopes::new(&TAKEN),
            line: None,
            text: String::new(),
        };
        let mut functions = String::new();
        for (number, function) in loops.functions.iter().enumerate() {
            printer.names.begin();
            printer.line = None;
            printer.forked = true;
            let params: Vec<_> = function
                .params
                .iter()
                .map(|var| format!("i64 {}", printer.declare(*var)))
                .collect();
            printer.nodes(&function.body);
            let body = std::mem::take(&mut printer.text);
            let me = me(&body);
            let uses =
                OBJECTS.map(|(_, name)| mentions(&body, name) || (name == "run" && !me.is_empty()));
            let objects = OBJECTS.into_iter().zip(uses);
            let objects =
                objects.filter(|(_, used)| *used).map(|((object, _), _)| object.to_owned());
            let params: Vec<_> = objects.chain(params).collect();
            printer.heads.push(uses);
            let _ = write!(
                functions,
                "\nHcclResult {}({}) {{\n{me}{body}    return HCCL_SUCCESS;\n}}\n",
                printer.function(number),
                params.join(", ")
            );
        }
        printer.names.begin();
        printer.line = None;
        printer.forked = false;
        printer.nodes(&loops.body);
        (functions, printer.text)
    }

    /// Returns the name of a function: that of the form with a capital letter, and its number if another has that name.
    fn function(&self, number: usize) -> String {
        let name = &self.loops.functions[number].name;
        let first = self.loops.functions.iter().position(|function| function.name == *name);
        let nth = if first == Some(number) { String::new() } else { format!("_{number}") };
        format!("Step_{}{nth}", identifier(name))
    }

    fn indent(&self) -> String {
        "    ".repeat(self.names.depth())
    }

    fn declare(&mut self, var: usize) -> String {
        self.names.declare(var, &self.loops.vars[var])
    }

    /// Opens a scope whose head declares a variable, and prints the head.
    fn open(&mut self, var: usize, head: impl FnOnce(&str) -> String) -> String {
        self.names.open();
        let name = self.declare(var);
        let head = head(&name);
        let _ = writeln!(self.text, "{}{head}", "    ".repeat(self.names.depth() - 1));
        name
    }

    /// Prints a statement on a line of its own.
    fn put(&mut self, statement: &str) {
        let _ = writeln!(self.text, "{}{statement}", self.indent());
    }

    /// Prints a source line as a comment, once for all statements of the line.
    fn at(&mut self, at: At) {
        // Lines of other files must not be taken for lines of this file.
        let line = if at.file == 0 { at.line } else { 0 };
        if self.line != Some(line) {
            self.line = Some(line);
            if let Some(said) = (self.said)(line) {
                self.put(&format!("// {said}"));
            }
        }
    }

    /// Prints the statements of a block, after its opening line.
    fn body(&mut self, nodes: &[LoopNode]) {
        self.names.open();
        self.line = None;
        self.nodes(nodes);
        self.names.close();
        self.line = None;
    }

    /// Prints the statements of a scope that ends after them. A block that comes last needs no braces: it ends with the
    /// scope.
    pub(super) fn nodes(&mut self, nodes: &[LoopNode]) {
        for (nth, node) in nodes.iter().enumerate() {
            match node {
                LoopNode::Block { at, body } if nth + 1 == nodes.len() => {
                    self.at(*at);
                    self.line = None;
                    self.nodes(body);
                }
                node => self.node(node),
            }
        }
    }

    fn node(&mut self, node: &LoopNode) {
        match node {
            LoopNode::Let(var, value) => {
                let value = self.number(value).code;
                let name = self.declare(*var);
                self.put(&format!("const i64 {name} = {value};"));
            }
            LoopNode::Loop { var, lo, hi, body } => {
                let (lo, hi) = (self.number(lo).code, self.operand(BinOp::Lt, hi));
                self.open(*var, |name| {
                    format!("for (i64 {name} = {lo}; {name} < {hi}; ++{name}) {{")
                });
                self.line = None;
                self.nodes(body);
                self.names.close();
                self.line = None;
                self.put("}");
            }
            LoopNode::Streams { at, var, lo, hi, body } => {
                self.at(*at);
                self.streams(*var, [lo, hi], body);
            }
            LoopNode::If(arms, otherwise) => {
                for (at, (condition, body)) in arms.iter().enumerate() {
                    let condition = self.number(condition).code;
                    let word = if at == 0 { "if" } else { "} else if" };
                    self.put(&format!("{word} ({condition}) {{"));
                    self.body(body);
                }
                if !otherwise.is_empty() {
                    self.put("} else {");
                    self.body(otherwise);
                }
                self.put("}");
            }
            LoopNode::Block { at, body } => {
                self.at(*at);
                self.put("{");
                self.body(body);
                self.put("}");
            }
            LoopNode::On { stream, body } => {
                self.put("{");
                self.names.open();
                self.line = None;
                self.put(&format!("Lane lane(run, {stream});"));
                self.nodes(body);
                self.names.close();
                self.line = None;
                self.put("}");
            }
            LoopNode::Do { at, function, args } => {
                self.at(*at);
                let objects = OBJECTS.into_iter().zip(self.heads[*function]);
                let objects = objects.filter(|(_, used)| *used).map(|((_, name), _)| match name {
                    "stream" => self.stream().to_owned(),
                    name => name.to_owned(),
                });
                let args = args.iter().map(|arg| self.number(arg).code);
                let args: Vec<_> = objects.chain(args).collect();
                self.put(&format!("CHK_RET({}({}));", self.function(*function), args.join(", ")));
            }
            LoopNode::Signal { at, post, kind, peer, .. } => {
                self.at(*at);
                let peer = self.number(peer).code;
                let call = match (kind, post) {
                    (SignalKind::Fork, false) => "Begin()".to_owned(),
                    (SignalKind::Join, true) => "End()".to_owned(),
                    (SignalKind::Fork, true) => format!("Fork({peer})"),
                    (SignalKind::Join, false) => format!("Join({peer})"),
                    (SignalKind::Ack, true) => format!("TxAck({peer})"),
                    (SignalKind::Ack, false) => format!("RxAck({peer})"),
                    (SignalKind::Data, true) => format!("TxDataSignal({peer})"),
                    (SignalKind::Data, false) => format!("RxDataSignal({peer})"),
                    (SignalKind::Head | SignalKind::Tail | SignalKind::Local, _) => {
                        unreachable!("no link has these signals")
                    }
                };
                self.put(&format!("CHK_RET(lane.{call});"));
            }
            LoopNode::Move { at, srcs, dsts, .. } => {
                self.at(*at);
                // A reduction has its destination as its first source.
                let method = if srcs.len() == 1 { "Copy" } else { "Reduce" };
                let [src, dst] = [&srcs[srcs.len() - 1], &dsts[0]].map(|place| self.place(place));
                self.put(&format!("CHK_RET(lane.{method}({src}, {dst}));"));
            }
            LoopNode::Message { .. } => unreachable!("an executor has no messages"),
        }
    }

    /// Returns the number of the current stream, where streams fork streams.
    const fn stream(&self) -> &'static str {
        if self.forked { "stream" } else { "0" }
    }

    /// Prints a loop whose iterations have streams. The children have the numbers of the further iterations, or, where
    /// streams fork streams, numbers that are known at run time.
    fn streams(&mut self, var: usize, [lo, hi]: [&Number; 2], body: &[LoopNode]) {
        let many = match lo {
            Number::Const(0) => hi.clone(),
            lo => binary(BinOp::Sub, hi.clone(), lo.clone()),
        };
        let nested = self.facts.nested;
        let (child, many) = if nested {
            let (stream, many) = (self.stream(), self.number(&many).code);
            self.put("{");
            self.names.open();
            self.put(&format!("const std::vector<u32> forked = streams.Fork({stream}, {many});"));
            ("forked[slave]", "i64(forked.size())".to_owned())
        } else {
            ("slave", self.operand(BinOp::Lt, &many))
        };
        let slaves = format!("for (i64 slave = 1; slave < {many}; ++slave) {{");
        let each = |printer: &mut Self, method: &str| {
            printer.put(&slaves);
            printer.put(&format!("    CHK_RET(lane.{method}({child}));"));
            printer.put("}");
        };
        each(self, "Fork");
        let (lo_text, hi) = (self.number(lo).code, self.operand(BinOp::Lt, hi));
        let name = self
            .open(var, |name| format!("for (i64 {name} = {lo_text}; {name} < {hi}; ++{name}) {{"));
        let index = match lo {
            Number::Const(0) => name.clone(),
            lo => format!("{name} - {}", self.operand(BinOp::Sub, lo)),
        };
        self.line = None;
        let first = self.operand(BinOp::Lt, lo);
        let around = self.forked;
        if nested {
            self.put(&format!("const u32 stream = forked[{index}];"));
            self.forked = true;
        }
        let index = if nested { "stream" } else { &index };
        self.put(&format!("Lane lane(run, {index});"));
        let slave = |printer: &mut Self, method: &str| {
            printer.put(&format!("if ({name} > {first}) {{"));
            printer.put(&format!("    CHK_RET(lane.{method}());"));
            printer.put("}");
        };
        slave(self, "Begin");
        self.nodes(body);
        slave(self, "End");
        self.forked = around;
        self.names.close();
        self.line = None;
        self.put("}");
        each(self, "Join");
        if nested {
            self.put("streams.Join(forked);");
            self.names.close();
            self.put("}");
        }
    }

    fn place(&self, place: &LoopPlace) -> String {
        let buffer = match place.buffer {
            Buffer::Input => "INPUT".to_owned(),
            Buffer::Output => "OUTPUT".to_owned(),
            Buffer::Scratch(id) => format!("SCRATCH + {id}"),
        };
        let piece = match &place.piece {
            Piece::Entry(table, indices) => self.entry(*table, indices),
            Piece::Computed { lo, width, slot, base } => {
                let mut parts = vec![self.number(lo).code, self.number(width).code];
                if (slot, base) != (&Number::Const(0), &Number::Const(0)) {
                    parts.extend([self.number(slot).code, self.number(base).code]);
                }
                format!("At({})", parts.join(", "))
            }
        };
        match &place.of {
            None => format!("lane.Mine({buffer}, {piece})"),
            Some(of) => format!("lane.Of({}, {buffer}, {piece})", self.number(of).code),
        }
    }

    fn entry(&self, table: usize, indices: &[Number]) -> String {
        let of = &self.loops.tables.all[table];
        let name = name_of(of, table);
        let indices = indices.iter().map(|index| format!("[{}]", self.number(index).code));
        let rank = if of.by_rank { "[me]" } else { "" };
        format!("{name}{}{rank}", indices.collect::<String>())
    }

    /// Returns a number as the right operand of an operator.
    fn operand(&self, op: BinOp, number: &Number) -> String {
        let left = Text::atom(String::new());
        let whole = Target::Cpp.infix(op, left, self.number(number)).code;
        whole[op.text().len() + 2..].to_owned()
    }

    fn number(&self, number: &Number) -> Text {
        let text = NumberText {
            me: "me",
            ty: Some("i64"),
            nranks: (self.loops.nranks, "nranks"),
            var: &|var| self.names.of(var).to_owned(),
            entry: &|table, indices| self.entry(table, indices),
            least: &self.facts.least,
        };
        text.text(number)
    }
}

/// Returns the declaration of the executing rank, if the text of a body uses it.
pub(super) fn me(body: &str) -> &'static str {
    if mentions(body, "me") { "    const i64 me = run.rank;\n" } else { "" }
}

/// Returns the name of a table.
pub(super) fn name_of(table: &LoopTable, number: usize) -> String {
    format!("{}_{number}", if table.has_pieces() { "PIECE" } else { "TABLE" })
}

/// Returns the definition of a table.
pub(super) fn table(table: &LoopTable, number: usize, nranks: u32) -> String {
    let pieces = table.has_pieces();
    let ty = if pieces { "Piece" } else { "i64" };
    let entry = |entry: &[i64]| {
        // Pieces of input or output have slot and base 0; for these two numbers the text relies on the default.
        let plain = pieces && entry[2..] == [0, 0];
        let shown = if plain { &entry[..2] } else { entry };
        let shown: Vec<_> = shown.iter().map(ToString::to_string).collect();
        if pieces { format!("{{{}}}", shown.join(", ")) } else { shown.join(", ") }
    };
    let ranks = (nranks, &*nranks.to_string());
    format!("const {ty} {};", array(&name_of(table, number), table, ranks, entry))
}
