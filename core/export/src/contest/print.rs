//! Prints C++ with loops: scopes and names, numbers, and statements below the source line that they come from.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use super::tree::{LoopNode, LoopPlace, LoopTable, Number, Piece};
use crate::cuda::names::identifier;
use roundelay_core::schedule::Buffer;
use roundelay_core::syntax::ast::{BinOp, UnOp};
use roundelay_core::syntax::expr_text::{Target, Text};

/// Names that the generated text uses itself.
const TAKEN: [&str; 8] = ["lane", "run", "me", "nranks", "peer", "slave", "At", "Piece"];

/// Prints nodes.
pub(super) struct Printer<'t> {
    /// The names of the variables in the source.
    pub(super) vars: &'t [String],
    /// The least left side of each quotient and remainder at any rank.
    pub(super) least: &'t HashMap<*const Number, i64>,
    pub(super) tables: &'t [LoopTable],
    pub(super) nranks: u32,
    /// Returns a line of the source with its number, for a comment.
    pub(super) said: &'t dyn Fn(u32) -> Option<String>,
    /// The names in use, by scope.
    pub(super) scopes: Vec<Vec<String>>,
    /// The current name of each variable.
    pub(super) names: HashMap<usize, String>,
    pub(super) line: Option<u32>,
    pub(super) text: String,
}

