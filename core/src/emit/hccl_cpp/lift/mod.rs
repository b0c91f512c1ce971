//! From a program to C++ with its loops: arithmetic stays arithmetic, and what only a table or a searched object can
//! tell becomes a table, of what every rank looked up on its walk.

mod regions;
mod tables;

use std::collections::HashMap;

use super::tree::{Node, Number, Place, Table};
use crate::ids::ScratchId;
use crate::program::ir::{Expr, Kind, Op, Program, Stmt, StmtKind, VarId};
use crate::program::walk::trace::Trace;
use crate::schedule::{Buffer, SignalKind};
use crate::syntax::ast::BinOp;
use regions::{Cut, Part};
use tables::each;

/// What a program's text would not hold, such as calls: it is then written from its schedule.
pub(super) struct Unfit;

type Answer<T> = Result<T, Unfit>;

/// The most statements of a text: steps are written out where they are called.
const MOST: usize = 2_000;

/// A program's text in the making.
pub(super) struct Lift<'p> {
    program: &'p Program,
    traces: &'p [Trace],
    nranks: u32,
    /// Equal pieces of a unit.
    pieces: u64,
    /// Units of input and output.
    units: [u32; 2],
    /// The loops and calls around.
    around: Vec<Around>,
    /// What regions and pieces stand for.
    regions: HashMap<VarId, Cut>,
    scratch: u32,
    pub(super) tables: Vec<Table>,
    stmts: usize,
    /// The names of the variables of the text.
    pub(super) vars: Vec<String>,
    numbers: HashMap<VarId, usize>,
    /// Variables that are another name for the rank, or for how many there are.
    aliases: HashMap<VarId, Number>,
}

/// What a statement stands in.
enum Around {
    /// A loop: the number of its iteration.
    Loop(Number),
    /// A step that is called by that statement.
    Step(i64),
}

impl<'p> Lift<'p> {
    pub(super) fn new(
        program: &'p Program,
        traces: &'p [Trace],
        nranks: u32,
        pieces: u64,
        units: [u32; 2],
    ) -> Self {
        let vars = program.vars.iter().map(|var| var.name.clone()).collect();
        Self {
            program,
            traces,
            nranks,
            pieces,
            units,
            around: Vec::new(),
            regions: HashMap::new(),
            scratch: 0,
            tables: Vec::new(),
            stmts: 0,
            vars,
            aliases: HashMap::new(),
            numbers: (0..program.vars.len()).map(|at| (VarId(at as u32), at)).collect(),
        }
    }

    pub(super) fn body(&mut self) -> Answer<Vec<Node>> {
        // A parameter is what the run gave it: a table of one number.
        let mut nodes = Vec::new();
        for param in &self.program.params {
            if Kind::of_param(param.ty) == Kind::Number {
                let values = self.traces.iter().map(|trace| trace.param(param.var));
                let values = values.collect::<Option<Vec<_>>>().ok_or(Unfit)?;
                if values.iter().any(|value| *value != values[0]) {
                    return Err(Unfit);
                }
                nodes.push(Node::Let(self.numbers[&param.var], Number::Const(values[0])));
            }
        }
        nodes.extend(self.block(&self.program.body)?);
        Ok(nodes)
    }

    fn block(&mut self, body: &'p [Stmt]) -> Answer<Vec<Node>> {
        let mut nodes = Vec::new();
        for stmt in body {
            self.stmts += 1;
            if self.stmts > MOST {
                return Err(Unfit);
            }
            self.stmt(stmt, &mut nodes)?;
        }
        Ok(nodes)
    }

    fn line(&self, stmt: &Stmt) -> u32 {
        self.program.locations.get(stmt.at.index()).map_or(0, |place| place.line)
    }

