//! Findings of a program's proof, placed at the steps of the program's text.

use std::collections::BTreeMap;

use super::program::{Program, StepNames};
use super::report::span;
use super::terms::{Mode, Safe};
use roundelay_core::collective::Collective;
use roundelay_core::diagnostics::{Code, Diagnostic, Finding};
use roundelay_core::ids::{OpId, SpanId};
use roundelay_core::schedule::{Schedule, SignalKind};
use roundelay_core::syntax::Source;
use roundelay_core::verify::{self, Proved};

/// The findings in one mode.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The mode in which the program is called.
    pub mode: Mode,
    /// The proof, if the program is right and promises a collective.
    pub proved: Option<Proved>,
    /// The errors, the worst first.
    pub errors: Vec<Diagnostic>,
}

/// The verdict on a program.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The findings in each mode that the program declares.
    pub modes: Vec<Checked>,
    /// The largest call that ends; `None` if no call ends, and for a runtime whose connections never fill up.
    pub safe: Option<Safe>,
    /// The errors of the declared sizes of calls.
    pub errors: Vec<Diagnostic>,
    /// Warnings of harmless oddities.
    pub warnings: Vec<Diagnostic>,
    /// The largest number of orders in which ranks reduce one piece; `None` if no rank reduces, or if a result is
    /// wrong.
    pub orders: Option<usize>,
    /// The numbers of stretches of each loop that were checked; empty without loops.
    pub stretches: Vec<u32>,
}

impl Verdict {
    pub(super) fn new(modes: Vec<Checked>) -> Self {
        let (safe, orders) = (None, orders(&modes));
        let (errors, warnings, stretches) = (Vec::new(), Vec::new(), Vec::new());
        Self { modes, safe, errors, warnings, orders, stretches }
    }

    /// Whether there are no errors.
    pub fn is_right(&self) -> bool {
        self.errors().next().is_none()
    }

    /// Returns all errors.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.modes.iter().flat_map(|checked| &checked.errors).chain(&self.errors)
    }
}

/// Turns the findings of a program's proof into diagnostics at its text.
pub(super) struct FindingPlacer<'t> {
    pub(super) source: &'t Source,
    names: &'t StepNames,
    /// The place of the whole program.
    whole: SpanId,
    /// Whether the program promises a collective.
    promised: bool,
}

impl<'t> FindingPlacer<'t> {
    /// Returns the placer for a program that was read from `source`.
    pub(super) fn new<H, B>(source: &'t Source, program: &'t Program<H, B>) -> Self {
        let promised = program.header.collective.is_some();
        Self { source, names: &program.names, whole: program.whole, promised }
    }

    /// Proves the schedule of a program that is called in a mode.
    pub(super) fn prove(&self, mode: Mode, schedule: Result<Schedule, Vec<Diagnostic>>) -> Checked {
        let wrong = |errors| Checked { mode, proved: None, errors };
        let schedule = match schedule {
            Ok(schedule) => schedule,
            Err(errors) => return wrong(first_of_each(errors)),
        };
        if let Some(cycle) = verify::stuck(&schedule).filter(|cycle| !cycle.is_empty()) {
            return wrong(vec![self.cycle(&schedule, &cycle).note("at every size of a call")]);
        }
        match Proved::new(schedule) {
            Ok(proved) => {
                Checked { mode, proved: self.promised.then_some(proved), errors: Vec::new() }
            }
            Err(findings) => {
                // Without a promise no result is wrong, and copies of memory that was never written are allowed.
                let counts = |finding: &Finding| {
                    self.promised
                        || !matches!(finding.code, Code::WrongResult | Code::UninitializedRead)
                };
                let findings = findings.into_iter().filter(counts);
                let errors = findings.map(|finding| self.diagnostic(finding)).collect();
                wrong(first_of_each(errors))
            }
        }
    }

