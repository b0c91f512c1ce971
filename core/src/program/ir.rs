//! The intermediate form of programs, which has few constructs for all those of the language.

use std::sync::Arc;

pub use super::expr::{Expr, Op};
use crate::check::Declaration;
use crate::collective::Collective;
use crate::ids::SpanId;
pub use crate::ids::VarId;
use crate::schedule::SignalKind;
use crate::source::{Location, Span};
use crate::values::order_class::OrderClass;
use crate::values::params::ParamTy;
use crate::values::resource::Resource;
use roundelay_base::named_enum;

/// The work of one rank of an algorithm, for every rank and every number of ranks: a tree of statements with loops.
///
/// Every statement and every expression keeps its place in the author's source, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The name of the algorithm.
    pub name: String,
    /// The collective that it implements.
    pub collective: Collective,
    /// Whether it has no in-place form.
    pub out_of_place: bool,
    /// The name of the source.
    pub file: String,
    /// The place of each statement in the source, by [`SpanId`]; entry 0 is the algorithm's header.
    pub locations: Arc<[Location]>,
    /// The tokens of each statement, by [`SpanId`].
    pub spans: Vec<Span>,
    /// Every variable, the parameters among them.
    pub vars: Vec<Var>,
    /// The parameters, in the order of the source.
    pub params: Vec<Param>,
    /// The steps that it declares, by [`StepId`].
    pub steps: Vec<Step>,
    /// The statements that a rank runs.
    pub body: Vec<Stmt>,
    /// The parts of the algorithm beside this work; the text form has none.
    pub declaration: Arc<Declaration>,
}

impl Program {
    /// The tokens of the algorithm's header.
    pub fn header(&self) -> Span {
        self.spans.first().copied().unwrap_or_default()
    }

    /// A variable by its number.
    pub fn var(&self, var: VarId) -> &Var {
        &self.vars[var.index()]
    }

    /// Whether it or a program that it calls has a `rust { }` escape.
    pub fn has_escapes(&self) -> bool {
        self.is_any(|program| !program.declaration.escapes.is_empty())
    }

    /// The programs that it calls, and those that these call, each once and before the programs that call it.
    pub fn all_callees(&self) -> Vec<Arc<Self>> {
        let mut called = Vec::new();
        self.list_called(&mut called);
        called
    }

    /// Whether it passes data through a fifo, or a program that it calls does.
    pub fn passes(&self) -> bool {
        self.is_any(|program| program.stmts().any(|stmt| matches!(stmt.kind, StmtKind::Pass(_))))
    }

    /// Whether a primitive has a list of ranks in place of a peer.
    pub fn passes_lists(&self) -> bool {
        self.is_any(|program| {
            program.stmts().any(|stmt| match &stmt.kind {
                StmtKind::Pass(pass) => program.list_of_peers(pass).is_some(),
                _ => false,
            })
        })
    }

    /// Whether it or a program that it calls is as `own` says.
    fn is_any(&self, own: impl Fn(&Self) -> bool) -> bool {
        own(self) || self.all_callees().iter().any(|program| own(program))
    }

    fn list_called(&self, called: &mut Vec<Arc<Self>>) {
        for program in self.callees() {
            if !called.iter().any(|known| Arc::ptr_eq(known, program)) {
                program.list_called(called);
                called.push(program.clone());
            }
        }
    }

    /// The programs that its own statements call, each once, in the order of the source.
    pub(crate) fn callees(&self) -> Vec<&Arc<Self>> {
        let calls = self.stmts().filter_map(|stmt| match &stmt.kind {
            StmtKind::Call(call) => Some((stmt.at.0, &call.program)),
            _ => None,
        });
        let mut calls: Vec<_> = calls.collect();
        calls.sort_by_key(|(at, _)| *at);
        let mut callees: Vec<&Arc<Self>> = Vec::new();
        for (_, program) in calls {
            if !callees.iter().any(|known| Arc::ptr_eq(known, program)) {
                callees.push(program);
            }
        }
        callees
    }