    fn stmt(&mut self, stmt: &'p Stmt, nodes: &mut Vec<Node>) -> Answer<()> {
        let line = self.line(stmt);
        match &stmt.kind {
            StmtKind::Let(var, value) => self.assign(*var, value, nodes)?,
            StmtKind::Limit(_) | StmtKind::Require(..) | StmtKind::Demand(_) => {}
            StmtKind::For(var, lo, hi, body) => {
                let (lo, hi) = (self.number(lo)?, self.number(hi)?);
                let var = self.numbers[var];
                let body = self.within(iteration(var, &lo), body)?;
                nodes.push(Node::Loop { var, lo, hi, body });
            }
            StmtKind::Parallel(var, lo, hi, body) => {
                let (lo, hi) = (self.number(lo)?, self.number(hi)?);
                let var = self.numbers[var];
                let body = self.within(iteration(var, &lo), body)?;
                nodes.push(Node::Streams { line, var, lo, hi, body });
            }
            StmtKind::Each(var, list, body) => {
                let counter = self.vars.len();
                self.vars.push("nth".to_owned());
                let seen = |trace: &Trace| trace.lists(list).to_vec();
                let lists: Vec<_> = self.traces.iter().map(seen).collect();
                let lens = each(&lists, |way, list| vec![(way.clone(), list.len() as i64)]);
                let hi = self.entry(&lens)?;
                let items = each(&lists, |way, list| {
                    let item = |(i, value): (i64, &i64)| ([&way[..], &[i]].concat(), *value);
                    (0..).zip(list).map(item).collect()
                });
                self.around.push(Around::Loop(Number::Var(counter)));
                let item = self.entry(&items);
                let inner = self.block(body);
                self.around.pop();
                let body = [vec![Node::Let(self.numbers[var], item?)], inner?].concat();
                nodes.push(Node::Loop { var: counter, lo: Number::Const(0), hi, body });
            }
            StmtKind::If(arms, otherwise) => {
                let arms = arms
                    .iter()
                    .map(|(condition, body)| Ok((self.number(condition)?, self.block(body)?)));
                let arms = arms.collect::<Answer<Vec<_>>>()?;
                nodes.push(Node::If(arms, self.block(otherwise)?));
            }
            StmtKind::Scratch(var, count, like) => {
                // In a loop it would be another buffer each time.
                if !self.around.is_empty() {
                    return Err(Unfit);
                }
                let buffer = Buffer::Scratch(ScratchId(self.scratch));
                self.scratch += 1;
                let cut = match self.cut(like)? {
                    Cut::Region(Part { lo: Number::Const(base), width, .. }) => {
                        let lo = Number::Const(base);
                        let slot = Number::Const(0);
                        let part = Part { buffer, lo: lo.clone(), width, slot, base: lo };
                        if count.is_some() { Cut::Slots(part) } else { Cut::Region(part) }
                    }
                    _ if self.is_pieces(like) => Cut::Shapeless(buffer, None),
                    _ => Cut::Other,
                };
                self.regions.insert(*var, cut);
            }
            StmtKind::Step(step, args) => {
                let step = &self.program.steps[step.0 as usize];
                let mut inner = Vec::new();
                for (param, arg) in step.params.iter().zip(args) {
                    self.assign(*param, arg, &mut inner)?;
                }
                inner.extend(self.within(Around::Step(stmt.at.0.into()), &step.body)?);
                nodes.push(Node::Block(inner));
            }
            StmtKind::Post(kind, peer) | StmtKind::Wait(kind, peer) => {
                let method = match (kind, matches!(stmt.kind, StmtKind::Post(..))) {
                    (SignalKind::Ack, true) => "TxAck",
                    (SignalKind::Ack, false) => "RxAck",
                    (SignalKind::Data, true) => "TxDataSignal",
                    (SignalKind::Data, false) => "RxDataSignal",
                    _ => return Err(Unfit),
                };
                nodes.push(Node::Signal { line, method, peer: self.number(peer)? });
            }
            StmtKind::Copy(src, dsts) => {
                // What has arrived here goes on from here.
                let near = dsts.iter().position(|dst| dst.args[0].op == Op::Local).unwrap_or(0);
                let places = self.places(stmt, std::iter::once(src).chain(dsts))?;
                let into = places[1 + near].clone();
                nodes.push(moved(line, "Copy", &places[0], &into));
                for (at, dst) in places[1..].iter().enumerate() {
                    if at != near {
                        nodes.push(moved(line, "Copy", &into, dst));
                    }
                }
            }
            StmtKind::Reduce(srcs, dst) => {
                // In the op, the destination is its first source too.
                let places = self.places(stmt, std::iter::once(dst).chain(srcs).chain([dst]))?;
                for src in &places[1..=srcs.len()] {
                    nodes.push(moved(line, "Reduce", src, &places[0]));
                }
            }
            StmtKind::Within(..) | StmtKind::Call(_) | StmtKind::Fifo(..) | StmtKind::Pass(_) => {
                return Err(Unfit);
            }
        }
        Ok(())
    }

