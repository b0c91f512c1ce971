//! The statements of the loop form, the numbers in them, and the tables that numbers are looked up in.

use roundelay_core::schedule::{Buffer, SignalKind};
use roundelay_core::syntax::ast::BinOp;
use roundelay_core::values::arith::IntFn;

/// The number of a quotient or a remainder in a form, in the order of its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct DivisionId(pub(crate) u32);

/// The place of a statement: its number in the form, in the order of the text, and its line in the source, 0 if it has
/// none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct At {
    pub(crate) id: NodeId,
    /// The number of the source file.
    pub(crate) file: usize,
    pub(crate) line: u32,
}

/// The number of a statement in a form, in the order of its text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeId(pub(crate) u32);

impl At {
    /// A line of the program's own file.
    pub(crate) fn line(line: u32) -> Self {
        Self { line, ..Self::default() }
    }
}

/// A number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    Const(i64),
    /// The executing rank.
    Me,
    Nranks,
    Var(usize),
    Neg(Box<Self>),
    Not(Box<Self>),
    Flip(Box<Self>),
    Binary(BinOp, Box<[Self; 2]>),
    /// A quotient or a remainder. It has an id, since its text depends on the numbers that it is computed of.
    Division(DivisionId, BinOp, Box<[Self; 2]>),
    Choice(Box<[Self; 3]>),
    Call(IntFn, Vec<Self>),
    IsPowerOfTwo(Box<Self>),
    /// An entry of a table; the indices are iterations of loops, and also the rank if the table has a row for each.
    Entry(usize, Vec<Self>),
}

/// A table. Its dimensions are iterations of loops, the outermost first, and last the rank if `by_rank`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoopTable {
    pub(crate) sizes: Vec<usize>,
    pub(crate) by_rank: bool,
    /// The entries: each is one number, or the four numbers of a piece.
    pub(crate) entries: Vec<Vec<i64>>,
}

impl LoopTable {
    /// Returns the lengths of all dimensions, with the ranks if each has a row.
    pub(crate) fn dims(&self, nranks: u32) -> Vec<usize> {
        let ranks = self.by_rank.then_some(nranks as usize);
        self.sizes.iter().copied().chain(ranks).collect()
    }

    /// Whether the entries are pieces.
    pub(crate) fn has_pieces(&self) -> bool {
        self.entries.first().is_some_and(|entry| entry.len() > 1)
    }
}

/// A part of a buffer, in equal pieces of a unit: its first piece, its number of pieces, its slot, and the first piece
/// of the data in that slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Computed {
        lo: Number,
        width: Number,
        slot: Number,
        base: Number,
    },
    /// An entry of a table: low end, high end, slot and base.
    Entry(usize, Vec<Number>),
}

/// A source or a destination: its rank if that is not the executing rank, its buffer and its piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LoopPlace {
    pub(crate) of: Option<Number>,
    pub(crate) buffer: Buffer,
    pub(crate) piece: Piece,
    /// Of a slot that a pass takes: the number of passes on the same link before.
    pub(crate) step: Option<Number>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LoopNode {
    Let(usize, Number),
    Loop {
        var: usize,
        lo: Number,
        hi: Number,
        body: Vec<Self>,
    },
    /// Every number between the bounds on a stream of its own; the first number on the current stream.
    Streams {
        at: At,
        var: usize,
        lo: Number,
        hi: Number,
        body: Vec<Self>,
    },
    If(Vec<(Number, Vec<Self>)>, Vec<Self>),
    /// Statements with variables of their own.
    Block {
        at: At,
        body: Vec<Self>,
    },
    /// Statements of the stream with a number, among statements of other streams.
    On {
        stream: usize,
        body: Vec<Self>,
    },
    /// Runs a function with these arguments.
    Do {
        at: At,
        function: usize,
        args: Vec<Number>,
    },
    /// A post or a wait. The peer of a fork or a join is the number of the child stream. The lane is the number of its
    /// lane in the schedule; without one, it is that of the streams around.
    Signal {
        at: At,
        post: bool,
        kind: SignalKind,
        peer: Number,
        lane: Option<Number>,
    },
    /// A fold of the sources, which is written to all destinations.
    Move {
        at: At,
        /// Whether each sum of two sources is rounded.
        chain: bool,
        srcs: Vec<LoopPlace>,
        dsts: Vec<LoopPlace>,
    },
    /// Begins a message, or waits for messages, by their requests. Sends and receives have requests of their own.
    Message {
        at: At,
        send: bool,
        request: Number,
        step: MessageStep,
    },
}