impl Printer<'_> {
    fn indent(&self) -> String {
        "    ".repeat(self.scopes.len())
    }

    /// Returns a new name for a variable: its name in the source if that is free.
    fn declare(&mut self, var: usize) -> String {
        let wanted = identifier(&self.vars[var]);
        let open = |name: &str| self.scopes.iter().flatten().any(|known| known == name);
        let names = std::iter::once(wanted.clone()).chain((2..).map(|k| format!("{wanted}_{k}")));
        let mut free = names.filter(|name| !TAKEN.contains(&name.as_str()) && !open(name));
        let name = free.next().expect("there are enough numbers");
        self.scopes.last_mut().expect("a scope is open").push(name.clone());
        self.names.insert(var, name.clone());
        name
    }

    /// Prints a statement on a line of its own.
    fn put(&mut self, statement: &str) {
        let _ = writeln!(self.text, "{}{statement}", self.indent());
    }

    /// Prints a source line as a comment, once for all statements of the line.
    fn at(&mut self, line: u32) {
        if self.line != Some(line) {
            self.line = Some(line);
            if let Some(said) = (self.said)(line) {
                self.put(&format!("// {said}"));
            }
        }
    }

    /// Prints the statements of a block, after its opening line.
    fn body(&mut self, nodes: &[LoopNode]) {
        self.scopes.push(Vec::new());
        self.line = None;
        self.nodes(nodes);
        self.scopes.pop();
        self.line = None;
    }

    /// Prints the statements of a scope that ends after them. A block that comes last needs no braces: it ends with the
    /// scope.
    pub(super) fn nodes(&mut self, nodes: &[LoopNode]) {
        for (at, node) in nodes.iter().enumerate() {
            match node {
                LoopNode::Block { line, body } if at + 1 == nodes.len() => {
                    self.at(*line);
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
                self.scopes.push(Vec::new());
                let name = self.declare(*var);
                let open = self.scopes.pop().expect("the scope is open");
                self.put(&format!("for (i64 {name} = {lo}; {name} < {hi}; ++{name}) {{"));
                self.scopes.push(open);
                self.line = None;
                self.nodes(body);
                self.scopes.pop();
                self.line = None;
                self.put("}");
            }
            LoopNode::Streams { line, var, lo, hi, body } => {
                self.at(*line);
                let many = Number::Binary(BinOp::Sub, Box::new([hi.clone(), lo.clone()]));
                let many = if *lo == Number::Const(0) { hi.clone() } else { many };
                let many = self.operand(BinOp::Lt, &many);
                let (lo_text, hi) = (self.number(lo).code, self.operand(BinOp::Lt, hi));
                let slaves = format!("for (i64 slave = 1; slave < {many}; ++slave) {{");
                self.put(&slaves);
                self.put("    CHK_RET(lane.Fork(slave));");
                self.put("}");
                self.scopes.push(Vec::new());
                let name = self.declare(*var);
                let open = self.scopes.pop().expect("the scope is open");
                self.put(&format!("for (i64 {name} = {lo_text}; {name} < {hi}; ++{name}) {{"));
                self.scopes.push(open);
                let index = match lo {
                    Number::Const(0) => name.clone(),
                    lo => format!("{name} - {}", self.operand(BinOp::Sub, lo)),
                };
                self.line = None;
                let first = self.operand(BinOp::Lt, lo);
                self.put(&format!("Lane lane(run, {index});"));
                self.put(&format!("if ({name} > {first}) {{"));
                self.put("    CHK_RET(lane.Begin());");
                self.put("}");
                self.nodes(body);
                self.put(&format!("if ({name} > {first}) {{"));
                self.put("    CHK_RET(lane.End());");
                self.put("}");
                self.scopes.pop();
                self.line = None;
                self.put("}");
                self.put(&slaves);
                self.put("    CHK_RET(lane.Join(slave));");
                self.put("}");
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
            LoopNode::Block { line, body } => {
                self.at(*line);
                self.put("{");
                self.body(body);
                self.put("}");
            }
            LoopNode::Signal { line, method, peer } => {
                self.at(*line);
                let peer = self.number(peer).code;
                self.put(&format!("CHK_RET(lane.{method}({peer}));"));
            }
            LoopNode::Peers { method, peers } => {
                let peers: Vec<_> = peers
                    .iter()
                    .map(|own| {
                        let own: Vec<_> = own.iter().map(ToString::to_string).collect();
                        format!("{{{}}}", own.join(", "))
                    })
                    .collect();
                self.put(&format!(
                    "for (const u32 peer : std::vector<std::vector<u32>>{{{}}}[me]) {{",
                    peers.join(", ")
                ));
                self.put(&format!("    CHK_RET(lane.{method}(peer));"));
                self.put("}");
            }
            LoopNode::Move { line, method, places } => {
                self.at(*line);
                let [src, dst] = places.each_ref().map(|place| self.place(place));
                self.put(&format!("CHK_RET(lane.{method}({src}, {dst}));"));
            }
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
        let name = name_of(&self.tables[table], table);
        let indices = indices.iter().map(|index| format!("[{}]", self.number(index).code));
        let rank = if self.tables[table].by_rank { "[me]" } else { "" };
        format!("{name}{}{rank}", indices.collect::<String>())
    }

    /// Returns a number as the right operand of an operator.
    fn operand(&self, op: BinOp, number: &Number) -> String {
        let left = Text::atom(String::new());
        let whole = Target::Cpp.infix(op, left, self.number(number)).code;
        whole[op.text().len() + 2..].to_owned()
    }

    fn number(&self, number: &Number) -> Text {
        let infix = |op, left, right| Target::Cpp.infix(op, left, right);
        match number {
            Number::Const(value) => Text::number(value.to_string(), *value),
            Number::Me => Text::atom("me".to_owned()),
            Number::Nranks => Text::atom("nranks".to_owned()),
            Number::Var(var) => Text::atom(self.names[var].clone()),
            Number::Neg(of) => Target::Cpp.unary(UnOp::Neg, self.number(of)),
            Number::Not(of) => Target::Cpp.unary(UnOp::Not, self.number(of)),
            Number::Flip(of) => Target::Cpp.complement(self.number(of)),
            Number::Binary(op @ (BinOp::Rem | BinOp::Div), sides) => {
                let (left, right) = (self.number(&sides[0]), self.number(&sides[1]));
                // C++ computes the same for left sides that are never negative; for others a remainder may add the
                // divisor once.
                let least = self.least.get(&std::ptr::from_ref(number)).copied().unwrap_or(0);
                let positive = matches!(sides[1], Number::Nranks)
                    || matches!(sides[1], Number::Const(value) if value > 0);
                let turn = match sides[1] {
                    Number::Const(value) => value,
                    _ => self.nranks.into(),
                };
                match (least, positive) {
                    (0.., true) => infix(*op, left, right),
                    (_, true) if *op == BinOp::Rem && least >= -turn => {
                        infix(BinOp::Rem, infix(BinOp::Add, left, right.clone()), right)
                    }
                    _ => Target::Cpp.binary(*op, left, right),
                }
            }
            Number::Binary(op, sides) => {
                Target::Cpp.binary(*op, self.number(&sides[0]), self.number(&sides[1]))
            }
            Number::Choice(parts) => {
                let [condition, then, otherwise] = parts.each_ref().map(|part| self.number(part));
                Target::Cpp.choice(condition, then, otherwise)
            }
            Number::Call(function, args) => {
                Text::call(function.name(), args.iter().map(|arg| self.number(arg)))
            }
            Number::IsPowerOfTwo(of) => Text::call("is_power_of_two", [self.number(of)]),
            Number::Entry(table, indices) => Text::atom(self.entry(*table, indices)),
        }
    }
}

/// Returns the name of a table.
pub(super) fn name_of(table: &LoopTable, number: usize) -> String {
    let pieces = table.entries.first().is_some_and(|entry| entry.len() > 1);
    format!("{}_{number}", if pieces { "PIECE" } else { "TABLE" })
}

/// Returns the definition of a table.
pub(super) fn table(table: &LoopTable, number: usize, nranks: u32) -> String {
    let pieces = table.entries.first().is_some_and(|entry| entry.len() > 1);
    let ty = if pieces { "Piece" } else { "i64" };
    let mut sizes = table.sizes.clone();
    if table.by_rank {
        sizes.push(nranks as usize);
    }
    let dims: Vec<_> = sizes.iter().map(|size| format!("[{size}]")).collect();
    let dims = dims.concat();
    let entries: Vec<_> = table
        .entries
        .iter()
        .map(|entry| {
            // Pieces of input or output have slot and base 0; for these two numbers the text relies on the default.
            let plain = pieces && entry[2..] == [0, 0];
            let shown = if plain { &entry[..2] } else { &entry[..] };
            let shown: Vec<_> = shown.iter().map(ToString::to_string).collect();
            if pieces { format!("{{{}}}", shown.join(", ")) } else { shown.join(", ") }
        })
        .collect();
    format!("const {ty} {}{dims} = {};", name_of(table, number), nested(&entries, &sizes))
}

fn nested(entries: &[String], sizes: &[usize]) -> String {
    match sizes {
        [] => entries.join(", "),
        [_] => format!("{{{}}}", entries.join(", ")),
        [size, rest @ ..] => {
            let rows = entries.chunks(entries.len() / size.max(&1));
            let rows: Vec<_> = rows.map(|row| nested(row, rest)).collect();
            format!("{{\n    {},\n}}", rows.join(",\n    "))
        }
    }
}

/// Removes unused variables, since compilers warn of them, and empty blocks, for example from `require`s.
pub(super) fn prune(nodes: &mut Vec<LoopNode>) {
    loop {
        let mut used = HashSet::new();
        for node in nodes.iter() {
            node.asks(&mut used);
        }
        if !drop_unused(nodes, &used) {
            return;
        }
    }
}

fn drop_unused(nodes: &mut Vec<LoopNode>, used: &HashSet<usize>) -> bool {
    let before = nodes.len();
    let mut dropped = false;
    for node in &mut *nodes {
        for block in node.blocks_mut() {
            dropped |= drop_unused(block, used);
        }
        if let LoopNode::If(arms, otherwise) = node
            && let [(condition, body)] = &mut arms[..]
            && body.is_empty()
        {
            *condition = condition.opposite();
            std::mem::swap(body, otherwise);
        }
    }
    nodes.retain(|node| match node {
        LoopNode::Let(var, _) => used.contains(var),
        LoopNode::Loop { body, .. } | LoopNode::Block { body, .. } => !body.is_empty(),
        LoopNode::If(arms, otherwise) => {
            !(otherwise.is_empty() && arms.iter().all(|(_, body)| body.is_empty()))
        }
        _ => true,
    });
    dropped || nodes.len() < before
}
