//! Finds one change after which an algorithm is proved: a common mistake is undone, at one place at a time, until one
//! of the changed programs is right. Where several are, the first is proposed, and another as the other possible
//! meaning.

use super::proved;
use crate::diagnostics::{self, Code, Diagnostic};
use crate::ids::SpanId;
use crate::layout::Configured;
use crate::program::ir::{Expr, Kind, Op, Program, Stmt, StmtKind};
use crate::source::Span;
use crate::syntax::ast::BinOp;
use crate::units::ranges;

/// The most changes that are tried.
const MOST: usize = 64;

/// The most rank counts above the count with the error that must be proved, and the most below it.
const OTHERS: usize = 8;

/// The rank counts at which a changed program must be proved: the one with the error first.
pub(super) struct Counts(Vec<u32>);

impl Counts {
    /// Returns the count with the error, and small ones around it; `None` where it is too large for trials.
    pub(super) fn around(algorithm: &Configured, nranks: u32) -> Option<Self> {
        let small = |n: &u32| proved(algorithm, *n).is_some();
        if !small(&nranks) {
            return None;
        }
        let below = (1..nranks).rev().filter(small).take(OTHERS);
        let above = (nranks + 1..=2 * nranks + 1).filter(small).take(OTHERS);
        Some(Self(std::iter::once(nranks).chain(below).chain(above).collect()))
    }

    /// Whether a changed algorithm is proved at all of them.
    pub(super) fn hold(&self, changed: &Configured) -> bool {
        self.0.iter().all(|n| proved(changed, *n) == Some(true))
    }

    /// Returns them in words.
    pub(super) fn text(&self) -> String {
        let mut counts = self.0.clone();
        counts.sort_unstable();
        ranges(&counts)
    }
}

/// A change of a program.
struct Change {
    /// The place that is changed.
    at: Span,
    /// The mistake at that place.
    slip: &'static str,
    /// The corrected text, as the author would write it.
    text: String,
    edit: Edit,
}

/// The way in which a program is changed.
enum Edit {
    /// The operands of a move change their places.
    Swap(SpanId),
    /// A copy becomes a reduce, or a reduce a copy.
    Other(SpanId),
    /// Adds a number to a bound of a loop: to the upper one, or to the lower one.
    Bound(SpanId, bool, i64),
    /// Adds a number to an expression, wherever it stands.
    Number(Expr, i64),
}

/// Puts the first change that makes the algorithm right into `error`; returns whether there is one.
pub(super) fn propose(error: &mut Diagnostic, algorithm: &Configured, nranks: u32) -> bool {
    let mended = matches!(
        error.code,
        Code::Deadlock
            | Code::UnmatchedWait
            | Code::LeftOverSignal
            | Code::Race
            | Code::RaceWithCaller
            | Code::UninitializedRead
            | Code::SlotLength
            | Code::WrongResult
    );
    let Some(counts) = Counts::around(algorithm, nranks).filter(|_| mended) else { return false };
    let program = algorithm.program();
    let right =
        |change: &Change| counts.hold(&algorithm.with_program(change.edit.applied(program)));
    // An error about data that is counted twice has a help already.
    let twice = error.code == Code::WrongResult && error.help.is_some();
    let changes = changes(algorithm, twice);
    let mut right = changes.into_iter().take(MOST).filter(right);
    let Some(mut change) = right.next() else { return false };
    let mut also = right.next().filter(|also| also.at != change.at);
    // Of two numbers that may be meant, the shorter text is proposed first.
    if let (Edit::Number(..), Some(also)) = (&change.edit, &mut also)
        && matches!(also.edit, Edit::Number(..))
        && also.text.len() < change.text.len()
    {
        std::mem::swap(&mut change, also);
    }
    let label = std::mem::replace(&mut error.label, change.slip.to_owned());
    let place = std::mem::replace(&mut error.primary, change.at);
    if place != program.header() && place != change.at {
        error.others.insert(0, (place, label));
    }
    error.others.retain(|(other, _)| {
        *other != change.at && also.as_ref().is_none_or(|also| *other != also.at)
    });
    error.others.extend(also.map(|also| (also.at, format!("or {}: `{}`", also.slip, also.text))));
    let Change { at, slip, text, edit } = change;
    let counts = counts.text();
    error.help = Some(format!("{slip}: with `{text}` it is proved for nranks {counts}"));
    let places = match &edit {
        Edit::Number(number, _) => everywhere(program, number),
        _ => vec![at],
    };
    error.edits =
        places.into_iter().map(|at| diagnostics::Edit { at, text: text.clone() }).collect();
    true
}

