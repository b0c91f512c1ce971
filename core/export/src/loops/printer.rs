//! The printer of the loop form: statements, scopes, names and braces, once for all languages. A [`Dialect`] has what
//! differs: moves, signals, streams, and the words of a language.

use std::fmt::Write as _;

use super::Loops;
use super::cpp::{NumberText, said};
use super::ir::{At, LoopNode, LoopPlace, MessageStep, Number, Piece, executing};
use super::machine::RunFacts;
use super::scopes::NameScopes;
use roundelay_core::ids::ScratchId;
use roundelay_core::schedule::{Buffer, SignalKind};
use roundelay_core::syntax::Source;
use roundelay_core::syntax::ast::BinOp;
use roundelay_core::syntax::expr_text::{Target, Text};

/// A language, and the functions of a runtime that statements call.
pub(crate) trait Dialect: Sized {
    /// Names that the text uses itself.
    const OWN: &'static [&'static str];
    /// The type of numbers.
    const NUMBER: &'static str;
    /// The language of numbers.
    const TARGET: Target = Target::Cpp;
    /// The buffers that each rank has.
    const BUFFERS: [&'static str; 2] = ["INPUT", "OUTPUT"];
    /// The name of the executing rank.
    const ME: &'static str = "me";
    /// The name of the number of ranks.
    const NRANKS: &'static str = "nranks";
    /// The functions that make a place of the executing rank, and of another one.
    const PLACES: [&'static str; 2] = ["lane.mine", "lane.of"];
    /// The text before and behind the numbers of a piece.
    const PIECE: [&'static str; 2] = ["", ""];
    /// Whether a block has a line of the source, as a statement has.
    const PLACES_BLOCKS: bool = true;

    /// Prints the line of the source that the next statement comes from.
    fn place_line(printer: &mut Printer<'_, Self>, at: At) {
        // Lines of other files must not be taken for lines of this file.
        let line = if at.file == 0 { at.line } else { 0 };
        printer.comment(line, said(printer.source, line));
    }

    /// Returns a fold of sources, which is written to destinations.
    fn fold(printer: &mut Printer<'_, Self>, at: At, operands: [&[LoopPlace]; 2]) -> String;

    /// Returns an entry of a table.
    fn entry(printer: &Printer<'_, Self>, table: usize, indices: &[Number]) -> String;

    /// Returns the post or the wait of a signal.
    fn signal(_post: bool, _: SignalKind, _peer: &str, _lane: Option<String>) -> String {
        unreachable!("the form has messages")
    }

    /// Returns the begin or the end of a message.
    fn message(_: &mut Printer<'_, Self>, _: bool, _: &Number, _: &MessageStep) -> String {
        unreachable!("the form has signals")
    }

    /// Returns the call of a function of the form.
    fn call(_: &Printer<'_, Self>, _function: usize, _args: Vec<String>) -> String {
        unreachable!("a rank's statements are one function")
    }

    /// Prints a loop whose iterations have streams.
    fn streams(_: &mut Printer<'_, Self>, _var: usize, _: [Text; 2], _: &[LoopNode]) {
        unreachable!("a rank has one stream")
    }

    /// Prints the statements of the stream with a number.
    fn on(_: &mut Printer<'_, Self>, _stream: usize, _: &[LoopNode]) {
        unreachable!("a rank has one stream")
    }

    /// Returns a literal that has the type of numbers by itself, on the left of a shift for example.
    fn shifted(value: i64) -> String {
        format!("{}({value})", Self::NUMBER)
    }

    /// Returns a scratch buffer.
    fn scratch(id: ScratchId) -> String {
        format!("SCRATCH + {id}")
    }

    /// Returns the declaration of a variable.
    fn constant(name: &str, value: &str) -> String {
        format!("const {} {name} = {value};", Self::NUMBER)
    }

    /// Returns the head of a loop.
    fn head(name: &str, lo: Text, hi: Text) -> String {
        let more = Target::Cpp.infix(BinOp::Lt, Text::atom(name.to_owned()), hi);
        format!("for ({} {name} = {}; {}; ++{name}) {{", Self::NUMBER, lo.code, more.code)
    }

    /// Returns the condition of an `if`.
    fn condition(condition: Text) -> String {
        format!("({})", condition.code)
    }
}

/// Prints statements in a language.
pub(crate) struct Printer<'t, D> {
    pub(crate) loops: &'t Loops,
    pub(crate) facts: &'t RunFacts,
    /// The source of the form's first file.
    pub(crate) source: Option<&'t Source>,
    pub(crate) dialect: D,
    pub(crate) names: NameScopes,
    /// The line of the last comment in the scope.
    line: Option<u32>,
    text: String,
}

impl<'t, D: Dialect> Printer<'t, D> {
    pub(crate) fn new(
        (loops, facts): (&'t Loops, &'t RunFacts),
        source: Option<&'t Source>,
        dialect: D,
    ) -> Self {
        let names = NameScopes::new(D::OWN);
        Self { loops, facts, source, dialect, names, line: None, text: String::new() }
    }

    /// Returns the names of a function's parameters, and the text of its statements.
    pub(crate) fn function(
        &mut self,
        params: &[usize],
        body: &[LoopNode],
    ) -> (Vec<String>, String) {
        self.names.begin();
        self.line = None;
        let params = params.iter().map(|var| self.declare(*var)).collect();
        self.nodes(body);
        (params, std::mem::take(&mut self.text))
    }

    fn declare(&mut self, var: usize) -> String {
        self.names.declare(var, &self.loops.vars[var])
    }

    /// Prints a statement on a line of its own.
    pub(crate) fn put(&mut self, statement: &str) {
        let _ = writeln!(self.text, "{:1$}{statement}", "", 4 * self.names.depth());
    }

    /// Prints a line that begins at the margin.
    pub(crate) fn margin(&mut self, line: &str) {
        let _ = writeln!(self.text, "{line}");
    }

    /// Prints a comment above the statements of a line, once for all of them.
    pub(crate) fn comment(&mut self, line: u32, comment: Option<String>) {
        if self.line.replace(line) != Some(line)
            && let Some(comment) = comment
        {
            self.put(&format!("// {comment}"));
        }
    }

    /// Prints in a scope of its own.
    pub(crate) fn scope(&mut self, print: impl FnOnce(&mut Self)) {
        self.names.open();
        self.line = None;
        print(self);
        self.names.close();
        self.line = None;
    }

    /// Prints a scope whose head declares a variable, from its head to its end.
    pub(crate) fn nested(
        &mut self,
        var: usize,
        head: impl FnOnce(&str) -> String,
        print: impl FnOnce(&mut Self, &str),
        end: &str,
    ) {
        self.scope(|printer| {
            let name = printer.declare(var);
            let head = head(&name);
            let _ = writeln!(printer.text, "{:1$}{head}", "", 4 * (printer.names.depth() - 1));
            print(printer, &name);
        });
        self.put(end);
    }

    /// Prints the statements of a block between two lines.
    pub(crate) fn block(&mut self, head: &str, body: &[LoopNode], end: &str) {
        self.put(head);
        self.scope(|printer| printer.nodes(body));
        self.put(end);
    }

    /// Prints the statements of a scope that ends after them. A block that comes last needs no braces: it ends with the
    /// scope.
    pub(crate) fn nodes(&mut self, nodes: &[LoopNode]) {
        for (nth, node) in nodes.iter().enumerate() {
            match node {
                LoopNode::Block { at, body } if nth + 1 == nodes.len() => {
                    self.place_block(*at);
                    self.line = None;
                    self.nodes(body);
                }
                node => self.node(node),
            }
        }
    }

    fn place_block(&mut self, at: At) {
        if D::PLACES_BLOCKS {
            D::place_line(self, at);
        }
    }

    fn node(&mut self, node: &LoopNode) {
        match node {
            LoopNode::Let(var, value) => {
                let value = self.number(value).code;
                let name = self.declare(*var);
                self.put(&D::constant(&name, &value));
            }
            LoopNode::Loop { var, lo, hi, body } => {
                let (lo, hi) = (self.number(lo), self.number(hi));
                let print = |printer: &mut Self, _: &str| printer.nodes(body);
                self.nested(*var, |name| D::head(name, lo, hi), print, "}");
            }
            LoopNode::Streams { at, var, lo, hi, body } => {
                D::place_line(self, *at);
                let bounds = [self.number(lo), self.number(hi)];
                D::streams(self, *var, bounds, body);
            }
            LoopNode::If(arms, otherwise) => {
                for (nth, (condition, body)) in arms.iter().enumerate() {
                    let condition = D::condition(self.truth(condition));
                    let word = if nth == 0 { "if" } else { "} else if" };
                    self.put(&format!("{word} {condition} {{"));
                    self.scope(|printer| printer.nodes(body));
                }
                match &otherwise[..] {
                    [] => self.put("}"),
                    body => self.block("} else {", body, "}"),
                }
            }
            LoopNode::Block { at, body } => {
                self.place_block(*at);
                self.block("{", body, "}");
            }
            LoopNode::On { stream, body } => D::on(self, *stream, body),
            LoopNode::Do { at, function, args } => {
                let args = args.iter().map(|arg| self.number(arg).code).collect();
                let call = D::call(self, *function, args);
                self.statement(*at, &call);
            }
            LoopNode::Signal { at, post, kind, peer, lane } => {
                let lane = lane.as_ref().map(|lane| self.number(lane).code);
                let signal = D::signal(*post, *kind, &self.number(peer).code, lane);
                self.statement(*at, &signal);
            }
            LoopNode::Move { at, srcs, dsts, .. } => {
                let fold = D::fold(self, *at, [srcs, dsts]);
                self.statement(*at, &fold);
            }
            LoopNode::Message { at, send, request, step } => {
                let message = D::message(self, *send, request, step);
                self.statement(*at, &message);
            }
        }
    }

    /// Prints a statement below its line of the source.
    fn statement(&mut self, at: At, statement: &str) {
        D::place_line(self, at);
        self.put(statement);
    }

    /// Returns the indices of an entry, for arrays of arrays.
    pub(crate) fn indices(&self, table: usize, indices: &[Number]) -> String {
        let rank = self.loops.tables.all[table].by_rank.then(executing);
        let indices = indices.iter().chain(&rank).map(|index| self.number(index).code);
        let indices: Vec<_> = indices.collect();
        if indices.is_empty() { String::new() } else { format!("[{}]", indices.join("][")) }
    }

    pub(crate) fn place(&self, place: &LoopPlace) -> String {
        self.place_by(D::PLACES, place, "")
    }

    /// Returns a place, by a function for those of the rank and one for those of a rank, with a last argument.
    pub(crate) fn place_by(&self, [mine, of]: [&str; 2], place: &LoopPlace, last: &str) -> String {
        let buffer = match place.buffer {
            Buffer::Input => D::BUFFERS[0].to_owned(),
            Buffer::Output => D::BUFFERS[1].to_owned(),
            Buffer::Scratch(id) => D::scratch(id),
        };
        let piece = match &place.piece {
            Piece::Entry(table, indices) => D::entry(self, *table, indices),
            piece @ Piece::Computed { .. } => {
                let numbers = piece.shown().into_iter().map(|number| self.number(number).code);
                let [open, close] = D::PIECE;
                format!("{open}{}{close}", numbers.collect::<Vec<_>>().join(", "))
            }
        };
        match &place.of {
            None => format!("{mine}({buffer}, {piece}{last})"),
            Some(rank) => format!("{of}({}, {buffer}, {piece}{last})", self.number(rank).code),
        }
    }

    pub(crate) fn number(&self, number: &Number) -> Text {
        self.with_text(|text| text.text(number))
    }

    /// Returns a condition.
    pub(crate) fn truth(&self, number: &Number) -> Text {
        self.with_text(|text| text.truth(number))
    }

    fn with_text(&self, get: impl FnOnce(&NumberText<'_>) -> Text) -> Text {
        get(&NumberText {
            target: D::TARGET,
            me: D::ME,
            shifted: D::shifted,
            nranks: (self.loops.nranks, D::NRANKS),
            var: &|var| self.names.of(var).to_owned(),
            entry: &|table, indices| D::entry(self, table, indices),
            least: &self.facts.least,
        })
    }
}
