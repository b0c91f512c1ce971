//! Expressions, on one line, with only the parentheses that precedence needs.

use super::Printer;
use crate::source::Span;
use crate::syntax::ast::{Expr, ExprKind};
use crate::syntax::expr_text::{ATOM, OPERATOR, Target, Text};
use crate::syntax::token::Quantity;
use crate::units::data_text;
use crate::units::time_text;

impl Printer<'_> {
    /// Returns `e`, in parentheses if its precedence is lower than `min`.
    pub(super) fn expr(&self, e: &Expr, min: u8) -> String {
        self.text(e).at_least(min)
    }

    fn text(&self, e: &Expr) -> Text {
        let any = |e| self.expr(e, 0);
        let atom = |e| self.expr(e, ATOM);
        let spelt = |text: String| self.spelling(e).map_or(text, str::to_owned);
        Text::atom(match &*e.kind {
            ExprKind::Int(value) => spelt(value.to_string()),
            ExprKind::Rust(text) if text.is_empty() => spelt("rust {}".to_owned()),
            ExprKind::Rust(text) => spelt(format!("rust {{ {text} }}")),
            ExprKind::Text(text) => spelt(format!("{text:?}")),
            ExprKind::Quantity(amount, None) => self.amount(*amount, e.span),
            ExprKind::Quantity(amount, Some(per)) => {
                format!("{}/{}", self.amount(*amount, e.span), per.text)
            }
            ExprKind::Without(a, i, j) => format!("{} without ({}, {})", atom(a), any(i), any(j)),
            ExprKind::Bool(value) => value.to_string(),
            ExprKind::Name(name) => name.clone(),
            ExprKind::List(items) if items.is_empty() => "()".to_owned(),
            ExprKind::List(items) => {
                let items: Vec<_> = items.iter().map(any).collect();
                format!("[{}]", items.join(", "))
            }
            ExprKind::Unary(op, a) => return Target::Language.unary(*op, self.text(a)),
            ExprKind::Binary(op, a, b) => {
                return Target::Language.binary(*op, self.text(a), self.text(b));
            }
            ExprKind::If(c, a, b) => {
                return Target::Language.choice(self.text(c), self.text(a), self.text(b));
            }
            ExprKind::Call(path, args) => {
                let path: Vec<_> = path.iter().map(|name| name.text.as_str()).collect();
                // The model of GPUs is written as on the command line.
                let text = |arg: &Expr| match &*arg.kind {
                    ExprKind::Named(name, value) if path == ["gpus"] => {
                        Text::atom(format!("{}={}", name.text, self.expr(value, 0)))
                    }
                    _ => self.text(arg),
                };
                return Text::call(&path.join("::"), args.iter().map(text));
            }
            ExprKind::Method(a, name, args) => {
                let name = format!("{}.{}", atom(a), name.text);
                return Text::call(&name, args.iter().map(|arg| self.text(arg)));
            }
            ExprKind::Named(name, value) => format!("{}{}{}", name.text, self.given, any(value)),
            ExprKind::Field(a, name) => format!("{}.{}", atom(a), name.text),
            ExprKind::Index(a, i) => format!("{}[{}]", atom(a), any(i)),
            ExprKind::Slice(a, i, j) => {
                format!("{}[{}..{}]", atom(a), self.expr(i, OPERATOR), self.expr(j, OPERATOR))
            }
            ExprKind::Error => "/* unreadable */".to_owned(),
        })
    }

    /// Returns the author's spelling of a one-token expression.
    fn spelling(&self, e: &Expr) -> Option<&str> {
        self.written(e.span)
    }

    /// Returns a number with a unit, which is the first token of `span`.
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
