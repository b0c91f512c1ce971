//! The checked tree: every name resolved, every type known, every statement numbered. The program is lowered from this
//! tree, so the lowering never meets a source with errors.

mod depth;
mod exprs;
mod nest;
mod walk;

use std::sync::Arc;

use super::declaration::Declaration;
use crate::collective::Collective;
use crate::ids::SpanId;
pub use crate::ids::VarId;
use crate::lints::Levels;
use crate::source::{Location, Span};
use crate::values::order_class::OrderClass;
pub use crate::values::params::ParamTy;
use crate::values::resource::Resource;
pub(crate) use depth::MOST_DEPTH;
pub use exprs::*;
pub(crate) use nest::Nest;
use roundelay_base::named_enum;
pub use walk::walk;

/// A checked algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Algorithm {
    /// Its name.
    pub name: String,
    /// The place of the name.
    pub name_span: Span,
    /// The collective it implements.
    pub collective: Collective,
    /// Whether the algorithm is marked `#[out_of_place]`.
    pub out_of_place: bool,
    /// The levels of warnings by `#[allow]` and `#[deny]`.
    pub levels: Levels,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Its statements.
    pub body: Vec<Stmt>,
    /// Every variable: its name and type.
    pub vars: Vec<Var>,
    /// The place of each name that stands for a variable, and that variable.
    pub uses: Vec<(Span, VarId)>,
    /// The place of each statement, by [`SpanId`]. Entry 0 is the header.
    pub spans: Vec<Span>,
    /// Whether the algorithm or one that it calls holds a `rust { }` escape, which only the compiled crate can run.
    pub escapes: bool,
    /// Its parts beside the work of its ranks.
    pub declaration: Arc<Declaration>,
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Var {
    /// The author's name.
    pub name: String,
    /// The place of its declaration.
    pub span: Span,
    /// Its type.
    pub ty: Ty,
}

/// The types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    /// 64-bit integer.
    Int,
    /// Truth value.
    Bool,
    /// A rank to communicate with.
    Peer,
    /// A ring order, with this rank's position in it.
    Ring,
    /// Several ring orders.
    Rings,
    /// A spanning tree, with this rank's node in it.
    Tree,
    /// Several weighted trees.
    Trees,
    /// A partition of the ranks, with this rank's membership in it.
    Groups,
    /// A graph of ranks and links.
    Topology,
    /// A list of integers.
    List,
    /// A region of any rank.
    Region,
    /// A region cut in pieces, or slots of scratch.
    Pieces,
    /// A region of one rank.
    Place,
    /// Pieces of a region of one rank.
    Places,
    /// All ranks.
    All,
    /// A region of all ranks.
    OfAll,
    /// Pieces of a region of all ranks.
    PiecesOfAll,
    /// A step, which is no value.
    Step,
    /// The fifo, which is no value.
    Fifo,
    /// An expression with a reported error.
    Error,
}

/// A parameter of an algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The variable that the parameter declares.
    pub var: VarId,
    /// The type of the values that it takes.
    pub ty: ParamTy,
    /// Its value unless one is given; a ring has the natural order, a topology is a full mesh.
    pub default: Option<Expr>,
}

/// A numbered statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stmt {
    /// The number of the statement.
    pub at: SpanId,
    /// The kind of statement, with its parts.
    pub kind: StmtKind,
}

/// The statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StmtKind {
    /// `let` and `view`
    Let(VarId, Expr),
    /// `for`
    For(VarId, Iter, Vec<Stmt>),
    /// `parallel` over `lo..hi`
    Parallel(VarId, Expr, Expr, Vec<Stmt>),
    /// `if … else if … else`
    If(Vec<(Expr, Vec<Stmt>)>, Option<Vec<Stmt>>),
    /// `require`
    Require(Expr, String),
    /// `scratch`; the shape is a region or pieces, and the flag is `as f32`
    Scratch(VarId, Option<Expr>, Expr, bool),
    /// `step`, defined here
    Step(Step),
    /// A step's call
    Call(VarId, Vec<Expr>),
    /// `copy`
    Copy(Expr, Vec<Expr>),
    /// `reduce`
    Reduce(Vec<Expr>, Expr),
    /// `fold`, or `copy` to a region of all ranks
    Switch(Expr, Expr),
    /// A signal to or from a peer, or all other ranks
    Signal(Signal, Expr),
    /// `within`: the list of ranks that the body sees, and the body
    Within(Expr, Vec<Stmt>),
    /// Another algorithm on regions of this one
    Run(AlgorithmCall),
    /// `fifo`; the shape is a region or pieces
    Fifo {
        /// The shape of a slot, with its slices.
        like: Expr,
        /// Slots of a link; NCCL's number unless written.
        credits: Option<Expr>,
        /// Slices of a message; one unless written.
        slices: Option<Expr>,
    },
    /// One of NCCL's primitives
    Primitive {
        /// The primitive.
        primitive: Primitive,
        /// The peer before the dot: the receiver of a `send`, or the sender of a receive.
        peer: Expr,
        /// Regions of this rank, in the order in which they are written.
        places: Vec<Expr>,
        /// The peer that the result is sent on to, if there is one.
        onward: Option<Expr>,
    },
    /// A demand of an attribute, at the head of the body
    Demand(Demand),
}