/// The begin of a message of the executing rank, or the end of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessageStep {
    /// Begins a message to or from a peer, from or into a place of the executing rank.
    Begin { peer: Number, tag: Number, place: Box<LoopPlace> },
    /// Waits for a number of messages, whose requests follow each other.
    Finish(Number),
}

pub(crate) fn binary(op: BinOp, left: Number, right: Number) -> Number {
    let sides = Box::new([left, right]);
    match op {
        BinOp::Div | BinOp::Rem => Number::Division(DivisionId::default(), op, sides),
        op => Number::Binary(op, sides),
    }
}

pub(crate) fn times(index: Number, width: i64) -> Number {
    match (index, width) {
        (Number::Const(index), _) => Number::Const(index * width),
        (index, 1) => index,
        (index, _) => binary(BinOp::Mul, index, Number::Const(width)),
    }
}

pub(crate) fn product(a: Number, b: Number) -> Number {
    match (a, b) {
        (a, Number::Const(b)) => times(a, b),
        (Number::Const(0), _) => Number::Const(0),
        (Number::Const(1), b) => b,
        (a, b) => binary(BinOp::Mul, a, b),
    }
}

pub(crate) fn sum(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Const(0), b) => b,
        (a, Number::Const(0)) => a,
        (Number::Const(a), Number::Const(b)) => Number::Const(a + b),
        (a, b) => binary(BinOp::Add, a, b),
    }
}

impl Number {
    /// Whether it is 0 or 1 because it tells whether something holds.
    pub(crate) fn is_truth(&self) -> bool {
        match self {
            Self::Not(_) | Self::IsPowerOfTwo(_) => true,
            Self::Binary(op, _) => op.precedence() <= BinOp::Lt.precedence(),
            _ => false,
        }
    }

    /// Returns the negated condition.
    pub(crate) fn opposite(&self) -> Self {
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
    pub(crate) fn parts(&self) -> Vec<&Self> {
        match self {
            Self::Var(_) | Self::Const(_) | Self::Me | Self::Nranks => Vec::new(),
            Self::Neg(of) | Self::Not(of) | Self::Flip(of) | Self::IsPowerOfTwo(of) => vec![of],
            Self::Binary(_, sides) | Self::Division(_, _, sides) => sides.iter().collect(),
            Self::Choice(parts) => parts.iter().collect(),
            Self::Call(_, args) | Self::Entry(_, args) => args.iter().collect(),
        }
    }

    /// Calls `each` with this number and then with its parts.
    pub(crate) fn visit(&mut self, each: &mut impl FnMut(&mut Self)) {
        each(self);
        let parts: &mut [Self] = match self {
            Self::Var(_) | Self::Const(_) | Self::Me | Self::Nranks => &mut [],
            Self::Neg(of) | Self::Not(of) | Self::Flip(of) | Self::IsPowerOfTwo(of) => {
                std::slice::from_mut(of)
            }
            Self::Binary(_, sides) | Self::Division(_, _, sides) => &mut sides[..],
            Self::Choice(parts) => &mut parts[..],
            Self::Call(_, args) | Self::Entry(_, args) => args,
        };
        for part in parts {
            part.visit(each);
        }
    }
}

impl Piece {
    /// Returns the numbers that a text shows of it: slot and base only where they are not 0, and of an entry its indices.
    pub(crate) fn shown(&self) -> Vec<&Number> {
        match self {
            Self::Computed { lo, width, slot: Number::Const(0), base: Number::Const(0) } => {
                vec![lo, width]
            }
            Self::Computed { lo, width, slot, base } => vec![lo, width, slot, base],
            Self::Entry(_, indices) => indices.iter().collect(),
        }
    }
}

impl LoopPlace {
    pub(crate) fn numbers(&mut self) -> Vec<&mut Number> {
        let mut numbers: Vec<_> = self.of.iter_mut().collect();
        match &mut self.piece {
            Piece::Computed { lo, width, slot, base } => numbers.extend([lo, width, slot, base]),
            Piece::Entry(_, indices) => numbers.extend(indices),
        }
        numbers.extend(&mut self.step);
        numbers
    }
}

impl LoopNode {
    /// Returns the numbers of the statement itself, in the order of its text.
    pub(crate) fn numbers(&mut self) -> Vec<&mut Number> {
        match self {
            Self::Let(_, value) => vec![value],
            Self::Loop { lo, hi, .. } | Self::Streams { lo, hi, .. } => vec![lo, hi],
            Self::If(arms, _) => arms.iter_mut().map(|(condition, _)| condition).collect(),
            Self::Signal { peer, lane, .. } => std::iter::once(peer).chain(lane).collect(),
            Self::Do { args, .. } => args.iter_mut().collect(),
            Self::Move { srcs, dsts, .. } => {
                srcs.iter_mut().chain(dsts).flat_map(LoopPlace::numbers).collect()
            }
            Self::Message { request, step: MessageStep::Begin { peer, tag, place }, .. } => {
                [request, peer, tag].into_iter().chain(place.numbers()).collect()
            }
            Self::Message { request, step: MessageStep::Finish(many), .. } => vec![request, many],
            Self::Block { .. } | Self::On { .. } => Vec::new(),
        }
    }