    /// Returns the error for steps that wait for each other.
    pub(super) fn cycle(&self, schedule: &Schedule, cycle: &[(OpId, OpId)]) -> Diagnostic {
        let at = |op: OpId| schedule.op(op).at;
        let head = |op: OpId| {
            let channel = schedule.channel(schedule.op(op));
            channel.kind == SignalKind::Head
        };
        let full = cycle.iter().any(|(wait, _)| head(*wait));
        let (code, why) = if full {
            (Code::FifoTooShallow, "connections are full, and")
        } else {
            (Code::Deadlock, "deadlock:")
        };
        let title = match cycle.len() {
            1 => format!("{why} a block waits for itself"),
            several => format!("{why} {several} blocks wait for each other"),
        };
        let first = cycle.first().map_or(self.whole, |(wait, _)| at(*wait));
        let error = Diagnostic::new(code, span(first), title);
        let lines: Vec<_> = cycle
            .iter()
            .take(SHOWN)
            .map(|(wait, post)| self.who_waits(schedule, (*wait, *post)))
            .collect();
        let more = match cycle.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!("\n  … and {more} more"),
        };
        error.note(format!("who waits for whom:\n  {}{more}", lines.join("\n  ")))
    }

    fn who_waits(&self, schedule: &Schedule, (wait, post): (OpId, OpId)) -> String {
        let [waits, posts] = [wait, post].map(|op| self.name(schedule.op(op).at));
        let channel = schedule.channel(schedule.op(wait));
        match channel.kind {
            SignalKind::Tail => {
                format!("{waits} receives from gpu {}, which {posts} sends", channel.from)
            }
            SignalKind::Head => {
                format!("{waits} sends to gpu {}, where {posts} would make room", channel.from)
            }
            SignalKind::Data => {
                format!("{waits} waits for gpu {}, which {posts} would tell", channel.from)
            }
            _ => format!("{waits} waits for {posts}"),
        }
    }

    /// Returns the name of a step with its line.
    fn name(&self, at: SpanId) -> String {
        let line = self.source.location(span(at)).line;
        match self.names.get(at) {
            Some(step) => format!("{step} (line {line})"),
            None => "the end of a block".to_owned(),
        }
    }

    /// Returns the diagnostic of a finding, at the steps that the finding is about.
    fn diagnostic(&self, finding: Finding) -> Diagnostic {
        let Finding { code, title, at, label, others, notes, .. } = finding;
        let mut diagnostic = Diagnostic::new(code, span(at), title).label(label);
        let places: Vec<_> = std::iter::once(at).chain(others.iter().map(|(at, _)| *at)).collect();
        // A diagnostic whose lines are far apart would show none of them.
        let start = |at: SpanId| self.source.range(span(at)).start;
        let near = |(other, _): &(SpanId, String)| start(*other).abs_diff(start(at)) < NEAR;
        let others = others.into_iter().filter(near).map(|(at, label)| (span(at), label));
        diagnostic.others = others.collect();
        diagnostic.notes = notes;
        let steps = places.into_iter().filter(|at| self.names.get(*at).is_some());
        let mut names: Vec<_> = steps.map(|at| self.name(at)).collect();
        names.dedup();
        if names.len() > SHOWN {
            let more = names.len() - SHOWN;
            names.truncate(SHOWN);
            names.push(format!("and {more} more"));
        }
        if !names.is_empty() {
            diagnostic.notes.insert(0, names.join("; "));
        }
        diagnostic
    }
}

/// Keeps the first few errors of each code; the last of these says how many were dropped.
fn first_of_each(errors: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut kept: Vec<Diagnostic> = Vec::new();
    let mut more: BTreeMap<Code, usize> = BTreeMap::new();
    for error in errors {
        if kept.iter().filter(|known| known.code == error.code).count() < OF_EACH {
            kept.push(error);
        } else {
            *more.entry(error.code).or_default() += 1;
        }
    }
    for (code, more) in more {
        if let Some(last) = kept.iter_mut().rfind(|known| known.code == code) {
            last.notes.push(format!("and {more} more errors like this"));
        }
    }
    kept
}

/// The most errors of one code that are reported.
const OF_EACH: usize = 4;
/// The most bytes between lines that are shown together.
const NEAR: usize = 1 << 13;

/// The most lines of a table, and the most steps that a note names.
const SHOWN: usize = 8;

/// Returns the largest number of orders in which ranks reduce one piece; `None` if no rank reduces, or if a result is
/// wrong.
fn orders(modes: &[Checked]) -> Option<usize> {
    let reduction = |checked: &Checked| {
        let proved = checked.proved.as_ref()?;
        Some(match proved.schedule().collective {
            Collective::AllReduce => proved.proof().orders.of_one_piece(),
            collective if collective.reduces() => 1,
            _ => return None,
        })
    };
    modes.iter().filter_map(reduction).max()
}