    /// All its blocks of statements, each before the blocks inside it.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = &[Stmt]> {
        let mut left: Vec<&[Stmt]> = self.steps.iter().map(|step| &*step.body).collect();
        left.push(&self.body);
        std::iter::from_fn(move || {
            let block = left.pop()?;
            left.extend(block.iter().flat_map(Stmt::blocks));
            Some(block)
        })
    }

    /// All its statements, each before the statements inside it.
    pub(crate) fn stmts(&self) -> impl Iterator<Item = &Stmt> {
        self.blocks().flatten()
    }
}

impl Stmt {
    /// The blocks of statements inside it.
    pub fn blocks(&self) -> Vec<&[Self]> {
        match &self.kind {
            StmtKind::For(_, _, _, body)
            | StmtKind::Each(_, _, body)
            | StmtKind::Parallel(_, _, _, body)
            | StmtKind::Within(_, body) => vec![body],
            StmtKind::If(arms, otherwise) => {
                arms.iter().map(|(_, body)| body).chain([otherwise]).map(Vec::as_slice).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The variables that its moves and signals name as numbers, in the order of the source, without peers, which are
    /// told as ranks.
    pub(crate) fn numbers(&self) -> Vec<VarId> {
        let mut left: Vec<&Expr> = match &self.kind {
            StmtKind::Copy(src, dsts) => std::iter::once(src).chain(dsts).collect(),
            StmtKind::Reduce(srcs, dst) => srcs.iter().chain([dst]).collect(),
            StmtKind::Switch(src, dst) => vec![src, dst],
            StmtKind::Post(_, peer) | StmtKind::Wait(_, peer) => peer.args.iter().collect(),
            StmtKind::Pass(Pass { from, own, dst, to }) => {
                let peers = from.iter().chain(to).flat_map(|peer| &peer.args);
                peers.chain(own).chain(dst).collect()
            }
            _ => Vec::new(),
        };
        left.reverse();
        let mut found = Vec::new();
        while let Some(expr) = left.pop() {
            match (expr.op, &*expr.args) {
                (Op::Var(var), _) if !found.contains(&var) => found.push(var),
                (Op::On, [Expr { op: Op::Var(_), .. }, region]) => left.push(region),
                _ => left.extend(expr.args.iter().rev()),
            }
        }
        found
    }
}

/// An index into [`Program::steps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StepId(pub u32);

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Var {
    /// The author's name for it, which another variable may have too.
    pub name: String,
    /// The kind of its values.
    pub kind: Kind,
    /// The place of its declaration.
    pub span: Span,
}

named_enum! {
    /// The kinds of values.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Kind {
        /// A number, a truth value (0 or 1), or a peer (its rank in the whole run).
        Number = "number",
        /// A list of numbers.
        List = "list",
        /// A part of a buffer, of any rank.
        Region = "region",
        /// A region cut in pieces, or slots of scratch.
        Pieces = "pieces",
        /// A region of one rank.
        Place = "place",
        /// A ring, with this rank's position in it.
        Ring = "ring",
        /// Several rings.
        Rings = "rings",
        /// A tree, with this rank's node in it.
        Tree = "tree",
        /// Several weighted trees.
        Trees = "trees",
        /// Groups, with this rank's place in them.
        Groups = "groups",
        /// A topology.
        Topology = "topology",
        /// A bandwidth or a latency.
        Quantity = "quantity",
        /// A name without a value, such as that of a step.
        Nothing = "nothing",
    }
}

impl Kind {
    /// The kind of the values of a parameter.
    pub const fn of_param(ty: ParamTy) -> Self {
        match ty {
            ParamTy::Int | ParamTy::Bool | ParamTy::Rank => Self::Number,
            ParamTy::Ring => Self::Ring,
            ParamTy::Rings => Self::Rings,
            ParamTy::Tree => Self::Tree,
            ParamTy::Trees => Self::Trees,
            ParamTy::Groups => Self::Groups,
            ParamTy::Topology => Self::Topology,
            ParamTy::Ranks => Self::List,
        }
    }
}

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// The variable that holds its value.
    pub var: VarId,
    /// The type of the values that it takes.
    pub ty: ParamTy,
    /// Its value unless one is given.
    pub default: Option<Expr>,
}

/// A named piece of a rank's program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// The variables that take its arguments.
    pub params: Vec<VarId>,
    /// Its statements.
    pub body: Vec<Stmt>,
}

