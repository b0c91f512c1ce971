//! The C++ of a class with the loops of its program: numbers, statements, and a machine that runs them at a rank, to
//! compare them with the proved schedule before printing.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use super::text::{ContestKey, MethodCall, Statement};
use roundelay_core::schedule::Buffer;
use roundelay_core::syntax::ast::BinOp;
use roundelay_core::values::arith::{self, IntFn};

/// A number of the C++ text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Number {
    Const(i64),
    /// The executing rank.
    Me,
    Nranks,
    Var(usize),
    Neg(Box<Self>),
    Not(Box<Self>),
    Flip(Box<Self>),
    Binary(BinOp, Box<[Self; 2]>),
    Choice(Box<[Self; 3]>),
    Call(IntFn, Vec<Self>),
    IsPowerOfTwo(Box<Self>),
    /// An entry of a table; the indices are iterations of loops, and also the rank if the table has a row for each.
    Entry(usize, Vec<Self>),
}

/// A table. Its dimensions are iterations of loops, the outermost first, and last the rank if `by_rank`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoopTable {
    pub(super) sizes: Vec<usize>,
    pub(super) by_rank: bool,
    /// The entries: each is one number, or the four numbers of a piece.
    pub(super) entries: Vec<Vec<i64>>,
}

/// A part of a buffer, in equal pieces of a unit: its first piece, its number of pieces, its slot, and the first piece
/// of the data in that slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Computed { lo: Number, width: Number, slot: Number, base: Number },
    Entry(usize, Vec<Number>),
}

/// A source or a destination: its rank if that is not the executing rank, its buffer and its piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LoopPlace {
    pub(super) of: Option<Number>,
    pub(super) buffer: Buffer,
    pub(super) piece: Piece,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LoopNode {
    Let(usize, Number),
    Loop {
        var: usize,
        lo: Number,
        hi: Number,
        body: Vec<Self>,
    },
    /// Every number between the bounds on a stream of its own; the first number on the current stream.
    Streams {
        line: u32,
        var: usize,
        lo: Number,
        hi: Number,
        body: Vec<Self>,
    },
    If(Vec<(Number, Vec<Self>)>, Vec<Self>),
    /// Statements with variables of their own; `line` is their source line, or 0.
    Block {
        line: u32,
        body: Vec<Self>,
    },
    /// A signal: a method of a stream that takes a peer.
    Signal {
        line: u32,
        method: &'static str,
        peer: Number,
    },
    /// A signal to or from each of some peers, listed for each rank.
    Peers {
        method: &'static str,
        peers: Vec<Vec<u32>>,
    },
    /// A copy or a reduction.
    Move {
        line: u32,
        method: &'static str,
        places: Box<[LoopPlace; 2]>,
    },
}

impl Number {
    /// Adds the variables of the number to `used`.
    fn asks(&self, used: &mut HashSet<usize>) {
        if let Self::Var(var) = self {
            used.insert(*var);
        }
        for part in self.parts() {
            part.asks(used);
        }
    }

    /// Returns the negated condition.
    pub(super) fn opposite(&self) -> Self {
        let op = match self {
            Self::Not(of) => return (**of).clone(),
            Self::Binary(BinOp::Eq, _) => BinOp::Ne,
            Self::Binary(BinOp::Ne, _) => BinOp::Eq,
            Self::Binary(BinOp::Lt, _) => BinOp::Ge,
            Self::Binary(BinOp::Ge, _) => BinOp::Lt,
            Self::Binary(BinOp::Gt, _) => BinOp::Le,
            Self::Binary(BinOp::Le, _) => BinOp::Gt,
            other => return Self::Not(Box::new(other.clone())),
        };
        match self {
            Self::Binary(_, sides) => Self::Binary(op, sides.clone()),
            other => other.clone(),
        }
    }

    /// Returns the numbers that this number is computed from.
    pub(super) fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Var(_) | Self::Const(_) | Self::Me | Self::Nranks => Vec::new(),
            Self::Neg(of) | Self::Not(of) | Self::Flip(of) | Self::IsPowerOfTwo(of) => vec![of],
            Self::Binary(_, sides) => sides.iter().collect(),
            Self::Choice(parts) => parts.iter().collect(),
            Self::Call(_, args) | Self::Entry(_, args) => args.iter().collect(),
        }
    }
}

impl LoopPlace {
    fn numbers(&self) -> Vec<&Number> {
        let mut numbers: Vec<_> = self.of.iter().collect();
        match &self.piece {
            Piece::Computed { lo, width, slot, base } => numbers.extend([lo, width, slot, base]),
            Piece::Entry(_, indices) => numbers.extend(indices),
        }
        numbers
    }
}