    fn within(&mut self, around: Around, body: &'p [Stmt]) -> Answer<Vec<Node>> {
        self.around.push(around);
        let nodes = self.block(body);
        self.around.pop();
        nodes
    }

    fn assign(&mut self, var: VarId, value: &'p Expr, nodes: &mut Vec<Node>) -> Answer<()> {
        match self.program.vars[var.0 as usize].kind {
            Kind::Number => match self.number(value)? {
                alias @ (Number::Me | Number::Nranks) => _ = self.aliases.insert(var, alias),
                value => {
                    self.aliases.remove(&var);
                    nodes.push(Node::Let(self.numbers[&var], value));
                }
            },
            Kind::Region | Kind::Pieces => {
                let cut = self.cut(value)?;
                self.regions.insert(var, cut);
            }
            // Objects and lists are asked by tables.
            _ => {}
        }
        Ok(())
    }

    fn number(&mut self, expr: &'p Expr) -> Answer<Number> {
        let args = &expr.args;
        let boxed = |number: Number| Box::new(number);
        Ok(match expr.op {
            Op::Int(value) => Number::Const(value),
            Op::Var(var) => match self.aliases.get(&var) {
                Some(alias) => alias.clone(),
                None => Number::Var(self.numbers[&var]),
            },
            Op::Rank | Op::Local => Number::Me,
            Op::Nranks => Number::Nranks,
            Op::Peer | Op::RankOf => self.number(&args[0])?,
            Op::Neg => Number::Neg(boxed(self.number(&args[0])?)),
            Op::Not => Number::Not(boxed(self.number(&args[0])?)),
            Op::Flip => Number::Flip(boxed(self.number(&args[0])?)),
            Op::Binary(op) => {
                Number::Binary(op, Box::new([self.number(&args[0])?, self.number(&args[1])?]))
            }
            Op::If => Number::Choice(Box::new([
                self.number(&args[0])?,
                self.number(&args[1])?,
                self.number(&args[2])?,
            ])),
            Op::Function(function) => {
                let args = args.iter().map(|arg| self.number(arg)).collect::<Answer<_>>()?;
                Number::Call(function, args)
            }
            Op::IsPowerOfTwo => Number::IsPowerOfTwo(boxed(self.number(&args[0])?)),
            _ => {
                let seen = self.traces.iter().map(|trace| trace.numbers(expr).to_vec());
                let seen: Vec<_> = seen.collect();
                self.entry(&seen)?
            }
        })
    }
}

/// The number of a loop's iteration.
fn iteration(var: usize, lo: &Number) -> Around {
    Around::Loop(match lo {
        Number::Const(0) => Number::Var(var),
        lo => Number::Binary(BinOp::Sub, Box::new([Number::Var(var), lo.clone()])),
    })
}

fn moved(line: u32, method: &'static str, src: &Place, dst: &Place) -> Node {
    Node::Move { line, method, places: Box::new([src.clone(), dst.clone()]) }
}