/// Returns the possible mistakes in an algorithm, the likeliest first. Where data is counted twice, operands are not
/// swapped.
fn changes(algorithm: &Configured, twice: bool) -> Vec<Change> {
    let program = algorithm.program();
    let mut all = [const { Vec::new() }; 5];
    let steps = program.steps.iter().flat_map(|step| &step.body);
    let mut left: Vec<&Stmt> = program.body.iter().chain(steps).rev().collect();
    while let Some(stmt) = left.pop() {
        left.extend(stmt.blocks().into_iter().flatten().rev());
        let page = Page { algorithm, program };
        let [swaps, ends, numbers, begins, others] = &mut all;
        match &stmt.kind {
            StmtKind::Copy(..) | StmtKind::Reduce(..) => {
                swaps.extend(page.swapped(stmt).filter(|_| !twice));
                others.extend(page.other(stmt));
                numbers.extend(page.indexes(stmt));
            }
            StmtKind::For(_, lo, hi, _) => {
                ends.extend(page.bound(stmt.at, hi, true));
                begins.extend(page.bound(stmt.at, lo, false));
            }
            StmtKind::Let(var, value) if program.var(*var).kind == Kind::Number => {
                numbers.extend(page.shifted(value));
            }
            _ => {}
        }
    }
    all.into_iter().flatten().collect()
}

/// An algorithm with its program.
#[derive(Clone, Copy)]
struct Page<'a> {
    algorithm: &'a Configured,
    program: &'a Program,
}

impl<'a> Page<'a> {
    /// Returns the change that exchanges the operands of a move.
    fn swapped(self, stmt: &Stmt) -> Option<Change> {
        let (name, [src, dst]) = self.operands(stmt)?;
        Some(Change {
            at: self.program.spans[stmt.at.index()],
            slip: "the destination comes second",
            text: format!("{name}({dst}, {src});"),
            edit: Edit::Swap(stmt.at),
        })
    }

    /// Returns the change of a copy into a reduce, or of a reduce into a copy.
    fn other(self, stmt: &Stmt) -> Option<Change> {
        let (name, [src, dst]) = self.operands(stmt)?;
        let (slip, name) = match name {
            "copy" => ("this replaces what it should add to", "reduce"),
            _ => ("this adds to what it should replace", "copy"),
        };
        Some(Change {
            at: self.program.spans[stmt.at.index()],
            slip,
            text: format!("{name}({src}, {dst});"),
            edit: Edit::Other(stmt.at),
        })
    }

    /// Returns the name and the operands of a move that has one source and one destination.
    fn operands(self, stmt: &Stmt) -> Option<(&'static str, [&'a str; 2])> {
        let (name, src, dst) = match &stmt.kind {
            StmtKind::Copy(src, dsts) => ("copy", src, dsts.first().filter(|_| dsts.len() == 1)?),
            StmtKind::Reduce(srcs, dst) => {
                ("reduce", srcs.first().filter(|_| srcs.len() == 1)?, dst)
            }
            _ => return None,
        };
        Some((name, [self.text(src)?, self.text(dst)?]))
    }

    /// Returns the changes that give a loop one round more or less, at its end or at its beginning.
    fn bound(self, stmt: SpanId, bound: &Expr, upper: bool) -> Vec<Change> {
        let slips = if upper {
            [(1, "the loop ends one round early"), (-1, "the loop ends one round late")]
        } else {
            [(1, "the loop begins one round early"), (-1, "the loop begins one round late")]
        };
        let changed = slips.into_iter().filter_map(|(by, slip)| {
            let text = self.plus(bound, by)?;
            Some(Change { at: bound.span, slip, text, edit: Edit::Bound(stmt, upper, by) })
        });
        changed.collect()
    }

    /// Returns the changes of indexes in the operands of a move.
    fn indexes(self, stmt: &Stmt) -> Vec<Change> {
        let mut found: Vec<&Expr> = Vec::new();
        let mut left: Vec<&Expr> = match &stmt.kind {
            StmtKind::Copy(src, dsts) => std::iter::once(src).chain(dsts).collect(),
            StmtKind::Reduce(srcs, dst) => srcs.iter().chain([dst]).collect(),
            StmtKind::Switch(src, dst) => vec![src, dst],
            _ => Vec::new(),
        };
        while let Some(expr) = left.pop() {
            left.extend(&expr.args);
            if let (Op::Piece, [_, index]) = (expr.op, &*expr.args)
                && !found.iter().any(|known| same(known, index))
            {
                found.push(index);
            }
        }
        found.into_iter().flat_map(|index| self.shifted(index)).collect()
    }

    /// Returns the changes of a sum, or of its remainder, by one up and down.
    fn shifted(self, number: &Expr) -> Vec<Change> {
        let one = |by, slip| {
            let text = match (number.op, &*number.args) {
                (Op::Binary(BinOp::Rem), [sum, many]) => {
                    let sum = self.plus(sum, by)?;
                    let word = sum.chars().all(|c| c.is_alphanumeric() || c == '_');
                    let sum = if word { sum } else { format!("({sum})") };
                    format!("{sum} % {}", self.text(many)?)
                }
                (Op::Binary(BinOp::Add | BinOp::Sub), _) => self.plus(number, by)?,
                _ => return None,
            };
            let edit = Edit::Number(number.clone(), by);
            Some(Change { at: number.span, slip, text, edit })
        };
        let all = [one(-1, "this number is one too large"), one(1, "this number is one too small")];
        all.into_iter().flatten().collect()
    }

    /// Returns the text of `number` plus `by`: a number that is already added or subtracted is changed.
    fn plus(self, number: &Expr, by: i64) -> Option<String> {
        let signed = |sum: &str, add: i64| match add {
            0 => sum.to_owned(),
            1.. => format!("{sum} + {add}"),
            _ => format!("{sum} - {}", add.unsigned_abs()),
        };
        let text = self.text(number)?;
        Some(match (number.op, &*number.args) {
            (Op::Int(value), _) => u64::try_from(value.checked_add(by)?).ok()?.to_string(),
            (Op::Binary(BinOp::Add), [sum, Expr { op: Op::Int(add), .. }]) => {
                signed(self.text(sum)?, add.checked_add(by)?)
            }
            (Op::Binary(BinOp::Sub), [sum, Expr { op: Op::Int(sub), .. }]) => {
                signed(self.text(sum)?, by.checked_sub(*sub)?)
            }
            (Op::Binary(op), _) if op.precedence() < BinOp::Add.precedence() => {
                signed(&format!("({text})"), by)
            }
            (Op::If, _) => return None,
            _ => signed(text, by),
        })
    }

    /// Returns the author's text of an expression.
    fn text(self, expr: &Expr) -> Option<&'a str> {
        self.algorithm.text(expr.span)
    }
}

