//! Expressions in CUDA text: the author's arithmetic stays arithmetic, and questions to objects become calls of the
//! device library.

use super::stmts::Body;
use roundelay_core::check::hir::{Expr, ExprKind, GroupsField, TreeField, Ty};
use roundelay_core::syntax::ast::{BinOp, UnOp};
use roundelay_core::syntax::expr_text::{ATOM, Target, Text};

impl Body<'_, '_> {
    /// Returns the expression as an argument, or as the right side of `=`.
    pub(super) fn expr(&mut self, expr: &Expr) -> String {
        self.text(expr).code
    }

    /// Returns the expression for use before `.` or `[`.
    pub(super) fn atom(&mut self, expr: &Expr) -> String {
        self.text(expr).at_least(ATOM)
    }

    pub(super) fn text(&mut self, expr: &Expr) -> Text {
        let atom = Text::atom;
        match &*expr.kind {
            ExprKind::Int(value) => Text::number(value.to_string(), *value),
            ExprKind::Bool(value) => atom(value.to_string()),
            ExprKind::Var(var) => atom(self.var(*var)),
            ExprKind::Rank => atom("rank".into()),
            ExprKind::Nranks => atom("nranks".into()),
            ExprKind::Local => atom("local".into()),
            ExprKind::Input => atom("input".into()),
            ExprKind::Output => atom("output".into()),
            ExprKind::Unary(UnOp::Not, of) if of.ty == Ty::Int => {
                Target::Cpp.complement(self.text(of))
            }
            ExprKind::Unary(op, of) => Target::Cpp.unary(*op, self.text(of)),
            ExprKind::Binary(op, left, right) => {
                // A literal operand has 32 bits.
                let left = match (op, &*left.kind) {
                    (BinOp::Shl, ExprKind::Int(value)) => atom(format!("i64({value})")),
                    _ => self.text(left),
                };
                Target::Cpp.binary(*op, left, self.text(right))
            }
            ExprKind::If(condition, then, otherwise) => {
                let [condition, then, otherwise] =
                    [condition, then, otherwise].map(|part| self.text(part));
                Target::Cpp.choice(condition, then, otherwise)
            }
            ExprKind::List(items) => {
                let items: Vec<_> = items.iter().map(|item| self.expr(item)).collect();
                atom(self.list(&items))
            }
            ExprKind::IntFn(function, args) => {
                Text::call(function.name(), args.iter().map(|arg| self.text(arg)))
            }
            ExprKind::IsPowerOfTwo(x) => Text::call("is_power_of_two", [self.text(x)]),
            ExprKind::Peer(rank) => Text::call("lane.peer", [self.text(rank)]),
            ExprKind::Len(of) => Text::call("len", [self.text(of)]),
            ExprKind::Rev(list) => Text::call("rev", [self.text(list)]),
            ExprKind::Element(of, index)
            | ExprKind::RingSeat(of, index)
            | ExprKind::RingAt(of, index)
            | ExprKind::TreeAt(of, index)
            | ExprKind::GroupAt(of, index)
            | ExprKind::Piece(of, index)
            | ExprKind::On(of, index) => {
                let of = self.atom(of);
                atom(format!("{of}[{}]", self.expr(index)))
            }
            ExprKind::RankOf(peer) => self.asked(peer, "number"),
            ExprKind::RingLeft(ring) => self.asked(ring, "left"),
            ExprKind::RingRight(ring) => self.asked(ring, "right"),
            ExprKind::RingPosition(ring) => self.asked(ring, "position"),
            ExprKind::RingPositionOf(ring, rank) | ExprKind::TreesPositionOf(ring, rank) => {
                let (ring, rank) = (self.atom(ring), self.expr(rank));
                atom(format!("{ring}.position_of({rank})"))
            }
            ExprKind::RingNatural => atom("lane.ring_natural()".into()),
            ExprKind::RingOrder(list) => Text::call("lane.ring_order", [self.text(list)]),
            ExprKind::TreeField(field, tree) => self.asked(tree, tree_field(*field)),
            ExprKind::TreesWeights(trees) => self.asked(trees, "weights"),
            ExprKind::TreesWeightsOf(trees, rank) => {
                let (trees, rank) = (self.atom(trees), self.expr(rank));
                atom(format!("{trees}.weights_of({rank})"))
            }
            ExprKind::GroupsField(field, groups) => self.asked(groups, groups_field(*field)),
            ExprKind::GroupsOf(field, groups, rank) => {
                let (groups, rank) = (self.atom(groups), self.expr(rank));
                atom(format!("{groups}.{}_of({rank})", groups_field(*field)))
            }
            ExprKind::Linked(topology, a, b) => {
                let (topology, a, b) = (self.atom(topology), self.expr(a), self.expr(b));
                atom(format!("{topology}.linked({a}, {b})"))
            }
            ExprKind::Neighbors(topology, rank) => {
                let (topology, rank) = (self.atom(topology), self.expr(rank));
                atom(format!("{topology}.neighbors({rank})"))
            }
            ExprKind::TopologyField(field, topology) => self.asked(topology, field.name()),
            ExprKind::Relays(topology, a, b) => {
                Text::call("lane.relays", [topology, a, b].map(|part| self.text(part)))
            }
            ExprKind::Split(region, by) => {
                let (region, by) = (self.atom(region), self.expr(by));
                atom(format!("{region}.split({by})"))
            }
            ExprKind::Block(region, index) => {
                let (region, index) = (self.atom(region), self.expr(index));
                atom(format!("{region}.split(nranks)[{index}]"))
            }
            ExprKind::Range(pieces, lo, hi) => {
                let (pieces, lo, hi) = (self.atom(pieces), self.expr(lo), self.expr(hi));
                atom(format!("{pieces}.range({lo}, {hi})"))
            }
            ExprKind::RingTwisted
            | ExprKind::RingAround(_)
            | ExprKind::RingsChannels(_)
            | ExprKind::RingsDisjoint(..)
            | ExprKind::Tree(_)
            | ExprKind::Trees(_)
            | ExprKind::Groups(_)
            | ExprKind::Topology(..) => self.object(expr),
            ExprKind::Rust(_) | ExprKind::Error => {
                unreachable!("programs with escapes take the table form")
            }
        }
    }

    /// Returns a question to an object, without arguments.
    fn asked(&mut self, object: &Expr, question: &str) -> Text {
        Text::atom(format!("{}.{question}()", self.atom(object)))
    }

    /// Returns the lookup of an object that the host made, by its place in the source and its arguments.
    fn object(&mut self, expr: &Expr) -> Text {
        let site = self.site(expr);
        let made = match expr.ty {
            Ty::Ring => "ring_at",
            Ty::Rings => "rings_at",
            Ty::Tree => "tree_at",
            Ty::Trees => "trees_at",
            Ty::Groups => "groups_at",
            _ => "topology_at",
        };
        let mut args = vec![Text::atom(site.to_string())];
        args.extend(expr.made_from().into_iter().flatten().map(|part| self.text(part)));
        Text::call(&format!("lane.{made}"), args)
    }
}

const fn tree_field(field: TreeField) -> &'static str {
    match field {
        TreeField::Root => "root",
        TreeField::Parent => "parent",
        TreeField::Children => "children",
        TreeField::Level => "level",
        TreeField::Depth => "depth",
    }
}

const fn groups_field(field: GroupsField) -> &'static str {
    match field {
        GroupsField::Mine => "mine",
        GroupsField::Across => "across",
        GroupsField::Index => "index",
        GroupsField::Position => "position",
        GroupsField::Even => "even",
    }
}
