//! From the checked tree to the program: steps are numbered, sugar is expanded, and called algorithms are lowered
//! too.

use std::collections::HashMap;
use std::sync::Arc;

use super::CompiledSource;
use super::ir::{
    Call, Demand, Expr, Kind, Op, Param, Pass, Program, Step, StepId, Stmt, StmtKind, Var, VarId,
};
use crate::check::CheckedSource;
use crate::check::hir::{
    self, ExprKind, GroupsField, GroupsForm, Iter, ShapeArg, Signal, TopologyField, TreeField,
    TreeForm, TreesForm, Ty,
};
use crate::ids::SpanId;
use crate::schedule::SignalKind;
use crate::source::{Location, Span};
use crate::syntax::Source;
use crate::syntax::ast::{BinOp, UnOp};

/// Returns the programs of a checked source.
pub fn lower(checked: &CheckedSource, source: &Source) -> CompiledSource {
    let mut called = HashMap::new();
    let mut lowered = |algorithm: &hir::Algorithm| {
        let locations = algorithm.spans.iter().map(|span| source.location(*span)).collect();
        Lower::new(&mut called).program(algorithm, source.name(), locations)
    };
    CompiledSource {
        algorithms: checked.algorithms.iter().map(&mut lowered).collect(),
        executors: checked.executors.iter().map(|one| one.map(&mut lowered)).collect(),
        warnings: checked.warnings.clone(),
    }
}

/// Called programs, by the address of their trees: each is made once, however often it is called.
type Called = HashMap<*const hir::Algorithm, Arc<Program>>;

struct Lower<'c> {
    called: &'c mut Called,
    /// The steps declared so far, by the variable with their name.
    steps: HashMap<VarId, StepId>,
    declared: Vec<Step>,
    /// The variables of loops that stand for one statement of the page.
    loops: Vec<Var>,
}

impl<'c> Lower<'c> {
    fn new(called: &'c mut Called) -> Self {
        Self { called, steps: HashMap::new(), declared: Vec::new(), loops: Vec::new() }
    }

    fn program(mut self, of: &hir::Algorithm, file: &str, locations: Arc<[Location]>) -> Program {
        let vars = of.vars.iter().map(|var| Var {
            name: var.name.clone(),
            kind: kind(var.ty),
            span: var.span,
        });
        let params = of.params.iter().map(|param| Param {
            var: param.var,
            ty: param.ty,
            default: param.default.as_ref().map(expr),
        });
        let body = self.block(&of.body, of);
        Program {
            name: of.name.clone(),
            collective: of.collective,
            out_of_place: of.out_of_place,
            file: file.to_owned(),
            locations,
            spans: of.spans.clone(),
            vars: vars.chain(self.loops).collect(),
            params: params.collect(),
            steps: self.declared,
            body,
            declaration: of.declaration.clone(),
        }
    }

    fn block(&mut self, body: &[hir::Stmt], of: &hir::Algorithm) -> Vec<Stmt> {
        let mut stmts = Vec::with_capacity(body.len());
        for stmt in body {
            let bounds =
                |nest: hir::Nest<'_>| nest.iter().map(|(lo, hi)| (expr(lo), expr(hi))).collect();
            let limits = stmt.nests().into_iter().map(|nest| StmtKind::Limit(bounds(nest)));
            stmts.extend(limits.map(|kind| Stmt { at: stmt.at, kind }));
            if let Some(kind) = self.stmt(stmt, of) {
                stmts.push(Stmt { at: stmt.at, kind });
            }
        }
        stmts
    }