/// Returns the places of a number in all operands of its statement, or its only place.
fn everywhere(program: &Program, number: &Expr) -> Vec<Span> {
    let mut places = Vec::new();
    program.clone().edit(&mut |stmt| {
        if !matches!(stmt.kind, StmtKind::Copy(..) | StmtKind::Reduce(..)) {
            return;
        }
        each_same(stmt, number, &mut |part| places.push(part.span));
    });
    if places.is_empty() { vec![number.span] } else { places }
}

/// Whether two expressions are equal, wherever they stand.
fn same(one: &Expr, other: &Expr) -> bool {
    let args = || one.args.iter().zip(&other.args).all(|(one, other)| same(one, other));
    one.op == other.op && one.args.len() == other.args.len() && args()
}

impl Edit {
    /// Returns the changed program.
    fn applied(&self, program: &Program) -> Program {
        let mut changed = program.clone();
        changed.edit(&mut |stmt| self.apply(stmt));
        changed
    }

    fn apply(&self, stmt: &mut Stmt) {
        match (self, &mut stmt.kind) {
            (Self::Swap(at), StmtKind::Copy(src, dsts)) if stmt.at == *at => {
                std::mem::swap(src, &mut dsts[0]);
            }
            (Self::Swap(at), StmtKind::Reduce(srcs, dst)) if stmt.at == *at => {
                std::mem::swap(&mut srcs[0], dst);
            }
            (Self::Other(at), StmtKind::Copy(src, dsts)) if stmt.at == *at => {
                stmt.kind = StmtKind::Reduce(vec![src.clone()], dsts[0].clone());
            }
            (Self::Other(at), StmtKind::Reduce(srcs, dst)) if stmt.at == *at => {
                stmt.kind = StmtKind::Copy(srcs[0].clone(), vec![dst.clone()]);
            }
            (Self::Bound(at, upper, by), StmtKind::For(_, lo, hi, _)) if stmt.at == *at => {
                add(if *upper { hi } else { lo }, *by);
            }
            (Self::Number(number, by), StmtKind::Let(_, value)) if value == number => {
                add_inside(value, *by);
            }
            (Self::Number(number, by), StmtKind::Copy(..) | StmtKind::Reduce(..)) => {
                // The number is changed in all operands of the statement, as they are about one piece.
                each_same(stmt, number, &mut |part| add_inside(part, *by));
            }
            _ => {}
        }
    }
}

/// Calls `then` with each part of a statement that is equal to a number, if the number is one of them.
fn each_same(stmt: &mut Stmt, number: &Expr, then: &mut impl FnMut(&mut Expr)) {
    if !stmt.exprs_mut().iter().any(|expr| holds(expr, number)) {
        return;
    }
    for expr in stmt.exprs_mut() {
        expr.edit(&mut |part| {
            if same(part, number) {
                then(part);
            }
        });
    }
}

/// Whether `number` is a part of `expr`, at its exact place.
fn holds(expr: &Expr, number: &Expr) -> bool {
    expr == number || expr.args.iter().any(|arg| holds(arg, number))
}

/// Adds to the sum that the number is the remainder of, or to the number itself.
fn add_inside(number: &mut Expr, by: i64) {
    match (number.op, &mut *number.args) {
        (Op::Binary(BinOp::Rem), [sum, _]) => add(sum, by),
        _ => add(number, by),
    }
}

fn add(number: &mut Expr, by: i64) {
    let span = number.span;
    let more = Expr { op: Op::Int(by), args: Box::default(), span };
    let old = std::mem::replace(number, more.clone());
    *number = Expr { op: Op::Binary(BinOp::Add), args: Box::new([old, more]), span };
}
