//! From a program to C++ with its loops: arithmetic stays arithmetic, and what only a table or a searched object can
//! tell becomes a table, of what every rank looked up on its walk.

use std::collections::{BTreeMap, HashMap};

use super::tree::{Node, Number, Piece, Place, Table};
use crate::ids::{RankId, ScratchId};
use crate::program::ir::{Expr, Kind, Op, Program, Stmt, StmtKind, VarId};
use crate::program::walk::trace::{Trace, Way};
use crate::schedule::{Buffer, Region, SignalKind};
use crate::syntax::ast::BinOp;

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
}

/// What a statement stands in.
enum Around {
    /// A loop: the number of its iteration.
    Loop(Number),
    /// A step that is called by that statement.
    Step(i64),
}

/// A region, or a region cut in pieces, as far as it is arithmetic.
#[derive(Clone)]
enum Cut {
    Region(Part),
    /// So many equal pieces of a region.
    Even(Part, u64),
    /// Slots that have the shape of a region.
    Slots(Part),
    /// Anything else: every move has a table of it.
    Other,
}

/// A part of a buffer, in pieces of a unit.
#[derive(Clone)]
struct Part {
    buffer: Buffer,
    lo: Number,
    width: u64,
    slot: Number,
    base: i64,
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
                let arms = arms.iter().map(|(condition, body)| {
                    Ok((self.number(condition)?, self.block(body)?))
                });
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
                        let part = Part { buffer, lo, width, slot: Number::Const(0), base };
                        if count.is_some() { Cut::Slots(part) } else { Cut::Region(part) }
                    }
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
            Kind::Number => nodes.push(Node::Let(self.numbers[&var], self.number(value)?)),
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
            Op::Var(var) => Number::Var(self.numbers[&var]),
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

    /// What a region or pieces are, as arithmetic.
    fn cut(&mut self, expr: &'p Expr) -> Answer<Cut> {
        let args = &expr.args;
        let whole = |lift: &Self, buffer, units: u32| {
            let (lo, slot) = (Number::Const(0), Number::Const(0));
            let width = u64::from(units) * lift.pieces;
            Cut::Region(Part { buffer, lo, width, slot, base: 0 })
        };
        Ok(match expr.op {
            Op::Var(var) => self.regions.get(&var).cloned().unwrap_or(Cut::Other),
            Op::Input => whole(self, Buffer::Input, self.units[0]),
            Op::Output => whole(self, Buffer::Output, self.units[1]),
            Op::Split => match (self.cut(&args[0])?, self.many(&args[1])) {
                (Cut::Region(part), Some(many)) if part.width % many == 0 => Cut::Even(part, many),
                _ => Cut::Other,
            },
            Op::Piece => match self.cut(&args[0])? {
                Cut::Even(part, many) => {
                    let width = part.width / many;
                    let index = self.number(&args[1])?;
                    Cut::Region(Part { lo: sum(part.lo, times(index, width)), width, ..part })
                }
                Cut::Slots(part) => Cut::Region(Part { slot: self.number(&args[1])?, ..part }),
                _ => Cut::Other,
            },
            Op::Pieces => match (self.cut(&args[0])?, args[1].op, args[2].op) {
                (Cut::Even(part, many), Op::Int(lo), Op::Int(hi)) if 0 <= lo && lo <= hi => {
                    let one = part.width / many;
                    let lo_at = sum(part.lo, times(Number::Const(lo), one));
                    Cut::Region(Part { lo: lo_at, width: one * (hi - lo) as u64, ..part })
                }
                _ => Cut::Other,
            },
            _ => Cut::Other,
        })
    }

    /// A number of pieces that is the same at every rank and time.
    fn many(&self, expr: &Expr) -> Option<u64> {
        match expr.op {
            Op::Int(value) => u64::try_from(value).ok().filter(|many| *many > 0),
            Op::Nranks => Some(self.nranks.into()),
            _ => None,
        }
    }

    /// The operands of a move, in the order of the op.
    fn places(
        &mut self,
        stmt: &'p Stmt,
        exprs: impl Iterator<Item = &'p Expr>,
    ) -> Answer<Vec<Place>> {
        let exprs: Vec<_> = exprs.collect();
        let mut places = Vec::new();
        for (at, expr) in exprs.iter().enumerate() {
            let (Op::On, [peer, region]) = (expr.op, &expr.args[..]) else { return Err(Unfit) };
            let of = match peer.op {
                Op::Local => None,
                _ => Some(self.number(peer)?),
            };
            let (buffer, piece) = match self.cut(region)? {
                Cut::Region(part) => {
                    let width = i64::try_from(part.width).map_err(|_| Unfit)?;
                    let Part { buffer, lo, slot, base, .. } = part;
                    (buffer, Piece::Computed { lo, width, slot, base })
                }
                _ => self.listed(stmt, at, exprs.len())?,
            };
            places.push(Place { of, buffer, piece });
        }
        Ok(places)
    }

    /// An operand as a table of what every rank's op has there.
    fn listed(&mut self, stmt: &Stmt, at: usize, many: usize) -> Answer<(Buffer, Piece)> {
        let mut seen: Vec<Vec<(Way, Vec<i64>)>> = Vec::new();
        let mut buffer = None;
        for trace in self.traces {
            let mut own = Vec::new();
            for (way, operands) in trace.moves(stmt) {
                let (_, region): &(RankId, Region) =
                    operands.get(at).filter(|_| operands.len() == many).ok_or(Unfit)?;
                if *buffer.get_or_insert(region.buffer) != region.buffer {
                    return Err(Unfit);
                }
                let end = |end: crate::rational::Rat| {
                    i64::try_from(end.num() * (self.pieces / end.den())).map_err(|_| Unfit)
                };
                let slot = region.slot.into();
                let piece = vec![end(region.lo)?, end(region.hi)?, slot, end(region.base)?];
                own.push((way.clone(), piece));
            }
            seen.push(own);
        }
        let (table, indices) = self.table(&seen, &[0; 4])?;
        Ok((buffer.ok_or(Unfit)?, Piece::Entry(table, indices)))
    }

    /// A number that every rank looked up: arithmetic on the rank, if it is that, or else an entry of a table.
    fn entry(&mut self, seen: &[Vec<(Way, i64)>]) -> Answer<Number> {
        let all = || seen.iter().flatten().map(|(_, value)| *value);
        let Some(first) = all().next() else { return Ok(Number::Const(0)) };
        if all().all(|value| value == first) {
            return Ok(Number::Const(first));
        }
        let n = i64::from(self.nranks);
        let at_ranks = |is: &dyn Fn(i64, i64) -> bool| {
            (0..).zip(seen).all(|(rank, own)| own.iter().all(|(_, value)| is(rank, *value)))
        };
        if at_ranks(&|rank, value| rank == value) {
            return Ok(Number::Me);
        }
        let me = || Number::Me;
        // Around a ring of all ranks in their order, the nearer way.
        let distances = (1..=n / 2).flat_map(|d| [d, -d]);
        for by in distances {
            if at_ranks(&|rank, value| (rank + by).rem_euclid(n) == value) {
                let op = if by > 0 { BinOp::Add } else { BinOp::Sub };
                let moved = Number::Binary(op, Box::new([me(), Number::Const(by.abs())]));
                return Ok(Number::Binary(BinOp::Rem, Box::new([moved, Number::Nranks])));
            }
        }
        let seen: Vec<Vec<(Way, Vec<i64>)>> = each(seen, |way, v| vec![(way.clone(), vec![*v])]);
        let (table, indices) = self.table(&seen, &[0])?;
        Ok(Number::Entry(table, indices))
    }

    /// A table of what was seen, with as few indices as tell its entries apart; and how it is asked here.
    fn table(&mut self, seen: &[Vec<(Way, Vec<i64>)>], nothing: &[i64]) -> Answer<(usize, Vec<Number>)> {
        let here = |way: &Way| {
            way.len() == self.around.len()
                && way.iter().zip(&self.around).all(|(at, around)| match around {
                    Around::Step(call) => at == call,
                    Around::Loop(_) => true,
                })
        };
        let rows: Vec<(usize, &Way, &Vec<i64>)> = seen
            .iter()
            .enumerate()
            .flat_map(|(rank, own)| own.iter().map(move |(way, value)| (rank, way, value)))
            .filter(|(_, way, _)| here(way))
            .collect();
        let loops = |at: &usize| matches!(self.around[*at], Around::Loop(_));
        let mut kept: Vec<usize> = (0..self.around.len()).filter(loops).collect();
        let mut by_rank = true;
        let tells = |kept: &[usize], by_rank: bool| {
            let mut known: BTreeMap<(usize, Vec<i64>), &Vec<i64>> = BTreeMap::new();
            rows.iter().all(|(rank, way, value)| {
                let key = kept.iter().map(|at| way[*at]).collect();
                let rank = if by_rank { *rank } else { 0 };
                *known.entry((rank, key)).or_insert(value) == *value
            })
        };
        if !tells(&kept, by_rank) {
            return Err(Unfit);
        }
        by_rank = !tells(&kept, false);
        for at in kept.clone() {
            let fewer: Vec<_> = kept.iter().copied().filter(|other| *other != at).collect();
            if tells(&fewer, by_rank) {
                kept = fewer;
            }
        }
        let size = |at: &usize| rows.iter().map(|(_, way, _)| way[*at] + 1).max().unwrap_or(0);
        let sizes = kept.iter().map(|at| usize::try_from(size(at)).map_err(|_| Unfit));
        let sizes = sizes.collect::<Answer<Vec<_>>>()?;
        let ranks = if by_rank { self.nranks as usize } else { 1 };
        let mut entries = vec![nothing.to_vec(); sizes.iter().product::<usize>() * ranks];
        for (rank, way, value) in rows {
            let at = kept.iter().zip(&sizes).fold(0, |sum, (at, size)| sum * size + way[*at] as usize);
            entries[if by_rank { at * ranks + rank } else { at }].clone_from(value);
        }
        let indices = kept.iter().map(|at| match &self.around[*at] {
            Around::Loop(number) => number.clone(),
            Around::Step(_) => Number::Const(0),
        });
        let indices = indices.collect();
        let table = Table { sizes, by_rank, entries };
        let known = self.tables.iter().position(|known| *known == table);
        let id = known.unwrap_or_else(|| {
            self.tables.push(table);
            self.tables.len() - 1
        });
        Ok((id, indices))
    }
}