impl LoopNode {
    /// Adds the variables that the statement uses, and those that its body uses.
    pub(super) fn asks(&self, used: &mut HashSet<usize>) {
        let numbers: Vec<&Number> = match self {
            Self::Let(_, value) => vec![value],
            Self::Loop { lo, hi, .. } | Self::Streams { lo, hi, .. } => vec![lo, hi],
            Self::If(arms, _) => arms.iter().map(|(condition, _)| condition).collect(),
            Self::Signal { peer, .. } => vec![peer],
            Self::Move { places, .. } => places.iter().flat_map(LoopPlace::numbers).collect(),
            Self::Block { .. } | Self::Peers { .. } => Vec::new(),
        };
        for number in numbers {
            number.asks(used);
        }
        for node in self.blocks().into_iter().flatten() {
            node.asks(used);
        }
    }

    fn blocks(&self) -> Vec<&Vec<Self>> {
        match self {
            Self::Loop { body, .. } | Self::Streams { body, .. } | Self::Block { body, .. } => {
                vec![body]
            }
            Self::If(arms, otherwise) => {
                arms.iter().map(|(_, body)| body).chain([otherwise]).collect()
            }
            _ => Vec::new(),
        }
    }

    pub(super) fn blocks_mut(&mut self) -> Vec<&mut Vec<Self>> {
        match self {
            Self::Loop { body, .. } | Self::Streams { body, .. } | Self::Block { body, .. } => {
                vec![body]
            }
            Self::If(arms, otherwise) => {
                arms.iter_mut().map(|(_, body)| body).chain([otherwise]).collect()
            }
            _ => Vec::new(),
        }
    }
}

/// Runs the statements of a rank, and records the statements of each stream and the least left sides.
pub(super) struct Machine<'t> {
    pub(super) tables: &'t [LoopTable],
    pub(super) nranks: u32,
    pub(super) me: u32,
    pub(super) vars: Vec<i64>,
    pub(super) streams: Vec<Vec<Statement>>,
    stream: usize,
    /// The least left side of each quotient and remainder, by its address.
    pub(super) least: RefCell<HashMap<*const Number, i64>>,
}

/// The text differs from the proved schedule, and is then written in another way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Differs;

type RunResult<T> = Result<T, Differs>;

impl<'t> Machine<'t> {
    pub(super) fn new(tables: &'t [LoopTable], nranks: u32, me: u32, vars: usize) -> Self {
        Self {
            tables,
            nranks,
            me,
            vars: vec![0; vars],
            streams: vec![Vec::new()],
            stream: 0,
            least: RefCell::default(),
        }
    }

    pub(super) fn number(&self, number: &Number) -> RunResult<i64> {
        let fits = |value: Result<i64, arith::Fault>| value.map_err(|_| Differs);
        Ok(match number {
            Number::Const(value) => *value,
            Number::Me => self.me.into(),
            Number::Nranks => self.nranks.into(),
            Number::Var(var) => self.vars[*var],
            Number::Neg(of) => fits(arith::arithmetic(BinOp::Sub, 0, self.number(of)?))?,
            Number::Not(of) => (self.number(of)? == 0).into(),
            Number::Flip(of) => !self.number(of)?,
            Number::Binary(BinOp::And, sides) => {
                (self.number(&sides[0])? != 0 && self.number(&sides[1])? != 0).into()
            }
            Number::Binary(BinOp::Or, sides) => {
                (self.number(&sides[0])? != 0 || self.number(&sides[1])? != 0).into()
            }
            Number::Binary(op, sides) => {
                let (left, right) = (self.number(&sides[0])?, self.number(&sides[1])?);
                if let BinOp::Rem | BinOp::Div = op {
                    let mut all = self.least.borrow_mut();
                    let least = all.entry(std::ptr::from_ref(number)).or_insert(left);
                    *least = left.min(*least);
                }
                if op.precedence() <= BinOp::Lt.precedence() {
                    arith::compare(*op, left, right).into()
                } else {
                    fits(arith::arithmetic(*op, left, right))?
                }
            }
            Number::Choice(parts) => {
                let chosen = if self.number(&parts[0])? != 0 { &parts[1] } else { &parts[2] };
                self.number(chosen)?
            }
            Number::Call(function, args) => {
                let first = self.number(&args[0])?;
                let second = args.get(1).map_or(Ok(0), |arg| self.number(arg))?;
                fits(function.apply(first, second))?
            }
            Number::IsPowerOfTwo(of) => {
                let value = self.number(of)?;
                (value > 0 && value & (value - 1) == 0).into()
            }
            Number::Entry(table, indices) => self.entry(*table, indices)?[0],
        })
    }

