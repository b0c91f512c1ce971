//! Expressions in CUDA text: the author's arithmetic as arithmetic, questions as calls of the device library.

use super::stmts::Body;
use crate::check::hir::{Expr, ExprKind, GroupsField, TreeField, Ty};
use crate::syntax::ast::{BinOp, UnOp};

/// How tightly text binds: what is at least as tight as asked goes without parentheses.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Tight {
    /// A conditional, or a whole argument.
    Loose,
    /// A binary operator.
    Binary,
    /// A sign before it.
    Prefix,
    /// A name, a literal, a call.
    Atom,
}

impl Body<'_, '_> {
    /// The expression, as an argument or behind `=`.
    pub(super) fn expr(&mut self, expr: &Expr) -> String {
        self.written(expr).0
    }

    /// The expression where `.` or `[` follows.
    pub(super) fn atom(&mut self, expr: &Expr) -> String {
        self.at_least(expr, Tight::Atom)
    }

    fn at_least(&mut self, expr: &Expr, tight: Tight) -> String {
        match self.written(expr) {
            (text, is) if is >= tight => text,
            (text, _) => format!("({text})"),
        }
    }

    fn written(&mut self, expr: &Expr) -> (String, Tight) {
        let atom = |text| (text, Tight::Atom);
        match &*expr.kind {
            ExprKind::Int(value) if *value < 0 => (value.to_string(), Tight::Prefix),
            ExprKind::Int(value) => atom(value.to_string()),
            ExprKind::Bool(value) => atom(value.to_string()),
            ExprKind::Var(var) => atom(self.var(*var)),
            ExprKind::Rank => atom("rank".into()),
            ExprKind::Nranks => atom("nranks".into()),
            ExprKind::Local => atom("local".into()),
            ExprKind::Input => atom("input".into()),
            ExprKind::Output => atom("output".into()),
            ExprKind::Unary(op, of) => {
                let of = self.at_least(of, Tight::Atom);
                let sign = match op {
                    UnOp::Neg => '-',
                    UnOp::Not => '!',
                };
                (format!("{sign}{of}"), Tight::Prefix)
            }
            ExprKind::Binary(op, left, right) => self.binary(*op, left, right),
            ExprKind::If(condition, then, otherwise) => {
                let condition = self.at_least(condition, Tight::Binary);
                let (then, otherwise) =
                    (self.at_least(then, Tight::Binary), self.at_least(otherwise, Tight::Binary));
                (format!("{condition} ? {then} : {otherwise}"), Tight::Loose)
            }
            ExprKind::List(items) => {
                let items: Vec<_> = items.iter().map(|item| self.expr(item)).collect();
                atom(self.list(&items))
            }
            ExprKind::IntFn(function, args) => {
                let args: Vec<_> = args.iter().map(|arg| self.expr(arg)).collect();
                atom(format!("{}({})", function.name(), args.join(", ")))
            }
            ExprKind::IsPowerOfTwo(x) => atom(format!("is_power_of_two({})", self.expr(x))),
            ExprKind::Peer(rank) => atom(format!("lane.peer({})", self.expr(rank))),
            ExprKind::Len(of) => atom(format!("len({})", self.expr(of))),
            ExprKind::Rev(list) => atom(format!("rev({})", self.expr(list))),
            ExprKind::Element(of, index)
            | ExprKind::RingSeat(of, index)
            | ExprKind::RingAt(of, index)
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
            ExprKind::RingNatural => atom("lane.ring_natural()".into()),
            ExprKind::RingOrder(list) => atom(format!("lane.ring_order({})", self.expr(list))),
            ExprKind::TreeField(field, tree) => self.asked(tree, tree_field(*field)),
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
                let (topology, a, b) = (self.expr(topology), self.expr(a), self.expr(b));
                atom(format!("lane.relays({topology}, {a}, {b})"))
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
            | ExprKind::Groups(_)
            | ExprKind::Topology(..) => atom(self.object(expr)),
            ExprKind::Rust(_) | ExprKind::Error => {
                unreachable!("programs with escapes take the table form")
            }
        }
    }

    /// A question to an object without arguments.
    fn asked(&mut self, object: &Expr, question: &str) -> (String, Tight) {
        (format!("{}.{question}()", self.atom(object)), Tight::Atom)
    }

    /// An object that the host made: looked up by where it was made and from what.
    fn object(&mut self, expr: &Expr) -> String {
        let site = self.site(expr);
        let made = match expr.ty {
            Ty::Ring => "ring_at",
            Ty::Rings => "rings_at",
            Ty::Tree => "tree_at",
            Ty::Groups => "groups_at",
            _ => "topology_at",
        };
        let mut args = vec![site.to_string()];
        for part in expr.made_from().into_iter().flatten() {
            args.push(self.expr(part));
        }
        format!("lane.{made}({})", args.join(", "))
    }

    fn binary(&mut self, op: BinOp, left: &Expr, right: &Expr) -> (String, Tight) {
        let call = match op {
            BinOp::Div => Some("quo"),
            BinOp::Rem => Some("mod"),
            _ => None,
        };
        if let Some(call) = call {
            let (left, right) = (self.expr(left), self.expr(right));
            return (format!("{call}({left}, {right})"), Tight::Atom);
        }
        // A literal alone is 32 bits wide.
        let left = match (&op, &*left.kind) {
            (BinOp::Shl, ExprKind::Int(value)) => format!("i64({value})"),
            _ => self.operand(op, left, false),
        };
        let right = self.operand(op, right, true);
        (format!("{left} {} {right}", op.text()), Tight::Binary)
    }

    /// An operand: without parentheses where every reader knows what binds tighter.
    fn operand(&mut self, op: BinOp, expr: &Expr, right: bool) -> String {
        let bare = matches!(&*expr.kind, ExprKind::Binary(inner, ..) if {
            let (inner_binds, binds) = (inner.precedence(), op.precedence());
            let first = inner_binds > binds || (!right && inner_binds == binds);
            match class(op) {
                Class::Sum => class(*inner) == Class::Sum && first,
                Class::Comparison => class(*inner) == Class::Sum,
                Class::Logic => class(*inner) == Class::Comparison,
                Class::Other => false,
            }
        });
        self.at_least(expr, if bare { Tight::Binary } else { Tight::Prefix })
    }
}

#[derive(PartialEq, Eq)]
enum Class {
    Sum,
    Comparison,
    Logic,
    Other,
}

const fn class(op: BinOp) -> Class {
    match op {
        BinOp::Add | BinOp::Sub | BinOp::Mul => Class::Sum,
        BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => Class::Comparison,
        BinOp::And | BinOp::Or => Class::Logic,
        _ => Class::Other,
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
