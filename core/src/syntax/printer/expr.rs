//! Expressions, on one line, with the parentheses that precedence needs and no others.

use super::Printer;
use crate::source::Span;
use crate::syntax::ast::{BinOp, Expr, ExprKind, UnOp};
use crate::syntax::token::Quantity;
use crate::units::data_text;
use crate::units::time_text;

/// Operands that a block follows: an `if` among them is put in parentheses.
pub(super) const CONDITION: u8 = 2;
const UNARY: u8 = 11;
/// What an expression statement may be, and what a postfix may follow.
pub(super) const EFFECT: u8 = 12;

fn precedence(e: &Expr) -> u8 {
    match &*e.kind {
        ExprKind::If(..) => 1,
        ExprKind::Binary(op, ..) => op.precedence(),
        ExprKind::Unary(..) => UNARY,
        _ => EFFECT,
    }
}

impl Printer<'_> {
    /// `e`, in parentheses if it binds weaker than `min`.
    pub(super) fn expr(&self, e: &Expr, min: u8) -> String {
        let mut out = String::new();
        self.write(e, min, &mut out);
        out
    }

    fn write(&self, e: &Expr, min: u8, out: &mut String) {
        let parens = precedence(e) < min;
        if parens {
            out.push('(');
        }
        self.bare(e, out);
        if parens {
            out.push(')');
        }
    }

    fn bare(&self, e: &Expr, out: &mut String) {
        match &*e.kind {
            ExprKind::Int(value) => match self.spelling(e) {
                Some(text) => out.push_str(text),
                None => out.push_str(&value.to_string()),
            },
            ExprKind::Rust(text) => match self.spelling(e) {
                Some(text) => out.push_str(text),
                None if text.is_empty() => out.push_str("rust {}"),
                None => {
                    out.push_str("rust { ");
                    out.push_str(text);
                    out.push_str(" }");
                }
            },
            ExprKind::Quantity(amount, per) => {
                out.push_str(&self.amount(*amount, e.span));
                if let Some(per) = per {
                    out.push('/');
                    out.push_str(&per.text);
                }
            }
            ExprKind::Without(a, i, j) => {
                self.write(a, EFFECT, out);
                out.push_str(" without (");
                self.write(i, 0, out);
                out.push_str(", ");
                self.write(j, 0, out);
                out.push(')');
            }
            ExprKind::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            ExprKind::Name(name) => out.push_str(name),
            ExprKind::List(items) if items.is_empty() => out.push_str("()"),
            ExprKind::List(items) => {
                out.push('[');
                self.list(items, out);
                out.push(']');
            }
            ExprKind::Unary(op, a) => {
                out.push(match op {
                    UnOp::Neg => '-',
                    UnOp::Not => '!',
                });
                self.write(a, UNARY, out);
            }
            ExprKind::Binary(op, a, b) => {
                let own = op.precedence();
                let chains = own != BinOp::Eq.precedence();
                self.operand(*op, a, if chains { own } else { own + 1 }, out);
                out.push(' ');
                out.push_str(op.text());
                out.push(' ');
                self.operand(*op, b, own + 1, out);
            }
            ExprKind::If(c, a, b) => {
                out.push_str("if ");
                self.write(c, CONDITION, out);
                out.push_str(" { ");
                self.write(a, 0, out);
                out.push_str(" } else ");
                if matches!(&*b.kind, ExprKind::If(..)) {
                    return self.bare(b, out);
                }
                out.push_str("{ ");
                self.write(b, 0, out);
                out.push_str(" }");
            }
            ExprKind::Call(path, args) => {
                for (i, name) in path.iter().enumerate() {
                    out.push_str(if i > 0 { "::" } else { "" });
                    out.push_str(&name.text);
                }
                self.args(args, out);
            }
            ExprKind::Method(a, name, args) => {
                self.write(a, EFFECT, out);
                out.push('.');
                out.push_str(&name.text);
                self.args(args, out);
            }
            ExprKind::Named(name, value) => {
                out.push_str(&name.text);
                out.push_str(self.given);
                self.write(value, 0, out);
            }
            ExprKind::Field(a, name) => {
                self.write(a, EFFECT, out);
                out.push('.');
                out.push_str(&name.text);
            }
            ExprKind::Index(a, i) => {
                self.write(a, EFFECT, out);
                out.push('[');
                self.write(i, 0, out);
                out.push(']');
            }
            ExprKind::Slice(a, i, j) => {
                self.write(a, EFFECT, out);
                out.push('[');
                self.write(i, CONDITION, out);
                out.push_str("..");
                self.write(j, CONDITION, out);
                out.push(']');
            }
            ExprKind::Error => out.push_str("/* unreadable */"),
        }
    }

    /// An operand of `op`. Few people know how shifts and bitwise operators bind, so an operator
    /// of another strength under one of them is put in parentheses.
    fn operand(&self, op: BinOp, e: &Expr, min: u8, out: &mut String) {
        let bitwise =
            (BinOp::BitOr.precedence()..=BinOp::Shl.precedence()).contains(&op.precedence());
        let mixed = matches!(&*e.kind, ExprKind::Binary(inner, ..) if inner.precedence() != op.precedence());
        self.write(e, if bitwise && mixed { UNARY } else { min }, out);
    }

    fn args(&self, args: &[Expr], out: &mut String) {
        out.push('(');
        self.list(args, out);
        out.push(')');
    }

    fn list(&self, items: &[Expr], out: &mut String) {
        for (i, item) in items.iter().enumerate() {
            out.push_str(if i > 0 { ", " } else { "" });
            self.write(item, 0, out);
        }
    }

    /// How the author wrote a one-token expression.
    fn spelling(&self, e: &Expr) -> Option<&str> {
        self.written(e.span)
    }

    /// A number with a unit, which is the first token of `span`.
    pub(super) fn amount(&self, amount: Quantity, span: Span) -> String {
        let text = self.written(Span { hi: span.lo + 1, ..span });
        text.map_or_else(
            || match amount {
                Quantity::Bytes(bytes) => data_text(bytes),
                Quantity::Time(time) => time_text(time),
            },
            str::to_owned,
        )
    }

    pub(super) fn written(&self, span: Span) -> Option<&str> {
        let source = self.trivia.as_ref()?.source;
        source.text()?.get(source.range(span))
    }
}