    /// Returns the statement, unless it only declares a step.
    fn stmt(&mut self, stmt: &hir::Stmt, of: &hir::Algorithm) -> Option<StmtKind> {
        use hir::StmtKind as From;
        Some(match &stmt.kind {
            From::Let(name, value) => StmtKind::Let(*name, expr(value)),
            From::For(name, Iter::Range(lo, hi), body) => {
                StmtKind::For(*name, expr(lo), expr(hi), self.block(body, of))
            }
            From::For(name, Iter::List(list), body) => {
                StmtKind::Each(*name, expr(list), self.block(body, of))
            }
            From::Parallel(name, lo, hi, body) => {
                StmtKind::Parallel(*name, expr(lo), expr(hi), self.block(body, of))
            }
            From::If(arms, otherwise) => {
                let arms =
                    arms.iter().map(|(condition, body)| (expr(condition), self.block(body, of)));
                let arms = arms.collect();
                StmtKind::If(
                    arms,
                    otherwise.as_ref().map_or_else(Vec::new, |body| self.block(body, of)),
                )
            }
            From::Require(condition, why) => StmtKind::Require(expr(condition), why.clone()),
            From::Scratch(name, count, like, wide) => {
                StmtKind::Scratch(*name, count.as_ref().map(expr), expr(like), *wide)
            }
            From::Step(step) => {
                let body = self.block(&step.body, of);
                self.steps.insert(step.name, StepId(self.declared.len() as u32));
                self.declared.push(Step {
                    name: of.vars[step.name.index()].name.clone(),
                    params: step.params.clone(),
                    body,
                });
                return None;
            }
            From::Call(step, args) => StmtKind::Step(self.steps[step], exprs(args)),
            From::Copy(src, dsts) => StmtKind::Copy(expr(src), exprs(dsts)),
            From::Reduce(srcs, dst) => StmtKind::Reduce(exprs(srcs), expr(dst)),
            From::Switch(src, dst) => StmtKind::Switch(expr(src), expr(dst)),
            From::Signal(which, peers) if peers.ty == Ty::All => {
                self.signal_to_all(*which, peers.span, stmt.at, of)
            }
            From::Signal(which, peer) => signal(*which, expr(peer)),
            From::Within(list, body) => StmtKind::Within(expr(list), self.block(body, of)),
            From::Run(run) => StmtKind::Call(Call {
                program: self.callee(&run.callee),
                args: run.args.iter().map(|(param, value)| (*param, expr(value))).collect(),
                input: expr(&run.input),
                output: expr(&run.output),
            }),
            From::Fifo { like, credits, slices } => {
                StmtKind::Fifo(expr(like), credits.as_ref().map(expr), slices.as_ref().map(expr))
            }
            From::Primitive { primitive, peer, places, onward } => {
                StmtKind::Pass(pass(*primitive, peer, places, onward.as_ref()))
            }
            From::Demand(demand) => StmtKind::Demand(match demand {
                hir::Demand::Topology(topology) => Demand::Links(expr(topology)),
                hir::Demand::Order(class) => Demand::Order(*class),
                hir::Demand::Roundings(most) => Demand::Roundings(expr(most)),
                hir::Demand::Uneven => Demand::Uneven,
                hir::Demand::Budget(resource, most) => Demand::AtMost(*resource, expr(most)),
                hir::Demand::Multiple(of, why) => Demand::Multiple(expr(of), why.clone()),
            }),
        })
    }

    /// Returns the loop of a signal over all other ranks, which begins behind the own one.
    fn signal_to_all(
        &mut self,
        which: Signal,
        span: Span,
        at: SpanId,
        of: &hir::Algorithm,
    ) -> StmtKind {
        let var = VarId((of.vars.len() + self.loops.len()) as u32);
        self.loops.push(Var { name: "distance".to_owned(), kind: Kind::Number, span });
        let node = |op, args: Box<[Expr]>| Expr { op, args, span };
        let nranks = || node(Op::Nranks, Box::default());
        let own = node(Op::Rank, Box::default());
        let sum = node(Op::Binary(BinOp::Add), [own, node(Op::Var(var), Box::default())].into());
        let peer = node(Op::Peer, [node(Op::Binary(BinOp::Rem), [sum, nranks()].into())].into());
        let body = vec![Stmt { at, kind: signal(which, peer) }];
        StmtKind::For(var, node(Op::Int(1), Box::default()), nranks(), body)
    }