/// A statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stmt {
    /// The number of the author's statement that it belongs to.
    pub at: SpanId,
    /// The action of the statement.
    pub kind: StmtKind,
}

/// The action of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StmtKind {
    /// Gives a variable a value.
    Let(VarId, Expr),
    /// Refuses nested loops, by their bounds from the outermost on, that take more steps than allowed.
    Limit(Vec<(Expr, Expr)>),
    /// Runs the body for each number from the first bound up to, and without, the second.
    For(VarId, Expr, Expr, Vec<Stmt>),
    /// Runs the body for each element of a list.
    Each(VarId, Expr, Vec<Stmt>),
    /// Runs the body for each number between the bounds, each on a stream of its own.
    Parallel(VarId, Expr, Expr, Vec<Stmt>),
    /// Runs the body behind the first condition that holds, or else the last body.
    If(Vec<(Expr, Vec<Stmt>)>, Vec<Stmt>),
    /// Goes on only where the condition holds; the text says why it must.
    Require(Expr, String),
    /// Declares scratch: its variable, the number of its slots, the region that each is like, and whether it keeps
    /// narrow floats as f32.
    Scratch(VarId, Option<Expr>, Expr, bool),
    /// Runs a step with these arguments.
    Step(StepId, Vec<Expr>),
    /// Copies the source to every destination.
    Copy(Expr, Vec<Expr>),
    /// Folds every source into the destination.
    Reduce(Vec<Expr>, Expr),
    /// A move by a switch from the first operand to the second: an operand is a place of one rank, or a region of every
    /// rank. What it takes of every rank is folded, in an order that is open.
    Switch(Expr, Expr),
    /// Adds one to the counter of a signal of this kind to a peer.
    Post(SignalKind, Expr),
    /// Waits for a signal of this kind from a peer.
    Wait(SignalKind, Expr),
    /// Runs the body on the ranks of a list, which are numbered anew in it.
    Within(Expr, Vec<Stmt>),
    /// Runs another program on regions of this one.
    Call(Call),
    /// Declares the fifo: the region that a slot has room for, the slots of a link, the slices of a message.
    Fifo(Expr, Option<Expr>, Option<Expr>),
    /// Passes data through the fifo.
    Pass(Pass),
    /// Demands a property of the schedule.
    Demand(Demand),
}

/// A call of another program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The program that is called.
    pub program: Arc<Program>,
    /// The values of parameters that are given, by their index.
    pub args: Vec<(usize, Expr)>,
    /// The region that is its input.
    pub input: Expr,
    /// The region that is its output.
    pub output: Expr,
}

/// A move through a fifo: data from a peer, if there is one, is folded into the own region, if there is one, and goes
/// to the destination and on to another peer, where these are given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The peer whose data is received, or a list of ranks whose data is folded.
    pub from: Option<Expr>,
    /// The region of this rank that takes part.
    pub own: Option<Expr>,
    /// The region of this rank that takes the result.
    pub dst: Option<Expr>,
    /// The peer that the result is sent to, or a list of ranks.
    pub to: Option<Expr>,
}

/// A property that a schedule must have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// Data and signals use only links of a topology.
    Links(Expr),
    /// Reductions keep a promise about their order.
    Order(OrderClass),
    /// No result in a type narrower than f32 is rounded more often.
    Roundings(Expr),
    /// Blocks may have a count each.
    Uneven,
    /// At most this amount of a resource is used.
    AtMost(Resource, Expr),
    /// Counts are multiples of this number; the text says why they must be.
    Multiple(Expr, String),
}
