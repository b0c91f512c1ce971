//! Finds the `require` that is missing: a program that cannot be laid out for some numbers of ranks may be right for
//! others, and says which. A `require` is proposed only where the program is proved for all counts that it admits.

use super::tried;
use crate::diagnostics::{Code, Diagnostic};
use crate::ids::SpanId;
use crate::layout::Configured;
use crate::program::ir::{Demand, Expr, Op, Stmt, StmtKind};
use crate::syntax::ast::BinOp;
use crate::units::ranges;

/// The most ranks of a count that is tried.
const MOST: u32 = 17;

/// A condition on the number of ranks, as a test and as text, with its reason.
type Condition = (Box<dyn Fn(u32) -> bool>, String, String);

/// Puts the `require` with which the algorithm is proved into `error`, if there is one.
pub(super) fn propose(error: &mut Diagnostic, algorithm: &Configured, nranks: u32) {
    let of_lengths = matches!(error.code, Code::LengthMismatch | Code::MisalignedRegions);
    if of_lengths && let Some((text, counts)) = multiple(algorithm, nranks) {
        error.help = Some(format!(
            "where every count is such a multiple, it is proved for nranks {}: \
             `require count % {text} == 0, \"a multiple of {text}\";`",
            ranges(&counts)
        ));
        return;
    }
    let most = MOST.min(2 * nranks + 1);
    let known: Vec<(u32, Result<bool, Code>)> =
        (1..=most).map(|n| (n, tried(algorithm, n))).collect();
    let Some((condition, counts)) = weakest(&known) else { return };
    let (_, text, why) = condition;
    error.edits.clear();
    error.help = Some(format!(
        "it is proved for nranks {}: if it is for no others, write `require {text}, \"{why}\";`",
        ranges(&counts)
    ));
}

/// Returns the weakest condition for whose counts the algorithm is proved, and these counts.
fn weakest(known: &[(u32, Result<bool, Code>)]) -> Option<(Condition, Vec<u32>)> {
    // A count that a `require` refuses already, or that is too large to be tried, says nothing.
    let neutral = |code: &Code| code.refuses() || *code == Code::StepLimit;
    let tried = || known.iter().filter(|(_, is)| !is.as_ref().is_err_and(neutral));
    let holds = |condition: Condition| {
        let within = || tried().filter(|(n, _)| condition.0(*n));
        let right = within().all(|(_, is)| *is == Ok(true));
        let counts: Vec<u32> = within().map(|(n, _)| *n).collect();
        (right && counts.iter().any(|n| *n > 1)).then_some((condition, counts))
    };
    let several = |(_, counts): &(Condition, Vec<u32>)| counts.len() > 1;
    let least = (2..=8).map(|k| -> Condition {
        (Box::new(move |n| n >= k), format!("nranks >= {k}"), format!("it takes {k} ranks"))
    });
    let multiples = (2..=8).map(|k| -> Condition {
        let why = format!("nranks is a multiple of {k}");
        (Box::new(move |n| n % k == 0), format!("nranks % {k} == 0"), why)
    });
    let powers: Condition = (
        Box::new(u32::is_power_of_two),
        "is_power_of_two(nranks)".to_owned(),
        "nranks is a power of two".to_owned(),
    );
    let mut one = (2..=8).map(|k| -> Condition {
        (Box::new(move |n| n == k), format!("nranks == {k}"), format!("it is for {k} ranks"))
    });
    let many = least.chain(multiples).chain([powers]).filter_map(holds).find(several);
    many.or_else(|| one.find_map(holds))
}

/// Returns the number of which every count must be a multiple for the algorithm to be proved, as the author writes it,
/// and the rank counts for which it is proved then.
fn multiple(algorithm: &Configured, nranks: u32) -> Option<(String, Vec<u32>)> {
    let program = algorithm.program();
    let span = program.header();
    let of = |op, args: Box<[Expr]>| Expr { op, args, span };
    let ranks = || of(Op::Nranks, Box::default());
    let many = (2..=4).map(|k| {
        let number = of(Op::Int(k), Box::default());
        (format!("({k} * nranks)"), of(Op::Binary(BinOp::Mul), Box::new([number, ranks()])))
    });
    let all = std::iter::once(("nranks".to_owned(), ranks())).chain(many);
    all.take(4).find_map(|(text, number)| {
        let mut changed = (**program).clone();
        let kind = StmtKind::Demand(Demand::Multiple(number, String::new()));
        changed.body.insert(0, Stmt { at: SpanId(0), kind });
        let changed = algorithm.with_program(changed);
        if tried(&changed, nranks) != Ok(true) {
            return None;
        }
        let near = (1..=MOST.min(nranks + 4)).filter(|n| tried(&changed, *n) == Ok(true));
        Some((text, near.collect()))
    })
}
