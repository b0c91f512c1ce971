//! The verdict on an algorithm: its proofs at the rank counts that are asked for, with every root where that is cheap,
//! within limits.
//!
//! The command, the editor and the macro differ in the rank counts that they ask for, in the limits, and in the facts
//! that they keep of a proof. All of them take the verdict from here.

mod count;
mod every;
mod json;
mod optimum;

use std::time::{Duration, Instant};

use crate::AnyProof;
use crate::certificate::Certificate;
use crate::collective::Collective;
use crate::diagnostics::{Code, Diagnostic};
use crate::layout::roots::RootsAt;
use crate::layout::{Algorithm as _, Configured, Limits};
use crate::syntax::Source;
use crate::units::ranges;
use crate::verify::Signals;
use count::{LastRoot, Proofs, Tried};

pub use every::Every;
pub use optimum::Optimum;

/// The work that the proofs may take.
#[derive(Clone, Copy, Debug)]
pub enum Within {
    /// The limits of plans, which one rank that stands for all keeps to for many ranks. A schedule beyond them is an
    /// error.
    Plans,
    /// These limits for each schedule; a rank count beyond them is left out.
    Each(Limits),
    /// This number of ops for all schedules together, those with the algorithm's own root first. The first rank count
    /// beyond it is left out, with all that come after it.
    Together(u64),
}

/// The question to which a verdict is the answer.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The rank counts.
    pub counts: &'a [u32],
    /// Whether they are named one by one: then it is an error to refuse one.
    pub named: bool,
    /// The model of signals.
    pub signals: Signals,
    /// The limits.
    pub within: Within,
    /// Whether every count is tried, also where a smaller one is wrong. Such a verdict tells no errors.
    pub every_count: bool,
    /// Whether the proofs end before the next stage.
    pub stop: Option<fn() -> bool>,
}

impl<'a> Asked<'a> {
    /// Asks for rank counts within limits.
    pub fn with_limits(counts: &'a [u32], within: Within) -> Self {
        let signals = Signals::default();
        Self { counts, named: false, signals, within, every_count: false, stop: None }
    }
}

/// The facts of a proof that `roundelay check` shows.
#[derive(Clone, Debug)]
pub struct ProofFacts {
    /// The facts of the proof itself.
    pub certificate: Certificate,
    /// The distance from the best on the topology, if there is one.
    pub optimum: Option<Optimum>,
}

/// A rank count that is proved.
#[derive(Clone, Debug)]
pub struct ProvedCount<F> {
    /// The rank count, and the roots of its proofs.
    pub roots: RootsAt,
    /// The ops of the schedules with all these roots.
    pub ops: u64,
    /// The time of the proofs.
    pub took: Duration,
    /// The facts of the proof with the first root.
    pub facts: F,
}

impl<F> ProvedCount<F> {
    /// Returns the rank count.
    pub fn nranks(&self) -> u32 {
        self.roots.nranks()
    }
}

/// The verdict on an algorithm. [`Verdict::json`] has all of it for programs, as `roundelay check --format json` prints
/// it.
#[derive(Clone, Debug)]
pub struct Verdict<F = ProofFacts> {
    /// The name of the algorithm.
    pub name: String,
    /// Its collective.
    pub collective: Collective,
    /// The rank counts that were asked for.
    pub nranks: Vec<u32>,
    /// The rank counts that are proved.
    pub proved: Vec<ProvedCount<F>>,
    /// The rank counts that the algorithm refuses, with the reasons.
    pub refused: Vec<(u32, Vec<Diagnostic>)>,
    /// The rank counts at which the algorithm is wrong, as far as they were tried.
    pub wrong: Vec<u32>,
    /// The rank counts that the limits do not allow.
    pub beyond: Vec<u32>,
    /// The rank count at which the proofs were ended.
    pub stopped: Option<u32>,
    /// The errors: each once, at the first count that shows it.
    pub errors: Vec<Diagnostic>,
    /// The ops of all schedules that were proved.
    pub ops: u64,
    /// The time that the verdict took.
    pub took: Duration,
    /// The values of the parameters that the proofs hold for.
    pub values: Vec<String>,
    /// The proof for all rank counts, where no error was found at those asked for.
    pub every: Option<Every>,
}

impl Verdict {
    /// Returns the verdict of `roundelay check`. `begins` hears of each rank count before its proof, with the proof for
    /// all rank counts.
    pub fn check(
        algorithm: &Configured,
        source: &Source,
        asked: &Asked<'_>,
        begins: impl Fn(u32, &Every),
    ) -> Self {
        // It takes no longer for more ranks, so it can be told while they are proved.
        let every = Every::new(algorithm.program(), source);
        let facts = |proof: AnyProof| {
            let optimum = match (&proof, algorithm.topology()) {
                (AnyProof::Direct(proved, _), Some(topology)) => Optimum::new(proved, topology),
                _ => None,
            };
            ProofFacts { certificate: Certificate::new(&proof, asked.signals), optimum }
        };
        let start = Instant::now();
        let mut verdict = Self::with_facts(algorithm, asked, |n| begins(n, &every), facts);
        verdict.values =
            verdict.held_values(algorithm, source, every.holds_in_any_order(&verdict.counts()));
        if verdict.is_refused() {
            let reason = verdict.refused.first().map(|(_, errors)| reason(errors));
            let title = format!("{} admits none of the rank counts asked for", verdict.name);
            let error = Diagnostic::new(Code::NothingAdmitted, algorithm.program().header(), title);
            verdict.errors.push(error.note(reason.unwrap_or_default()));
        }
        verdict.took = start.elapsed();
        verdict.every = verdict.errors.is_empty().then_some(every);
        verdict
    }
}