    fn callee(&mut self, callee: &hir::Callee) -> Arc<Program> {
        let key = Arc::as_ptr(&callee.algorithm);
        if let Some(known) = self.called.get(&key) {
            return known.clone();
        }
        let program = Lower::new(self.called).program(
            &callee.algorithm,
            &callee.file,
            callee.locations.clone(),
        );
        let program = Arc::new(program);
        self.called.insert(key, program.clone());
        program
    }
}

/// Returns the statement of a signal.
fn signal(which: Signal, peer: Expr) -> StmtKind {
    match which {
        Signal::TxAck => StmtKind::Post(SignalKind::Ack, peer),
        Signal::RxAck => StmtKind::Wait(SignalKind::Ack, peer),
        Signal::TxDataSignal => StmtKind::Post(SignalKind::Data, peer),
        Signal::RxDataSignal => StmtKind::Wait(SignalKind::Data, peer),
    }
}

/// Returns the move of a primitive: `reads` and `writes` tell the roles of its regions.
fn pass(
    primitive: hir::Primitive,
    peer: &hir::Expr,
    places: &[hir::Expr],
    onward: Option<&hir::Expr>,
) -> Pass {
    use hir::Primitive::{RecvReduce, Send};
    let first = || places.first().map(expr);
    let last = || places.last().map(expr);
    Pass {
        from: (primitive != Send).then(|| expr(peer)),
        // Received data is folded into the region that then takes the result.
        own: if primitive.reads() || primitive == RecvReduce { first() } else { None },
        dst: if primitive.writes() { last() } else { None },
        to: if primitive == Send { Some(expr(peer)) } else { onward.map(expr) },
    }
}

fn kind(ty: Ty) -> Kind {
    match ty {
        Ty::Int | Ty::Bool | Ty::Peer => Kind::Number,
        Ty::Ring => Kind::Ring,
        Ty::Rings => Kind::Rings,
        Ty::Tree => Kind::Tree,
        Ty::Trees => Kind::Trees,
        Ty::Groups => Kind::Groups,
        Ty::Topology => Kind::Topology,
        Ty::List => Kind::List,
        Ty::Region => Kind::Region,
        Ty::Pieces => Kind::Pieces,
        Ty::Place => Kind::Place,
        Ty::Places | Ty::All | Ty::OfAll | Ty::PiecesOfAll | Ty::Step | Ty::Fifo | Ty::Error => {
            Kind::Nothing
        }
    }
}

fn exprs(exprs: &[hir::Expr]) -> Vec<Expr> {
    exprs.iter().map(expr).collect()
}

fn expr(from: &hir::Expr) -> Expr {
    let node = |op, args| Expr { op, args, span: from.span };
    match &*from.kind {
        // Piece `index` of the region, cut into as many pieces as there are ranks.
        ExprKind::Block(region, index) => {
            let many = node(Op::Nranks, Box::default());
            let pieces = node(Op::Split, [expr(region), many].into());
            node(Op::Piece, [pieces, expr(index)].into())
        }
        ExprKind::Topology(kind, args, cuts) => {
            let args = args.iter().map(|arg| match arg {
                ShapeArg::Size(size) => expr(size),
                ShapeArg::Rate(rate) => node(Op::Rate(*rate), Box::default()),
                ShapeArg::Time(time) => node(Op::Time(*time), Box::default()),
                ShapeArg::Machine(machine) => node(Op::Machine(machine), Box::default()),
                ShapeArg::Gpus(model) => node(Op::Gpus(*model), Box::default()),
                ShapeArg::Reducing => node(Op::Reducing, Box::default()),
            });
            let pairs = cuts.iter().flat_map(|(a, b)| [expr(a), expr(b)]);
            node(Op::Topology(*kind, cuts.len() as u32), args.chain(pairs).collect())
        }
        // A region of all ranks is a region.
        ExprKind::On(all, region) if all.ty == Ty::All => expr(region),
        _ => {
            let (op, args) = operator(from);
            node(op, args.into_iter().map(expr).collect())
        }
    }
}