/// Every entry of every rank, made to others.
fn each<T, U>(seen: &[Vec<(Way, T)>], made: impl Fn(&Way, &T) -> Vec<(Way, U)>) -> Vec<Vec<(Way, U)>> {
    let own = |own: &Vec<(Way, T)>| own.iter().flat_map(|(way, value)| made(way, value)).collect();
    seen.iter().map(own).collect()
}

/// The number of a loop's iteration.
fn iteration(var: usize, lo: &Number) -> Around {
    Around::Loop(match lo {
        Number::Const(0) => Number::Var(var),
        lo => Number::Binary(BinOp::Sub, Box::new([Number::Var(var), lo.clone()])),
    })
}

fn times(index: Number, width: u64) -> Number {
    match (index, width) {
        (Number::Const(index), _) => Number::Const(index * width as i64),
        (index, 1) => index,
        (index, _) => Number::Binary(BinOp::Mul, Box::new([index, Number::Const(width as i64)])),
    }
}

fn sum(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Const(0), b) => b,
        (a, Number::Const(0)) => a,
        (Number::Const(a), Number::Const(b)) => Number::Const(a + b),
        (a, b) => Number::Binary(BinOp::Add, Box::new([a, b])),
    }
}

fn moved(line: u32, method: &'static str, src: &Place, dst: &Place) -> Node {
    Node::Move { line, method, src: src.clone(), dst: dst.clone() }
}
