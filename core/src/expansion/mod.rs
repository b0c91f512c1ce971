//! The expansion of the macro: the Rust that an algorithm becomes, and its proof at small counts.
//!
//! The macro proves small rank counts, or those that the author asks for, within a budget of steps. Steps are
//! counted, not timed, so a program gets one answer on all machines.

mod callees;
mod escape;
mod executor;
mod origin;
mod read;
pub mod rust;

use crate::check::Verify;
use crate::diagnostics::{Code, Diagnostic, Severity};
use crate::executor::Executor;
use crate::layout::roots::RootsAt;
use crate::layout::{Algorithm as _, Configured, Limits};
use crate::program::ir::Param;
use crate::program::{CompiledSource, Program};
use crate::source::Span;
use crate::syntax::Source;
pub use crate::units::ranges;
use crate::verdict::{Asked, Verdict, Within};
pub use read::Read;

use std::ops::RangeInclusive;
use std::slice;

/// The rank counts that are proved unless the author names others; a plan always proves its own.
const SMALL: RangeInclusive<u32> = 1..=4;
/// The rank counts that a generated test proves unless the author names others.
const TESTED: RangeInclusive<u32> = 2..=33;
/// The most ops of all schedules that `#[verify(nranks = …)]` may ask for.
const OPS: u64 = 1 << 16;

/// The result of proving a program while a macro expands it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The errors for which the program is not compiled; empty where nothing was found.
    pub errors: Vec<Diagnostic>,
    /// Warnings: the proofs that the author asked for and that were left to the generated test.
    pub left: Vec<Diagnostic>,
}

/// Returns the rank counts of the generated test, and whether the author named them; `None` without a test.
pub fn test_counts(algorithm: &Program) -> Option<(Vec<u32>, bool)> {
    if open(algorithm) {
        return None;
    }
    match (&algorithm.declaration.verify, algorithm.declaration.machine) {
        (Some(Verify::Off { .. }), _) => None,
        (Some(Verify::Counts { counts, named, .. }), _) => Some((counts.clone(), *named)),
        (None, Some(machine)) => {
            Some(((2.min(machine)..=machine.min(*TESTED.end())).collect(), false))
        }
        (None, None) => Some((TESTED.collect(), false)),
    }
}

/// Proves the algorithms that can be laid out now. An algorithm with a `rust { }` escape, or with a parameter that
/// has no value yet, is proved when its plan is made.
pub fn prove(compiled: &CompiledSource, source: &Source) -> Outcome {
    let mut outcome = Outcome::default();
    for algorithm in compiled.algorithms.iter().filter(|a| !a.has_escapes() && !open(a)) {
        let mut proof = Expansion {
            algorithm: Configured::new(algorithm.clone(), source),
            source,
            outcome: &mut outcome,
        };
        match (&algorithm.declaration.verify, algorithm.declaration.machine) {
            (Some(Verify::Off { .. }), _) => {}
            (Some(Verify::Counts { counts, named, span }), _) => {
                proof.asked(counts, *named, *span);
            }
            (None, Some(machine)) => proof.small(machine..=machine),
            (None, None) => proof.small(SMALL),
        }
    }
    // Errors of an algorithm are reported at the algorithm, so executors are compiled only without errors.
    if outcome.errors.is_empty() {
        let all = compiled.executors.iter().map(|executor| Executor::compile(executor, source));
        outcome.errors.extend(all.filter_map(Result::err).flatten());
    }
    outcome
}

/// Whether a parameter has no value yet. The root of a rooted collective gets every value in turn.
fn open(algorithm: &Program) -> bool {
    let in_turn =
        |p: &Param| algorithm.collective.is_rooted() && algorithm.var(p.var).name == "root";
    let open = |p: &Param| p.default.is_none() && !p.ty.has_natural() && !in_turn(p);
    algorithm.params.iter().any(open)
}

/// The expansion of one algorithm.
struct Expansion<'o> {
    algorithm: Configured,
    source: &'o Source,
    outcome: &'o mut Outcome,
}

