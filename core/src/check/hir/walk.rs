//! Walks over the checked tree: all statements, and all expressions of a statement.

use super::{
    Demand, Expr, ExprKind, GroupsForm, Iter, ShapeArg, Stmt, StmtKind, TreeForm, TreesForm,
};

/// Visits statements and all nested statements, in the order of the source.
pub fn walk<'a>(body: &'a [Stmt], visit: &mut impl FnMut(&'a Stmt)) {
    for stmt in body {
        visit(stmt);
        match &stmt.kind {
            StmtKind::For(_, _, body)
            | StmtKind::Parallel(_, _, _, body)
            | StmtKind::Within(_, body) => walk(body, visit),
            StmtKind::Step(step) => walk(&step.body, visit),
            StmtKind::If(arms, otherwise) => {
                let guarded = arms.iter().map(|(_, body)| body);
                for body in guarded.chain(otherwise) {
                    walk(body, visit);
                }
            }
            _ => {}
        }
    }
}

impl Stmt {
    /// Returns the expressions that the statement names itself, without those of nested statements.
    pub fn exprs(&self) -> Vec<&Expr> {
        match &self.kind {
            StmtKind::Let(_, value) => vec![value],
            StmtKind::For(_, Iter::Range(lo, hi), _) | StmtKind::Parallel(_, lo, hi, _) => {
                vec![lo, hi]
            }
            StmtKind::For(_, Iter::List(list), _) | StmtKind::Within(list, _) => vec![list],
            StmtKind::If(arms, _) => arms.iter().map(|(condition, _)| condition).collect(),
            StmtKind::Require(condition, _) => vec![condition],
            StmtKind::Scratch(_, count, like, _) => count.iter().chain([like]).collect(),
            StmtKind::Demand(Demand::Multiple(of, _) | Demand::Roundings(of)) => vec![of],
            StmtKind::Step(_) | StmtKind::Demand(_) => Vec::new(),
            StmtKind::Call(_, args) => args.iter().collect(),
            StmtKind::Copy(src, dsts) => std::iter::once(src).chain(dsts).collect(),
            StmtKind::Reduce(srcs, dst) => srcs.iter().chain([dst]).collect(),
            StmtKind::Switch(src, dst) => vec![src, dst],
            StmtKind::Signal(_, peer) => vec![peer],
            StmtKind::Run(run) => {
                let args = run.args.iter().map(|(_, value)| value);
                args.chain([&run.input, &run.output]).collect()
            }
            StmtKind::Fifo { like, credits, slices } => {
                std::iter::once(like).chain(credits).chain(slices).collect()
            }
            StmtKind::Primitive { peer, places, onward, .. } => {
                std::iter::once(peer).chain(places).chain(onward).collect()
            }
        }
    }
}

impl Expr {
    /// Visits the expression and all its parts.
    pub fn walk<'a>(&'a self, visit: &mut impl FnMut(&'a Self)) {
        visit(self);
        for part in self.parts() {
            part.walk(visit);
        }
    }

    fn parts(&self) -> Vec<&Self> {
        match &*self.kind {
            ExprKind::Int(_)
            | ExprKind::Bool(_)
            | ExprKind::Var(_)
            | ExprKind::Rank
            | ExprKind::Nranks
            | ExprKind::Local
            | ExprKind::All
            | ExprKind::Input
            | ExprKind::Output
            | ExprKind::RingNatural
            | ExprKind::RingTwisted
            | ExprKind::Trees(TreesForm::Regular(_))
            | ExprKind::Groups(GroupsForm::Balanced | GroupsForm::Natural)
            | ExprKind::Error => Vec::new(),
            ExprKind::Unary(_, a)
            | ExprKind::IsPowerOfTwo(a)
            | ExprKind::Peer(a)
            | ExprKind::Len(a)
            | ExprKind::Rev(a)
            | ExprKind::RankOf(a)
            | ExprKind::RingLeft(a)
            | ExprKind::RingRight(a)
            | ExprKind::RingPosition(a)
            | ExprKind::RingOrder(a)
            | ExprKind::RingAround(a)
            | ExprKind::RingsChannels(a)
            | ExprKind::TopologyField(_, a)
            | ExprKind::Tree(TreeForm::Regular(_, a) | TreeForm::Parents(a))
            | ExprKind::TreeField(_, a)
            | ExprKind::TreesWeights(a)
            | ExprKind::Groups(
                GroupsForm::Of(a)
                | GroupsForm::Sizes(a)
                | GroupsForm::Colors(a)
                | GroupsForm::Islands(a)
                | GroupsForm::Rails(a),
            )
            | ExprKind::GroupsField(_, a) => vec![a],
            ExprKind::Binary(_, a, b)
            | ExprKind::Element(a, b)
            | ExprKind::RingsDisjoint(a, b)
            | ExprKind::RingSeat(a, b)
            | ExprKind::RingPositionOf(a, b)
            | ExprKind::RingAt(a, b)
            | ExprKind::TreeAt(a, b)
            | ExprKind::TreesWeightsOf(a, b)
            | ExprKind::TreesPositionOf(a, b)
            | ExprKind::GroupsOf(_, a, b)
            | ExprKind::GroupAt(a, b)
            | ExprKind::Neighbors(a, b)
            | ExprKind::Split(a, b)
            | ExprKind::Block(a, b)
            | ExprKind::Piece(a, b)
            | ExprKind::On(a, b) => vec![a, b],
            ExprKind::If(a, b, c)
            | ExprKind::Linked(a, b, c)
            | ExprKind::Relays(a, b, c)
            | ExprKind::Range(a, b, c) => vec![a, b, c],
            ExprKind::List(items) | ExprKind::IntFn(_, items) | ExprKind::Rust(_, items) => {
                items.iter().collect()
            }
            ExprKind::Tree(TreeForm::DoubleBinary(which, root)) => {
                std::iter::once(which).chain(root).collect()
            }
            ExprKind::Trees(TreesForm::DoubleBinary(root)) => root.iter().collect(),
            ExprKind::Trees(TreesForm::Even(trees)) => vec![trees],
            ExprKind::Trees(TreesForm::Parents { parents, weights, .. }) => {
                std::iter::once(parents).chain(weights).collect()
            }
            ExprKind::Topology(_, args, cuts) => {
                let sizes = args.iter().filter_map(|arg| match arg {
                    ShapeArg::Size(size) => Some(size),
                    _ => None,
                });
                sizes.chain(cuts.iter().flat_map(|(a, b)| [a, b])).collect()
            }
        }
    }
}