/// Returns the operator of an expression that is not sugar, and its operands.
fn operator(from: &hir::Expr) -> (Op, Vec<&hir::Expr>) {
    match &*from.kind {
        ExprKind::Int(value) => (Op::Int(*value), vec![]),
        ExprKind::Bool(value) => (Op::Int((*value).into()), vec![]),
        ExprKind::Var(name) => (Op::Var(*name), vec![]),
        ExprKind::Rank => (Op::Rank, vec![]),
        ExprKind::Nranks => (Op::Nranks, vec![]),
        ExprKind::Local => (Op::Local, vec![]),
        ExprKind::Input => (Op::Input, vec![]),
        ExprKind::Output => (Op::Output, vec![]),
        ExprKind::Unary(UnOp::Neg, a) => (Op::Neg, vec![a]),
        ExprKind::Unary(UnOp::Not, a) if from.ty == Ty::Bool => (Op::Not, vec![a]),
        ExprKind::Unary(UnOp::Not, a) => (Op::Flip, vec![a]),
        ExprKind::Binary(op, a, b) => (Op::Binary(*op), vec![a, b]),
        ExprKind::If(condition, a, b) => (Op::If, vec![condition, a, b]),
        ExprKind::List(items) => (Op::List, items.iter().collect()),
        ExprKind::IntFn(function, args) => (Op::Function(*function), args.iter().collect()),
        ExprKind::IsPowerOfTwo(a) => (Op::IsPowerOfTwo, vec![a]),
        ExprKind::Peer(a) => (Op::Peer, vec![a]),
        ExprKind::Len(a) => (Op::Len, vec![a]),
        ExprKind::Rev(a) => (Op::Rev, vec![a]),
        ExprKind::Element(a, b) => (Op::Element, vec![a, b]),
        ExprKind::RankOf(a) => (Op::RankOf, vec![a]),
        ExprKind::RingLeft(a) => (Op::RingLeft, vec![a]),
        ExprKind::RingRight(a) => (Op::RingRight, vec![a]),
        ExprKind::RingPosition(a) => (Op::RingPosition, vec![a]),
        ExprKind::RingNatural => (Op::RingNatural, vec![]),
        ExprKind::RingTwisted => (Op::RingTwisted, vec![]),
        ExprKind::RingOrder(a) => (Op::RingOrder, vec![a]),
        ExprKind::RingAround(a) => (Op::RingAround, vec![a]),
        ExprKind::RingsChannels(a) => (Op::RingsChannels, vec![a]),
        ExprKind::RingsDisjoint(a, b) => (Op::RingsDisjoint, vec![a, b]),
        ExprKind::RingSeat(a, b) => (Op::RingSeat, vec![a, b]),
        ExprKind::RingPositionOf(a, b) => (Op::RingPositionOf, vec![a, b]),
        ExprKind::RingAt(a, b) => (Op::RingsAt, vec![a, b]),
        ExprKind::Tree(TreeForm::Regular(kind, root)) => (Op::Tree(*kind), vec![root]),
        ExprKind::Tree(TreeForm::DoubleBinary(which, root)) => {
            (Op::TreeDoubleBinary, std::iter::once(which).chain(root).collect())
        }
        ExprKind::Tree(TreeForm::Parents(list)) => (Op::TreeParents, vec![list]),
        ExprKind::TreeField(field, a) => (asked_of_a_tree(*field), vec![a]),
        ExprKind::Trees(TreesForm::Regular(kind)) => (Op::Trees(*kind), vec![]),
        ExprKind::Trees(TreesForm::DoubleBinary(root)) => {
            (Op::TreesDoubleBinary, root.iter().collect())
        }
        ExprKind::Trees(TreesForm::Even(a)) => (Op::TreesEven, vec![a]),
        ExprKind::Trees(TreesForm::Parents { parents, weights, turned }) => {
            let op = if *turned { Op::TreesTurned } else { Op::TreesParents };
            (op, std::iter::once(parents).chain(weights).collect())
        }
        ExprKind::TreeAt(a, b) => (Op::TreesAt, vec![a, b]),
        ExprKind::TreesWeights(a) => (Op::TreesWeights, vec![a]),
        ExprKind::TreesWeightsOf(a, b) => (Op::TreesWeightsOf, vec![a, b]),
        ExprKind::TreesPositionOf(a, b) => (Op::TreesPositionOf, vec![a, b]),
        ExprKind::Groups(form) => groups(form),
        ExprKind::GroupsField(field, a) => (asked_of_groups(*field), vec![a]),
        ExprKind::GroupsOf(GroupsField::Index, a, b) => (Op::GroupsIndexOf, vec![a, b]),
        ExprKind::GroupsOf(_, a, b) => (Op::GroupsPositionOf, vec![a, b]),
        ExprKind::GroupAt(a, b) => (Op::GroupsAt, vec![a, b]),
        ExprKind::Linked(a, b, c) => (Op::Linked, vec![a, b, c]),
        ExprKind::Neighbors(a, b) => (Op::Neighbors, vec![a, b]),
        ExprKind::Relays(a, b, c) => (Op::Relays, vec![a, b, c]),
        ExprKind::TopologyField(TopologyField::Missing, a) => (Op::Missing, vec![a]),
        ExprKind::TopologyField(TopologyField::Shares, a) => (Op::Shares, vec![a]),
        ExprKind::TopologyField(TopologyField::Hubs, a) => (Op::Hubs, vec![a]),
        ExprKind::Split(a, b) => (Op::Split, vec![a, b]),
        ExprKind::Piece(a, b) => (Op::Piece, vec![a, b]),
        ExprKind::Range(a, b, c) => (Op::Pieces, vec![a, b, c]),
        ExprKind::On(a, b) => (Op::On, vec![a, b]),
        ExprKind::Rust(number, scope) => (Op::Escape(*number), scope.iter().collect()),
        ExprKind::Block(..) | ExprKind::Topology(..) => unreachable!("this is sugar"),
        ExprKind::All => unreachable!("it stands before a region or a signal"),
        ExprKind::Error => unreachable!("a program with errors is not lowered"),
    }
}