    fn entry(&self, table: usize, indices: &[Number]) -> RunResult<&'t [i64]> {
        let LoopTable { sizes, by_rank, entries } = &self.tables[table];
        let mut at = 0;
        for (size, index) in sizes.iter().zip(indices) {
            let index = usize::try_from(self.number(index)?).map_err(|_| Differs)?;
            if index >= *size {
                return Err(Differs);
            }
            at = at * size + index;
        }
        if *by_rank {
            at = at * self.nranks as usize + self.me as usize;
        }
        entries.get(at).map(Vec::as_slice).ok_or(Differs)
    }

    /// Returns low end, high end, slot and base.
    fn piece(&self, piece: &Piece) -> RunResult<Vec<u64>> {
        let values = match piece {
            Piece::Computed { lo, width, slot, base } => {
                let lo = self.number(lo)?;
                vec![lo, lo + self.number(width)?, self.number(slot)?, self.number(base)?]
            }
            Piece::Entry(table, indices) => self.entry(*table, indices)?.to_vec(),
        };
        values.into_iter().map(|value| u64::try_from(value).map_err(|_| Differs)).collect()
    }

    pub(super) fn run(&mut self, nodes: &[LoopNode]) -> RunResult<()> {
        nodes.iter().try_for_each(|node| self.node(node))
    }

    fn node(&mut self, node: &LoopNode) -> RunResult<()> {
        match node {
            LoopNode::Let(var, value) => self.vars[*var] = self.number(value)?,
            LoopNode::Loop { var, lo, hi, body } => {
                for value in self.number(lo)?..self.number(hi)? {
                    self.vars[*var] = value;
                    self.run(body)?;
                }
            }
            LoopNode::Streams { line, var, lo, hi, body } => {
                let (lo, hi) = (self.number(lo)?, self.number(hi)?);
                // Nested streams would be numbered at run time; the schedule's form is used for them.
                if self.stream != 0 {
                    return Err(Differs);
                }
                let slaves = 1..u64::try_from(hi - lo).unwrap_or(0).max(1);
                for slave in slaves.clone() {
                    self.push(*line, MethodCall::Signal("Fork"), vec![vec![slave]]);
                }
                for (stream, value) in (0..).zip(lo..hi) {
                    self.streams.resize(self.streams.len().max(stream + 1), Vec::new());
                    self.stream = stream;
                    self.vars[*var] = value;
                    if stream > 0 {
                        self.push(*line, MethodCall::Bare("Begin"), Vec::new());
                    }
                    self.run(body)?;
                    if stream > 0 {
                        self.push(*line, MethodCall::Bare("End"), Vec::new());
                    }
                }
                self.stream = 0;
                for slave in slaves {
                    self.push(*line, MethodCall::Signal("Join"), vec![vec![slave]]);
                }
            }
            LoopNode::If(arms, otherwise) => {
                for (condition, body) in arms {
                    if self.number(condition)? != 0 {
                        return self.run(body);
                    }
                }
                self.run(otherwise)?;
            }
            LoopNode::Block { body, .. } => self.run(body)?,
            LoopNode::Signal { line, method, peer } => {
                let peer = u64::try_from(self.number(peer)?).map_err(|_| Differs)?;
                self.push(*line, MethodCall::Signal(method), vec![vec![peer]]);
            }
            LoopNode::Peers { method, peers } => {
                for peer in &peers[self.me as usize] {
                    self.push(0, MethodCall::Signal(method), vec![vec![u64::from(*peer)]]);
                }
            }
            LoopNode::Move { line, method, places: operands } => {
                let mut values = Vec::new();
                let mut places = Vec::new();
                for LoopPlace { of, buffer, piece } in &**operands {
                    let peer = of.as_ref().map_or(Ok(self.me.into()), |of| self.number(of))?;
                    let remote = peer != i64::from(self.me);
                    if remote {
                        values.push(vec![u64::try_from(peer).map_err(|_| Differs)?]);
                    }
                    values.push(self.piece(piece)?);
                    places.push((*buffer, remote));
                }
                self.push(*line, MethodCall::Move(method, [places[0], places[1]]), values);
            }
        }
        Ok(())
    }

    fn push(&mut self, line: u32, what: MethodCall, values: Vec<Vec<u64>>) {
        self.streams[self.stream].push((ContestKey { line, what }, values));
    }
}
