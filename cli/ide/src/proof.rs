//! The proofs of a text: those of the macro, within its budget, and the certificate at a small rank count.

use std::ops::RangeInclusive;

use roundelay_core::AnyProof;
use roundelay_core::certificate::Certificate;
use roundelay_core::check::CheckedSource;
use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::expansion;
use roundelay_core::layout::{Algorithm as _, Configured, Limits, roots};
use roundelay_core::optimize::elide::{Reason, elide, reasons};
use roundelay_core::program::{CompiledSource, lower};
use roundelay_core::syntax::Source;
use roundelay_core::units::count;
use roundelay_core::verdict::{Asked, Every, Verdict, Within};
use roundelay_core::verify::{Callers, Signals};

/// The rank counts of which a certificate is shown: the largest that the algorithm admits.
const SHOWN: RangeInclusive<u32> = 1..=8;

/// The rank counts at which it is found out why signals are needed.
const FEW: RangeInclusive<u32> = 2..=4;

/// The proofs of a text.
pub struct TextProof {
    pub(super) errors: Vec<Diagnostic>,
    /// Warnings about what the budget did not allow.
    pub(super) left: Vec<Diagnostic>,
    /// The algorithms that were proved.
    pub(super) certificates: Vec<Certified>,
    /// The algorithms that were refused, each with its rank counts.
    pub(super) refused: Vec<(String, Counts)>,
}

/// Rank counts, and whether an algorithm is proved there.
pub type Counts = Vec<(u32, Option<bool>)>;

/// The facts of a proved algorithm.
pub(super) struct Certified {
    pub(super) name: String,
    /// Its verdict in one line.
    pub(super) verdict: String,
    /// The lines of its certificate, the verdict first.
    pub(super) lines: Vec<String>,
    /// Why signals are needed; `None` where that was not found out.
    pub(super) needed: Option<Vec<Reason>>,
    /// The rank counts that are proved at once, in a few words, where there is such a proof.
    pub(super) every: Option<&'static str>,
    /// Whether it is proved at each of few rank counts; `None` where it refuses the count, or is too large for trials.
    pub(super) counts: Counts,
}

/// Proves the algorithms of a text without errors, one after another.
pub fn prove(checked: &CheckedSource, source: &Source) -> TextProof {
    let (mut errors, mut left) = (Vec::new(), Vec::new());
    let (mut certificates, mut refused) = (Vec::new(), Vec::new());
    let CompiledSource { algorithms, executors, .. } = lower(checked, source);
    let part = |algorithms, executors| {
        let part = CompiledSource { algorithms, executors, warnings: Vec::new() };
        expansion::prove(&part, source)
    };
    for algorithm in algorithms {
        let outcome = part(vec![algorithm.clone()], Vec::new());
        let configured = Configured::new(algorithm, source);
        let name = configured.name().to_owned();
        let shown = shown(&configured);
        let counts = lights(&shown);
        if outcome.errors.is_empty() {
            let every = Every::new(configured.program(), source);
            let (verdict, lines) = certificate(&configured, source, &shown, &every);
            let (needed, every) = (needed(&shown), every.counts());
            certificates.push(Certified { name, verdict, lines, needed, every, counts });
        } else {
            refused.push((name, counts));
        }
        errors.extend(outcome.errors);
        left.extend(outcome.left);
    }
    if errors.is_empty() {
        errors = part(Vec::new(), executors).errors;
    }
    TextProof { errors, left, certificates, refused }
}

/// Proves an algorithm at few rank counts, of which it is wrong at some where its text has errors.
fn shown(algorithm: &Configured) -> Verdict<AnyProof> {
    let counts: Vec<u32> = SHOWN.collect();
    let within = Asked::with_limits(&counts, Within::Each(Limits::EXPANSION));
    Verdict::with_facts(algorithm, &Asked { every_count: true, ..within }, |_| (), |proof| proof)
}

/// Returns whether it is proved at each of the rank counts.
fn lights(shown: &Verdict<AnyProof>) -> Counts {
    let proved = shown.counts();
    let light = |n: u32| {
        (n, proved.contains(&n).then_some(true).or(shown.wrong.contains(&n).then_some(false)))
    };
    SHOWN.map(light).collect()
}

/// Returns why the signals of an algorithm are needed, at the largest of few ranks that it admits.
fn needed(shown: &Verdict<AnyProof>) -> Option<Vec<Reason>> {
    let largest = shown.proved.iter().rev().find(|count| FEW.contains(&count.nranks()))?;
    let AnyProof::Direct(proved, _) = &largest.facts else { return None };
    let elided = elide(proved.schedule(), Callers::Each).ok()?;
    elided.unchanged.is_none().then(|| reasons(&elided))
}

/// Returns the verdict on an algorithm that has no errors, and the lines that `check` prints below it.
fn certificate(
    algorithm: &Configured,
    source: &Source,
    shown: &Verdict<AnyProof>,
    every: &Every,
) -> (String, Vec<String>) {
    let Some(largest) = shown.proved.last() else {
        return ("no errors within the budget".to_owned(), Vec::new());
    };
    let (name, ranks) = (algorithm.name(), count(largest.nranks(), "rank"));
    let certificate = Certificate::new(&largest.facts, Signals::default());
    let proofs = std::slice::from_ref(&largest.roots);
    let with = if largest.roots.is_partial() {
        format!(" with {}", roots::text(proofs))
    } else {
        String::new()
    };
    let whole = if every.is_proved() { every.line() } else { format!("proved at {ranks}{with}") };
    let verdict = format!("{whole} · {}", certificate.brief());
    let mut lines = vec![format!("proved {name} at {ranks}"), every.line()];
    let any_order = every.holds_in_any_order(&[largest.nranks()]);
    let values = algorithm.held_values(source, proofs, any_order);
    lines.extend((!values.is_empty()).then(|| format!("for {}", values.join(", "))));
    lines.extend(certificate.lines(true));
    (verdict, lines)
}