    /// Calls `each` with every number of the statement, and of those in its blocks.
    pub(crate) fn visit(&mut self, each: &mut impl FnMut(&mut Number)) {
        for number in self.numbers() {
            number.visit(each);
        }
        for node in self.blocks_mut().into_iter().flatten() {
            node.visit(each);
        }
    }

    /// Calls `each` with every operand of the statement and of those in its blocks.
    pub(crate) fn visit_places(&mut self, each: &mut impl FnMut(&mut LoopPlace)) {
        if let Self::Move { srcs, dsts, .. } = self {
            srcs.iter_mut().chain(dsts).for_each(&mut *each);
        }
        if let Self::Message { step: MessageStep::Begin { place, .. }, .. } = self {
            each(place);
        }
        for node in self.blocks_mut().into_iter().flatten() {
            node.visit_places(each);
        }
    }

    /// Calls `each` with every variable that the statement uses or declares, and those in its blocks, in the order of the
    /// text. `each` is told whether the variable is declared there.
    pub(crate) fn visit_vars(&mut self, each: &mut impl FnMut(&mut usize, bool)) {
        for number in self.numbers() {
            number.visit(&mut |number| {
                if let Number::Var(var) = number {
                    each(var, false);
                }
            });
        }
        if let Self::Let(var, _) | Self::Loop { var, .. } | Self::Streams { var, .. } = self {
            each(var, true);
        }
        for node in self.blocks_mut().into_iter().flatten() {
            node.visit_vars(each);
        }
    }

    /// Returns the place of the statement, if it has one.
    pub(crate) const fn at_mut(&mut self) -> Option<&mut At> {
        match self {
            Self::Streams { at, .. }
            | Self::Block { at, .. }
            | Self::Do { at, .. }
            | Self::Signal { at, .. }
            | Self::Move { at, .. }
            | Self::Message { at, .. } => Some(at),
            _ => None,
        }
    }

    /// Calls `each` with the statement, and with those in its blocks.
    pub(crate) fn visit_nodes(&mut self, each: &mut impl FnMut(&mut Self)) {
        each(self);
        for node in self.blocks_mut().into_iter().flatten() {
            node.visit_nodes(each);
        }
    }

    /// Whether `holds` is true of the statement, or of one in its blocks.
    pub(crate) fn any(&self, holds: &impl Fn(&Self) -> bool) -> bool {
        let any = |body: &[Self]| body.iter().any(|node| node.any(holds));
        holds(self)
            || match self {
                Self::Loop { body, .. }
                | Self::Streams { body, .. }
                | Self::Block { body, .. }
                | Self::On { body, .. } => any(body),
                Self::If(arms, otherwise) => {
                    any(otherwise) || arms.iter().any(|(_, body)| any(body))
                }
                _ => false,
            }
    }

    pub(crate) fn blocks_mut(&mut self) -> Vec<&mut Vec<Self>> {
        match self {
            Self::Loop { body, .. }
            | Self::Streams { body, .. }
            | Self::Block { body, .. }
            | Self::On { body, .. } => vec![body],
            Self::If(arms, otherwise) => {
                arms.iter_mut().map(|(_, body)| body).chain([otherwise]).collect()
            }
            _ => Vec::new(),
        }
    }
}