fn asked_of_a_tree(field: TreeField) -> Op {
    match field {
        TreeField::Root => Op::TreeRoot,
        TreeField::Parent => Op::TreeParent,
        TreeField::Children => Op::TreeChildren,
        TreeField::Level => Op::TreeLevel,
        TreeField::Depth => Op::TreeDepth,
    }
}

fn groups(form: &GroupsForm) -> (Op, Vec<&hir::Expr>) {
    match form {
        GroupsForm::Of(a) => (Op::GroupsOf, vec![a]),
        GroupsForm::Sizes(a) => (Op::GroupsSizes, vec![a]),
        GroupsForm::Colors(a) => (Op::GroupsColors, vec![a]),
        GroupsForm::Balanced => (Op::GroupsBalanced, vec![]),
        GroupsForm::Natural => (Op::GroupsNatural, vec![]),
        GroupsForm::Islands(a) => (Op::GroupsIslands, vec![a]),
        GroupsForm::Rails(a) => (Op::GroupsRails, vec![a]),
    }
}

fn asked_of_groups(field: GroupsField) -> Op {
    match field {
        GroupsField::Mine => Op::GroupsMine,
        GroupsField::Across => Op::GroupsAcross,
        GroupsField::Index => Op::GroupsIndex,
        GroupsField::Position => Op::GroupsPosition,
        GroupsField::Even => Op::GroupsEven,
    }
}