/// A call of another algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlgorithmCall {
    /// The called algorithm.
    pub callee: Arc<Callee>,
    /// The given parameters, by index, each once.
    pub args: Vec<(usize, Expr)>,
    /// The region of the caller that is the input.
    pub input: Expr,
    /// The region of the caller that is the output.
    pub output: Expr,
}

/// An algorithm that others may call, with the parts of its source that its messages need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Callee {
    /// The checked algorithm.
    pub algorithm: Arc<Algorithm>,
    /// The name of its source.
    pub file: String,
    /// The places of its statements in that source.
    pub locations: Arc<[Location]>,
    /// The number of calls that nest in it: 1 where it calls nothing.
    pub depth: usize,
    /// The number of statements that nest in it, including the statements of called algorithms.
    pub statements: usize,
}

impl Algorithm {
    /// Returns the called algorithms, each once, in the order of the source.
    pub fn callees(&self) -> Vec<&Callee> {
        let mut found: Vec<&Callee> = Vec::new();
        walk(&self.body, &mut |stmt| {
            if let StmtKind::Run(run) = &stmt.kind {
                let name = &run.callee.algorithm.name;
                if found.iter().all(|known| known.algorithm.name != *name) {
                    found.push(&run.callee);
                }
            }
        });
        found
    }
}

/// A demand on a schedule, by an attribute, or on its counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// `#[topology(…)]`
    Topology(Expr),
    /// `#[deterministic]`, or one promise of `#[order(…)]`
    Order(OrderClass),
    /// `#[roundings(at_most = …)]`
    Roundings(Expr),
    /// `#[uneven]`
    Uneven,
    /// `#[budget(streams = …)]` and its kin
    Budget(Resource, Expr),
    /// `require count % OF == 0, "why";`
    Multiple(Expr, String),
}

named_enum! {
    /// The four signals of the language.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Signal {
        /// Release, to the peer's `RxAck`.
        TxAck = "TxAck",
        /// Acquire.
        RxAck = "RxAck",
        /// Release, to the peer's `RxDataSignal`.
        TxDataSignal = "TxDataSignal",
        /// Acquire.
        RxDataSignal = "RxDataSignal",
    }
}

named_enum! {
    /// NCCL's primitives, which pass data through the fifo of a link.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Primitive {
        /// Own data into the peer's next slot.
        Send = "send",
        /// The next slot into own memory.
        Recv = "recv",
        /// The next slot reduced into own memory.
        RecvReduce = "recv_reduce",
        /// The next slot into own memory and the next peer's slot.
        RecvCopySend = "recv_copy_send",
        /// The next slot, reduced with own data, into the next peer's slot.
        RecvReduceSend = "recv_reduce_send",
        /// The next slot, reduced with own data, into own memory.
        RecvReduceCopy = "recv_reduce_copy",
        /// The next slot, reduced with own data, into own memory and the next peer's slot.
        RecvReduceCopySend = "recv_reduce_copy_send",
    }
}

impl Primitive {
    /// Returns the call of the primitive as it is written.
    pub const fn form(self) -> &'static str {
        match self {
            Self::Send => "right.send(local.src)",
            Self::Recv => "left.recv(local.dst)",
            Self::RecvReduce => "left.recv_reduce(local.dst)",
            Self::RecvCopySend => "left.recv_copy_send(local.dst, right)",
            Self::RecvReduceSend => "left.recv_reduce_send(local.src, right)",
            Self::RecvReduceCopy => "left.recv_reduce_copy(local.src, local.dst)",
            Self::RecvReduceCopySend => "left.recv_reduce_copy_send(local.src, local.dst, right)",
        }
    }

    /// Whether the primitive copies received data, which is then that of one peer: of several it is folded.
    pub const fn copies(self) -> bool {
        matches!(self, Self::Recv | Self::RecvCopySend)
    }

    /// Whether the primitive reads the first of its regions.
    pub const fn reads(self) -> bool {
        matches!(
            self,
            Self::Send | Self::RecvReduceSend | Self::RecvReduceCopy | Self::RecvReduceCopySend
        )
    }

    /// Whether the primitive writes the last of its regions.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Send | Self::RecvReduceSend)
    }

    /// Whether the primitive names a peer to send the result on to.
    pub const fn forwards(self) -> bool {
        matches!(self, Self::RecvCopySend | Self::RecvReduceSend | Self::RecvReduceCopySend)
    }
}

/// A step: a named piece of a rank's program. Its name is a variable of a type that no value has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its name.
    pub name: VarId,
    /// Its parameters.
    pub params: Vec<VarId>,
    /// Its statements.
    pub body: Vec<Stmt>,
}

/// The range or list of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Iter {
    /// `lo..hi`
    Range(Expr, Expr),
    /// The elements of a list.
    List(Expr),
}
