//! The proof of one rank count with each root, and the errors of one algorithm at growing rank counts.

use super::{Asked, Within};
use crate::diagnostics::{Code, Diagnostic, Finding};
use crate::explanation::explain;
use crate::layout::roots::{self, RootsAt, WithRoot};
use crate::layout::{Algorithm as _, Configured, Limits};
use crate::source::Span;
use crate::stages;
use crate::verify::Proved;
use crate::{AnyProof, kept_with, prove_many};

/// The errors of one algorithm at growing rank counts: each error once, at the first count that shows it.
#[derive(Debug, Default)]
pub(super) struct CountErrors {
    /// In the order of the counts.
    pub(super) errors: Vec<Diagnostic>,
    settled: bool,
}

impl CountErrors {
    /// Adds the errors at one more count. If a smaller count could not even be laid out, a proof that fails at this
    /// count is new; and so is an error of another kind.
    pub(super) fn add(&mut self, found: Vec<Diagnostic>) {
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
    pub(super) fn settled(&self) -> bool {
        self.settled
    }
}

/// The reason why no other root of a rank count is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LastRoot {
    /// The algorithm is wrong.
    Wrong,
    /// The schedule is beyond the limits.
    Beyond,
    /// The caller ended the proofs.
    Stopped,
}

/// The proofs of one rank count with the roots that were tried.
#[derive(Default)]
pub(super) struct Tried {
    /// The ops of all schedules that were proved.
    pub(super) ops: u64,
    /// The proof with the first root that is not refused.
    pub(super) first: Option<AnyProof>,
    /// The refusal of the first root that is refused.
    pub(super) refusal: Option<Vec<Diagnostic>>,
    pub(super) last: Option<LastRoot>,
}

/// The proofs of an algorithm, with the rest of the limits.
pub(super) struct Proofs<'a> {
    algorithm: &'a Configured,
    asked: &'a Asked<'a>,
    ops_left: u64,
    pub(super) found: CountErrors,
}

impl<'a> Proofs<'a> {
    pub(super) fn new(algorithm: &'a Configured, asked: &'a Asked<'a>) -> Self {
        let ops_left = if let Within::Together(ops) = asked.within { ops } else { u64::MAX };
        Self { algorithm, asked, ops_left, found: CountErrors::default() }
    }

    /// Proves a rank count with the algorithm's own root alone.
    pub(super) fn own(&mut self, nranks: u32, tried: &mut Tried) -> RootsAt {
        self.algorithm.roots().first(nranks, |root| self.with_root(nranks, root, tried))
    }

    /// Proves the rank count with every root that is left.
    pub(super) fn others(&mut self, at: &mut RootsAt, tried: &mut Tried) {
        let (nranks, most) = (at.nranks(), self.ops_left.min(roots::MOST_OPS));
        self.algorithm.roots().others(at, most, |root| self.with_root(nranks, root, tried));
    }

    fn with_root(&mut self, nranks: u32, root: Option<u32>, tried: &mut Tried) -> WithRoot {
        let algorithm = self.algorithm.with_root(root);
        let proved = match self.asked.stop {
            Some(stop) => stages::until(stop, || self.proved(&algorithm, nranks)),
            None => Some(self.proved(&algorithm, nranks)),
        };
        let last = match proved {
            Some(Ok(proof)) => {
                let (root, ops) = (proof.root(), proof.ops());
                tried.ops += ops;
                self.ops_left = self.ops_left.saturating_sub(ops);
                tried.first.get_or_insert(proof);
                return WithRoot::Proved { root, ops };
            }
            Some(Err(errors)) if errors.iter().all(|error| error.code.refuses()) => {
                tried.refusal.get_or_insert(errors);
                return WithRoot::Refused;
            }
            Some(Err(errors)) if self.is_beyond(&errors) => LastRoot::Beyond,
            Some(Err(errors)) => {
                self.found.add(errors);
                LastRoot::Wrong
            }
            None => LastRoot::Stopped,
        };
        tried.last = Some(last);
        WithRoot::Ended
    }

    /// Whether a schedule takes more work than the caller allows; beyond the limits of plans, that is an error.
    fn is_beyond(&self, errors: &[Diagnostic]) -> bool {
        let is_limit = |error: &Diagnostic| error.code == Code::StepLimit;
        !matches!(self.asked.within, Within::Plans) && errors.iter().any(is_limit)
    }

    fn proved(&self, algorithm: &Configured, nranks: u32) -> Result<AnyProof, Vec<Diagnostic>> {
        let limits = match self.asked.within {
            Within::Plans => return prove_many(algorithm, nranks, self.asked.signals),
            Within::Each(limits) => limits,
            Within::Together(_) => Limits { steps: self.ops_left, ops: self.ops_left },
        };
        let found = algorithm.schedule_within(nranks, limits).and_then(Proved::new);
        let proved = found.map_err(|found| {
            if self.asked.every_count {
                // Errors that are not told need no place, and no trials of their corrections.
                let bare = |f: Finding| Diagnostic::new(f.code, Span::default(), f.title);
                return found.into_iter().map(bare).collect();
            }
            explain(algorithm, found, nranks)
        })?;
        let kept = kept_with(algorithm, proved, self.asked.signals)?;
        Ok(AnyProof::Direct(kept, None))
    }
}
