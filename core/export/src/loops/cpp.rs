//! Numbers of the loop form as expressions of C and C++.

use super::ir::{LoopTable, Number, division, is_truth};
use super::machine::LeastSides;
use roundelay_core::program::ir::Op;
use roundelay_core::syntax::Source;
use roundelay_core::syntax::ast::{BinOp, UnOp};
use roundelay_core::syntax::expr_text::{Target, Text};

/// The language and the names of a text, and what is known of its numbers.
pub(crate) struct NumberText<'t> {
    pub(crate) target: Target,
    pub(crate) me: &'t str,
    /// Returns a literal that has the type of numbers by itself.
    pub(crate) shifted: fn(i64) -> String,
    pub(crate) nranks: (u32, &'t str),
    pub(crate) var: &'t dyn Fn(usize) -> String,
    /// Returns the text of a table's entry.
    pub(crate) entry: &'t dyn Fn(usize, &[Number]) -> String,
    /// The least left side of each quotient and remainder; 0 where none is known.
    pub(crate) least: &'t LeastSides,
}

impl NumberText<'_> {
    pub(crate) fn text(&self, number: &Number) -> Text {
        let text = self.own(number);
        // Rust has a type of its own for truth values.
        if self.target == Target::Rust && is_truth(number) {
            return Text::call("i64::from", [text]);
        }
        text
    }

    /// Returns the text of a truth value.
    pub(crate) fn truth(&self, number: &Number) -> Text {
        if self.target == Target::Rust && !is_truth(number) {
            return self.target.infix(BinOp::Ne, self.text(number), Text::number("0".into(), 0));
        }
        self.own(number)
    }

    /// Returns the text of a number, or of a truth value in a language where it has another type.
    fn own(&self, number: &Number) -> Text {
        let (target, args) = (self.target, &number.args);
        match number.op {
            Op::Int(value) => Text::number(value.to_string(), value),
            Op::Local => Text::atom(self.me.to_owned()),
            Op::Nranks => Text::atom(self.nranks.1.to_owned()),
            Op::Var(var) => Text::atom((self.var)(var.index())),
            Op::Neg => target.unary(UnOp::Neg, self.text(&args[0])),
            Op::Not => target.unary(UnOp::Not, self.truth(&args[0])),
            Op::Flip => target.complement(self.text(&args[0])),
            Op::Binary(op @ (BinOp::Div | BinOp::Rem)) => {
                let (left, right) = (self.text(&args[0]), self.text(&args[1]));
                // The operator computes the same for left sides that are never negative; for others a remainder may add
                // the divisor once.
                let least = division(number).and_then(|id| self.least.get(&id)).copied();
                let least = least.unwrap_or(0);
                let (positive, turn) = match args[1].op {
                    Op::Int(value) => (value > 0, value),
                    op => (op == Op::Nranks, self.nranks.0.into()),
                };
                let once = op == BinOp::Rem && least >= -turn && target == Target::Cpp;
                match (least, positive) {
                    (0.., true) => target.infix(op, left, right),
                    (_, true) if once => {
                        target.infix(op, target.infix(BinOp::Add, left, right.clone()), right)
                    }
                    _ => target.binary(op, left, right),
                }
            }
            Op::Binary(op @ (BinOp::And | BinOp::Or)) => {
                target.infix(op, self.truth(&args[0]), self.truth(&args[1]))
            }
            Op::Binary(op) => {
                // A literal has the width of an `int`.
                let left = match (op, args[0].op) {
                    (BinOp::Shl, Op::Int(value)) => Text::atom((self.shifted)(value)),
                    _ => self.text(&args[0]),
                };
                target.infix(op, left, self.text(&args[1]))
            }
            Op::If => {
                // A choice of literals has their type, which is another one of Rust.
                let then = match args[1].op {
                    Op::Int(value) if target == Target::Rust => {
                        Text::number((self.shifted)(value), value)
                    }
                    _ => self.text(&args[1]),
                };
                target.choice(self.truth(&args[0]), then, self.text(&args[2]))
            }
            Op::Entry(table) => Text::atom((self.entry)(table as usize, args)),
            op => {
                let name = op.name().expect("a function has a name");
                Text::call(&name, args.iter().map(|arg| self.text(arg)))
            }
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
    let text = comment_line(text.trim());
    Some(format!("{line}: {text}").trim_end_matches([':', ' ']).to_owned())
}

/// Returns a line of text without an end that would continue a comment in the next line: a backslash, or the three
/// characters that stand for one in C++14.
pub(crate) fn comment_line(text: &str) -> &str {
    let mut text = text.trim_end();
    while let Some(rest) = text.strip_suffix('\\').or_else(|| text.strip_suffix("??/")) {
        text = rest.trim_end();
    }
    text
}

/// Returns the elements of an array, with commas between.
pub(crate) fn list(elements: impl IntoIterator<Item = impl ToString>) -> String {
    elements.into_iter().map(|element| element.to_string()).collect::<Vec<_>>().join(", ")
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