impl Expansion<'_> {
    fn verdict(&self, counts: &[u32], within: Within) -> Verdict<()> {
        Verdict::with_facts(&self.algorithm, &Asked::with_limits(counts, within), |_| (), |_| ())
    }

    /// Proves counts that the author did not ask for; where all are refused, tries larger ones until one is not. A count
    /// beyond the budget is left to the plan, and roots beyond it are reported where one was proved.
    fn small(&mut self, counts: RangeInclusive<u32>) {
        let at = |counts: &[u32]| self.verdict(counts, Within::Each(Limits::EXPANSION));
        let mut larger = (counts.end() + 1..=*TESTED.end()).map(|nranks| at(&[nranks]));
        let mut verdict = at(&counts.collect::<Vec<_>>());
        if verdict.is_refused() {
            let Some(first) = larger.find(|verdict| !verdict.is_refused()) else { return };
            verdict = first;
        }
        drop(larger);
        if verdict.errors.is_empty() {
            let place = self.algorithm.program().header();
            for count in verdict.proved.iter().filter(|count| count.roots.is_partial()) {
                self.roots_left(place, slice::from_ref(&count.roots));
            }
        }
        self.outcome.errors.extend(verdict.errors);
    }

    /// Proves the counts that the author asked for: each with the algorithm's own root, and then with every other root,
    /// as far as the budget goes.
    fn asked(&mut self, counts: &[u32], named: bool, span: Span) {
        let Verdict { proved, refused, beyond, errors, .. } =
            self.verdict(counts, Within::Together(OPS));
        let proved: Vec<RootsAt> = proved.into_iter().map(|count| count.roots).collect();
        let mut refusals = refused.into_iter().filter_map(|(_, why)| why.into_iter().next());
        let refusal = if named { refusals.next() } else { refusals.next_back() };
        let (right, admits_none) = (errors.is_empty(), proved.is_empty() && beyond.is_empty());
        match refusal {
            Some(mut why) if named => {
                why.others.push((span, "asks for this rank count".to_owned()));
                self.outcome.errors.push(why);
            }
            Some(why) if admits_none && right => {
                let title = format!("{} admits none of these rank counts", self.algorithm.name());
                self.outcome.errors.push(
                    Diagnostic::new(Code::NothingAdmitted, span, title)
                        .label("asks for these")
                        .note(why.title)
                        .help("ask for one that it admits"),
                );
            }
            _ => {}
        }
        self.outcome.errors.extend(errors);
        if right && !beyond.is_empty() {
            let held = self.algorithm.held_values(self.source, &proved, false);
            let proved: Vec<u32> = proved.iter().map(RootsAt::nranks).collect();
            self.outcome.left.push(left(span, &held, &proved, &beyond, counts));
        } else if right && proved.iter().any(RootsAt::is_partial) {
            self.roots_left(span, &proved);
        }
    }

    /// Warns that a root is proved alone.
    fn roots_left(&mut self, place: Span, proved: &[RootsAt]) {
        let held = self.algorithm.held_values(self.source, proved, false).join(", ");
        let counts: Vec<u32> = proved.iter().map(RootsAt::nranks).collect();
        let counts = ranges(&counts);
        let title = format!(
            "proved at expansion for nranks {counts} with {held}: all roots take more steps than it may"
        );
        let left = Diagnostic::new(Code::StepLimit, place, title)
            .note("every plan is proved when it is made")
            .help("prove every root by `roundelay check` at fewer ranks");
        self.outcome.left.push(Diagnostic { severity: Severity::Warning, ..left });
    }
}

/// Returns the warning about rank counts that the budget did not allow.
fn left(span: Span, held: &[String], proved: &[u32], rest: &[u32], all: &[u32]) -> Diagnostic {
    let with = if held.is_empty() { String::new() } else { format!(", {}", held.join(", ")) };
    let title = match proved {
        [] => format!(
            "nothing was proved at expansion: {} ranks take more steps than it may",
            rest[0]
        ),
        _ => format!(
            "proved at expansion for nranks {}{with} only: {} ranks take more steps than it may",
            ranges(proved),
            rest[0]
        ),
    };
    let left = Diagnostic::new(Code::StepLimit, span, title);
    Diagnostic { severity: Severity::Warning, ..left }
        .note(format!(
            "the generated test proves {}; every plan is proved when it is made",
            ranges(all)
        ))
        .help("ask for fewer ranks here, and for more by `roundelay check`")
}
