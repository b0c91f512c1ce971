//! The statements of the loop form, the numbers in them, and the tables that numbers are looked up in.

pub(crate) use roundelay_core::program::ir::Op;
use roundelay_core::program::ir::{Expr, VarId};
use roundelay_core::schedule::{Buffer, SignalKind};
use roundelay_core::syntax::ast::BinOp;

/// The number of a quotient or a remainder in a form, in the order of its text. Their texts depend on the numbers that they
/// are computed of.
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

/// A number: an expression of a program, of arithmetic, the executing rank ([`Op::Local`]), the number of ranks, variables
/// of the form, and entries of its tables. The indices of an entry are iterations of loops, and the rank follows them if
/// the table has a row for each. The place of a quotient or a remainder is its [`DivisionId`].
pub(crate) type Number = Expr;

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

/// Makes the executing rank.
pub(crate) fn executing() -> Number {
    Number::leaf(Op::Local)
}

/// Makes an entry of a table.
pub(crate) fn entry((table, indices): (usize, Vec<Number>)) -> Number {
    Number::operator(Op::Entry(table as u32), indices)
}

pub(crate) fn binary(op: BinOp, left: Number, right: Number) -> Number {
    Number::operator(Op::Binary(op), vec![left, right])
}

pub(crate) fn times(index: Number, width: i64) -> Number {
    match (index.op, width) {
        (Op::Int(index), _) => Number::int(index * width),
        (_, 1) => index,
        _ => binary(BinOp::Mul, index, Number::int(width)),
    }
}

pub(crate) fn product(a: Number, b: Number) -> Number {
    match (a.op, b.op) {
        (_, Op::Int(b)) => times(a, b),
        (Op::Int(0), _) => a,
        (Op::Int(1), _) => b,
        _ => binary(BinOp::Mul, a, b),
    }
}

pub(crate) fn sum(a: Number, b: Number) -> Number {
    match (a.op, b.op) {
        (Op::Int(0), _) => b,
        (_, Op::Int(0)) => a,
        (Op::Int(a), Op::Int(b)) => Number::int(a + b),
        _ => binary(BinOp::Add, a, b),
    }
}

/// Whether a number is 0 or 1 because it tells whether something holds.
pub(crate) fn is_truth(number: &Number) -> bool {
    match number.op {
        Op::Not | Op::IsPowerOfTwo | Op::Binary(BinOp::And | BinOp::Or) => true,
        Op::Binary(op) => op.compares(),
        _ => false,
    }
}

/// Returns the negated condition.
pub(crate) fn opposite(number: &Number) -> Number {
    let op = match number.op {
        Op::Not => return number.args[0].clone(),
        Op::Binary(BinOp::Eq) => BinOp::Ne,
        Op::Binary(BinOp::Ne) => BinOp::Eq,
        Op::Binary(BinOp::Lt) => BinOp::Ge,
        Op::Binary(BinOp::Ge) => BinOp::Lt,
        Op::Binary(BinOp::Gt) => BinOp::Le,
        Op::Binary(BinOp::Le) => BinOp::Gt,
        _ => return Number::operator(Op::Not, vec![number.clone()]),
    };
    Number { op: Op::Binary(op), ..number.clone() }
}

/// Returns the id of a quotient or a remainder.
pub(crate) fn division(number: &Number) -> Option<DivisionId> {
    let divides = matches!(number.op, Op::Binary(BinOp::Div | BinOp::Rem));
    divides.then_some(DivisionId(number.span.lo))
}

/// Calls `each` with a number and then with its parts.
pub(crate) fn visit(number: &mut Number, each: &mut impl FnMut(&mut Number)) {
    each(number);
    for part in &mut number.args {
        visit(part, each);
    }
}

impl Piece {
    /// Returns the numbers that a text shows of it: slot and base only where they are not 0, and of an entry its indices.
    pub(crate) fn shown(&self) -> Vec<&Number> {
        match self {
            Self::Computed { lo, width, slot, base }
                if [slot, base].into_iter().all(|number| number.op == Op::Int(0)) =>
            {
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
            visit(number, each);
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
            visit(number, &mut |number| {
                if let Op::Var(var) = &mut number.op {
                    let mut own = var.index();
                    each(&mut own, false);
                    *var = VarId(own as u32);
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
