//! Algorithms that a macro expanded: a walk takes the values of parameters from the struct, and the values of `rust {
//! }` escapes from the compiled crate.

use super::Walk;
use crate::diagnostics::{Code, Finding};
use crate::ids::SpanId;
use crate::layout::builder::{Builder, Stop};
use crate::layout::walk::values::Value;
use crate::program::ir::Expr;
use crate::values::escape::{Escapes, Scope, Seen};

/// The origin of a program.
#[derive(Clone, Copy)]
pub(in crate::layout) enum Origin {
    /// The source that the places of the program refer to.
    Source,
    /// The text in a struct that a macro made: its statements stand in another file, and the crate has these escapes.
    Expanded(&'static [Escapes]),
}

impl<'p> Walk<'p> {
    /// Returns the value of an escape.
    pub(super) fn escape(
        &mut self,
        b: &mut Builder<'_>,
        expr: &'p Expr,
        number: u32,
    ) -> Result<i64, Stop> {
        let own = match self.origin {
            Origin::Source => None,
            Origin::Expanded(escapes) => escapes.iter().find(|e| e.algorithm == self.program.name),
        };
        let Some(own) = own else {
            let title = "a `rust { }` escape runs only in the compiled crate";
            let finding = Finding::new(Code::EscapeInFile, SpanId(self.at), title);
            return Err(self.fail(b, expr.span, finding));
        };
        let mut scope = Vec::with_capacity(expr.args.len());
        for name in &expr.args {
            scope.push(match self.value(b, name)? {
                Value::Int(number) => Seen::Number(number),
                Value::List(list) => Seen::List(list),
                other => unreachable!("checked as a number or a list, is {other:?}"),
            });
        }
        let value = (own.value)(number, &Scope(&scope));
        self.settle(b, expr.span, value.0)
    }
}
