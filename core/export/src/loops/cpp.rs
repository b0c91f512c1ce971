//! Numbers of the loop form as expressions of C and C++.

use super::ir::{LoopTable, Number};
use super::machine::LeastSides;
use roundelay_core::syntax::Source;
use roundelay_core::syntax::ast::{BinOp, UnOp};
use roundelay_core::syntax::expr_text::{Target, Text};

/// The names of a text, and what is known of its numbers.
pub(crate) struct NumberText<'t> {
    pub(crate) me: &'t str,
    /// The type of numbers, where a literal on the left of a shift needs it.
    pub(crate) ty: Option<&'t str>,
    pub(crate) nranks: (u32, &'t str),
    pub(crate) var: &'t dyn Fn(usize) -> String,
    /// Returns the text of a table's entry.
    pub(crate) entry: &'t dyn Fn(usize, &[Number]) -> String,
    /// The least left side of each quotient and remainder; 0 where none is known.
    pub(crate) least: &'t LeastSides,
}

impl NumberText<'_> {
    pub(crate) fn text(&self, number: &Number) -> Text {
        let infix = |op, left, right| Target::Cpp.infix(op, left, right);
        match number {
            Number::Const(value) => Text::number(value.to_string(), *value),
            Number::Me => Text::atom(self.me.to_owned()),
            Number::Nranks => Text::atom(self.nranks.1.to_owned()),
            Number::Var(var) => Text::atom((self.var)(*var)),
            Number::Neg(of) => Target::Cpp.unary(UnOp::Neg, self.text(of)),
            Number::Not(of) => Target::Cpp.unary(UnOp::Not, self.text(of)),
            Number::Flip(of) => Target::Cpp.complement(self.text(of)),
            Number::Division(id, op, sides) => {
                let (left, right) = (self.text(&sides[0]), self.text(&sides[1]));
                // C++ computes the same for left sides that are never negative; for others a remainder may add the
                // divisor once.
                let least = self.least.get(id).copied().unwrap_or(0);
                let positive = matches!(sides[1], Number::Nranks)
                    || matches!(sides[1], Number::Const(value) if value > 0);
                let turn = match sides[1] {
                    Number::Const(value) => value,
                    _ => self.nranks.0.into(),
                };
                match (least, positive) {
                    (0.., true) => infix(*op, left, right),
                    (_, true) if *op == BinOp::Rem && least >= -turn => {
                        infix(BinOp::Rem, infix(BinOp::Add, left, right.clone()), right)
                    }
                    _ => Target::Cpp.binary(*op, left, right),
                }
            }
            Number::Binary(op, sides) => {
                // A literal has the width of an `int`.
                let left = match (op, &sides[0], self.ty) {
                    (BinOp::Shl, Number::Const(value), Some(ty)) => {
                        Text::atom(format!("{ty}({value})"))
                    }
                    (_, left, _) => self.text(left),
                };
                Target::Cpp.binary(*op, left, self.text(&sides[1]))
            }
            Number::Choice(parts) => {
                let [condition, then, otherwise] = parts.each_ref().map(|part| self.text(part));
                Target::Cpp.choice(condition, then, otherwise)
            }
            Number::Call(function, args) => {
                Text::call(function.name(), args.iter().map(|arg| self.text(arg)))
            }
            Number::IsPowerOfTwo(of) => Text::call("is_power_of_two", [self.text(of)]),
            Number::Entry(table, indices) => Text::atom((self.entry)(*table, indices)),
        }
    }
}

/// Returns the initializer of an array with these dimensions.
fn nested(entries: &[String], sizes: &[usize]) -> String {
    match sizes {
        [] => entries.join(", "),
        [_] => format!("{{{}}}", entries.join(", ")),
        [size, rest @ ..] => {
            let rows = entries.chunks(entries.len() / size.max(&1));
            let rows: Vec<_> = rows.map(|row| nested(row, rest)).collect();
            format!("{{\n    {},\n}}", rows.join(",\n    "))
        }
    }
}

/// Returns a line of the source with its number, for a comment.
pub(crate) fn said(source: Option<&Source>, line: u32) -> Option<String> {
    if line == 0 {
        return None;
    }
    let text = source.and_then(|source| source.line(line)).unwrap_or_default();
    // A comment that ends in a backslash would continue in the next line.
    let text = text.trim().trim_end_matches('\\');
    Some(format!("{line}: {text}").trim_end_matches([':', ' ']).to_owned())
}

/// Returns the declaration and the initializer of a table as an array with this name. `entry` returns the text of an entry.
pub(crate) fn array(
    name: &str,
    table: &LoopTable,
    (nranks, ranks): (u32, &str),
    entry: impl Fn(&[i64]) -> String,
) -> String {
    let dims = table.sizes.iter().map(|size| format!("[{size}]"));
    let dims = dims.chain(table.by_rank.then(|| format!("[{ranks}]")));
    let dims = dims.collect::<String>();
    let entries: Vec<_> = table.entries.iter().map(|numbers| entry(numbers)).collect();
    format!("{name}{dims} = {}", nested(&entries, &table.dims(nranks)))
}
