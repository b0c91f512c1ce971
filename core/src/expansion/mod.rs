//! The expansion of the macro: the Rust that an algorithm becomes, and its proof at small counts.
//!
//! The macro proves small rank counts, or those that the author asks for, within a budget of steps. Steps are
//! counted, not timed, so a program gets one answer on all machines.

mod calls;
mod escape;
mod executor;
mod origin;
mod read;
pub mod rust;

use crate::check::Verify;
use crate::diagnostics::{Code, Diagnostic, Severity};
use crate::executor::Executor;
use crate::ids::RankId;
use crate::layout::roots::{self, RootsAt, WithRoot};
use crate::layout::{Algorithm as _, Configured, Limits};
use crate::program::ir::Param;
use crate::program::{CompiledSource, Program};
use crate::source::Span;
use crate::syntax::Source;
use crate::told::told;
pub use crate::units::counted;
use crate::verify;
pub use read::Read;

/// The rank counts that are proved unless the author names others; a plan always proves its own.
const SMALL: std::ops::RangeInclusive<u32> = 1..=4;
/// The rank counts that a generated test proves unless the author names others.
const TESTED: std::ops::RangeInclusive<u32> = 2..=33;
/// The most ops of all schedules that `#[verify(nranks = …)]` may ask for.
const OPS: u64 = 1 << 16;

/// The errors of one algorithm at growing rank counts: each error once, at the first count that shows it.
#[derive(Debug, Default)]
pub struct CountErrors {
    /// In the order of the counts.
    pub errors: Vec<Diagnostic>,
    settled: bool,
}

impl CountErrors {
    /// Adds the errors at one more count. If a smaller count could not even be laid out, a proof that fails at this
    /// count is new; and so is an error of another kind.
    pub fn add(&mut self, found: Vec<Diagnostic>) {
        if self.settled {
            return;
        }
        // More ranks take more steps.
        let last =
            |error: &Diagnostic| error.code >= Code::Deadlock || error.code == Code::StepLimit;
        self.settled = found.iter().any(last);
        let known: Vec<Code> = self.errors.iter().map(|error| error.code).collect();
        self.errors.extend(found.into_iter().filter(|error| !known.contains(&error.code)));
    }

    /// Whether larger counts would only repeat the errors.
    pub fn settled(&self) -> bool {
        self.settled
    }
}

/// The result of proving a program while a macro expands it.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The errors for which the program is not compiled; empty where nothing was found.
    pub errors: Vec<Diagnostic>,
    /// Warnings: the proofs that the author asked for and that were left to the generated test.
    pub left: Vec<Diagnostic>,
}