impl<F> Verdict<F> {
    /// Proves the algorithm at the rank counts, and keeps the `facts` of each proof. `begins` hears of each rank count
    /// before its proof.
    pub fn with_facts(
        algorithm: &Configured,
        asked: &Asked<'_>,
        begins: impl Fn(u32),
        facts: impl Fn(AnyProof) -> F,
    ) -> Self {
        let mut verdict = Self::nothing(algorithm, asked.counts);
        let mut proofs = Proofs::new(algorithm, asked);
        let together = matches!(asked.within, Within::Together(_));
        for (index, &nranks) in asked.counts.iter().enumerate() {
            if proofs.found.settled() && !asked.every_count {
                break;
            }
            begins(nranks);
            let (begun, mut tried) = (Instant::now(), Tried::default());
            let mut roots = proofs.own(nranks, &mut tried);
            if !together {
                proofs.others(&mut roots, &mut tried);
            }
            let Tried { ops, first, refusal, last } = tried;
            verdict.ops += ops;
            match (last, first, refusal) {
                (Some(LastRoot::Stopped), ..) => {
                    verdict.stopped = Some(nranks);
                    break;
                }
                (Some(LastRoot::Wrong), ..) => verdict.wrong.push(nranks),
                (_, Some(proof), _) => {
                    let (took, facts) = (begun.elapsed(), facts(proof));
                    verdict.proved.push(ProvedCount { roots, ops, took, facts });
                }
                (Some(LastRoot::Beyond), ..) if together => {
                    verdict.beyond = asked.counts[index..].to_vec();
                    break;
                }
                (Some(LastRoot::Beyond), ..) => verdict.beyond.push(nranks),
                (None, None, Some(errors)) if asked.named => proofs.found.add(errors),
                (None, None, errors) => {
                    verdict.refused.extend(errors.map(|errors| (nranks, errors)));
                }
            }
        }
        if together {
            verdict.other_roots(&mut proofs);
        }
        verdict.errors = if asked.every_count { Vec::new() } else { proofs.found.errors };
        verdict
    }

    fn nothing(algorithm: &Configured, counts: &[u32]) -> Self {
        Self {
            name: algorithm.name().to_owned(),
            collective: algorithm.collective(),
            nranks: counts.to_vec(),
            proved: Vec::new(),
            refused: Vec::new(),
            wrong: Vec::new(),
            beyond: Vec::new(),
            stopped: None,
            errors: Vec::new(),
            ops: 0,
            took: Duration::ZERO,
            values: Vec::new(),
            every: None,
        }
    }

    /// Proves the rank counts with the roots that are left, up to the first that is wrong.
    fn other_roots(&mut self, proofs: &mut Proofs<'_>) {
        for mut count in std::mem::take(&mut self.proved) {
            let mut tried = Tried::default();
            if self.is_right() && proofs.found.errors.is_empty() {
                proofs.others(&mut count.roots, &mut tried);
            }
            count.ops += tried.ops;
            self.ops += tried.ops;
            match tried.last {
                Some(LastRoot::Stopped) => self.stopped = Some(count.nranks()),
                Some(LastRoot::Wrong) => self.wrong.push(count.nranks()),
                Some(LastRoot::Beyond) | None => self.proved.push(count),
            }
        }
    }

    /// Whether the algorithm is right wherever it was tried, and was tried wherever it was asked for.
    pub fn is_right(&self) -> bool {
        self.errors.is_empty() && self.wrong.is_empty() && self.stopped.is_none()
    }

    /// Whether the algorithm refuses all rank counts.
    pub fn is_refused(&self) -> bool {
        self.is_right() && self.proved.is_empty() && self.beyond.is_empty()
    }

    /// Returns the rank counts that are proved.
    pub fn counts(&self) -> Vec<u32> {
        self.proved.iter().map(ProvedCount::nranks).collect()
    }

    /// Returns the rank counts that are proved, in words.
    pub fn proved_counts(&self) -> String {
        ranges(&self.counts())
    }

    /// Returns the values of the parameters that the proofs hold for; see [`Configured::held_values`].
    pub fn held_values(
        &self,
        algorithm: &Configured,
        source: &Source,
        any_order: bool,
    ) -> Vec<String> {
        let roots: Vec<RootsAt> = self.proved.iter().map(|count| count.roots.clone()).collect();
        algorithm.held_values(source, &roots, any_order)
    }
}

/// Returns why a rank count is refused, in a line. The title of a `require` names the algorithm and the count, which
/// stand beside it already.
pub fn reason(refusal: &[Diagnostic]) -> String {
    let Some(first) = refusal.first() else { return String::new() };
    match first.title.split_once(": ") {
        Some((_, why)) if first.code == Code::RankCountRefused => why.to_owned(),
        _ => first.title.clone(),
    }
}