/// Returns the rank counts of the generated test, and whether the author named them; `None` without a test.
pub fn tested(algorithm: &Program) -> Option<(Vec<u32>, bool)> {
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
        let configured = Configured::new(algorithm.clone(), source);
        let count_errors = CountErrors::default();
        let mut proof = Expansion {
            algorithm: configured,
            source,
            ops: OPS,
            count_errors,
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
        let errors = proof.count_errors.errors;
        outcome.errors.extend(errors);
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
    /// The rest of the budget.
    ops: u64,
    count_errors: CountErrors,
    outcome: &'o mut Outcome,
}

/// The outcome of the proof of one rank count with one root.
enum CountOutcome {
    Proved { root: RankId, ops: u64 },
    Wrong,
    Refused(Diagnostic),
    TooLong,
}

impl Expansion<'_> {
    /// Proves counts that the author did not ask for; where all are refused, tries larger ones until one is not.
    fn small(&mut self, counts: std::ops::RangeInclusive<u32>) {
        let last = *counts.end();
        let mut refused = true;
        for nranks in counts {
            if self.count_errors.settled() {
                return;
            }
            refused &= self.each_root(nranks);
        }
        if refused {
            (last + 1..=*TESTED.end()).find(|n| !self.each_root(*n));
        }
    }

    /// Proves a rank count with each rank as the root; returns whether all are refused. A count beyond the budget is
    /// left to the plan, and roots beyond it are reported where one was proved.
    fn each_root(&mut self, nranks: u32) -> bool {
        let mut refused = true;
        let at = self.algorithm.roots().each(nranks, roots::MOST_OPS, |root| {
            let end = self.one(nranks, root, Limits::EXPANSION);
            refused &= matches!(end, CountOutcome::Refused(_));
            end.with_root()
        });
        if at.is_partial() && self.count_errors.errors.is_empty() {
            let place = self.algorithm.program().header();
            self.roots_left(place, &[at]);
        }
        refused
    }

    /// Proves the counts that the author asked for: each with the algorithm's own root, and then with every other root,
    /// as far as the budget goes.
    fn asked(&mut self, counts: &[u32], named: bool, span: Span) {
        let roots = self.algorithm.roots();
        let mut proved: Vec<RootsAt> = Vec::new();
        let mut refusal = None;
        let mut beyond = None;
        for (i, n) in counts.iter().enumerate() {
            if self.count_errors.settled() {
                return;
            }
            let mut end = None;
            let at = roots.first(*n, |root| {
                let limits = Limits { steps: self.ops, ops: self.ops };
                end.insert(self.one(*n, root, limits)).with_root()
            });
            match end {
                Some(CountOutcome::Refused(mut why)) => {
                    if named && refusal.is_none() {
                        why.others.push((span, "asks for this rank count".to_owned()));
                        self.outcome.errors.push(why.clone());
                    }
                    refusal = Some(why);
                }
                Some(CountOutcome::TooLong) => {
                    beyond = Some(&counts[i..]);
                    break;
                }
                _ if at.is_proved() => proved.push(at),
                _ => {}
            }
        }
        for at in &mut proved {
            if !self.count_errors.errors.is_empty() {
                return;
            }
            let (nranks, most) = (at.nranks(), self.ops.min(roots::MOST_OPS));
            roots.others(at, most, |root| {
                let limits = Limits { steps: self.ops, ops: self.ops };
                self.one(nranks, root, limits).with_root()
            });
        }
        if let Some(beyond) = beyond {
            let held = self.algorithm.held(self.source, &proved, false);
            let proved: Vec<u32> = proved.iter().map(RootsAt::nranks).collect();
            self.outcome.left.push(left(span, &held, &proved, beyond, counts));
            return;
        }
        if self.count_errors.errors.is_empty() && proved.iter().any(RootsAt::is_partial) {
            self.roots_left(span, &proved);
        }
        if let (Some(why), true) =
            (refusal, proved.is_empty() && self.count_errors.errors.is_empty() && !named)
        {
            let title = format!("{} admits none of these rank counts", self.algorithm.name());
            self.outcome.errors.push(
                Diagnostic::new(Code::NothingAdmitted, span, title)
                    .label("asks for these")
                    .note(why.title)
                    .help("ask for one that it admits"),
            );
        }
    }

    /// Warns that a root is proved alone.
    fn roots_left(&mut self, place: Span, proved: &[RootsAt]) {
        let held = self.algorithm.held(self.source, proved, false).join(", ");
        let counts: Vec<u32> = proved.iter().map(RootsAt::nranks).collect();
        let counts = counted(&counts);
        let title = format!(
            "proved at expansion for nranks {counts} with {held}: all roots take more steps than it may"
        );
        let left = Diagnostic::new(Code::StepLimit, place, title)
            .note("every plan is proved when it is made")
            .help("prove every root by `roundelay check` at fewer ranks");
        self.outcome.left.push(Diagnostic { severity: Severity::Warning, ..left });
    }

    fn one(&mut self, nranks: u32, root: Option<u32>, limits: Limits) -> CountOutcome {
        let algorithm = self.algorithm.with_root(root);
        let schedule = algorithm.schedule_within(nranks, limits);
        let found = schedule.and_then(|schedule| {
            let ops = schedule.ops.len() as u64;
            self.ops = self.ops.saturating_sub(ops);
            verify::verify(&schedule).map(|_| CountOutcome::Proved { root: schedule.root, ops })
        });
        let findings = match found {
            Ok(proved) => return proved,
            Err(findings) => findings,
        };
        let mut wrong = Vec::new();
        for error in told(&algorithm, findings, nranks) {
            if error.code.refuses() {
                return CountOutcome::Refused(error);
            }
            // A count beyond the budget is left to the test and the plan.
            if error.code == Code::StepLimit {
                return CountOutcome::TooLong;
            }
            wrong.push(error);
        }
        self.count_errors.add(wrong);
        CountOutcome::Wrong
    }
}

impl CountOutcome {
    fn with_root(&self) -> WithRoot {
        match *self {
            Self::Proved { root, ops } => WithRoot::Proved { root, ops },
            Self::Refused(_) => WithRoot::Refused,
            Self::Wrong | Self::TooLong => WithRoot::Ended,
        }
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
            counted(proved),
            rest[0]
        ),
    };
    let left = Diagnostic::new(Code::StepLimit, span, title);
    Diagnostic { severity: Severity::Warning, ..left }
        .note(format!(
            "the generated test proves {}; every plan is proved when it is made",
            counted(all)
        ))
        .help("ask for fewer ranks here, and for more by `roundelay check`")
}
