//! The diagnostics of an algorithm that cannot be laid out or proved: the findings at their places in the source, and
//! facts that are known only when a similar program is proved, too. So a change is proposed only after it was tried.

mod repairs;
mod rings;
mod signals;

use crate::diagnostics::{Code, Diagnostic, Finding};
use crate::layout::{Algorithm as _, Configured, Limits};
use crate::values::params::ParamValue;
use crate::verify;

/// The limits of a program that is tried: a macro tries it at every keystroke in an editor.
const TRIED: Limits = Limits { steps: 1 << 12, ops: 1 << 10 };

/// Returns the findings of `algorithm` at `nranks` ranks as diagnostics, the worst first.
pub fn told(algorithm: &Configured, findings: Vec<Finding>, nranks: u32) -> Vec<Diagnostic> {
    let place = |finding| algorithm.diagnostic(finding, nranks);
    let mut all: Vec<Diagnostic> = findings.into_iter().map(place).collect();
    let Some(first) = all.first_mut().filter(|first| of_proof(first.code)) else { return all };
    if !rings::explain(first, algorithm, nranks) {
        match first.code {
            Code::WrongResult => repairs::propose(first, algorithm, nranks),
            _ => signals::propose(first, algorithm, nranks),
        }
    }
    all
}

/// Whether a finding with this code comes from a proof.
fn of_proof(code: Code) -> bool {
    code >= Code::Deadlock && code < Code::WrongBufferCount
}

/// Whether the algorithm is proved, with each rank as the root; `None` where it cannot be laid out within the limits.
fn proved(algorithm: &Configured, nranks: u32) -> Option<bool> {
    let rooted = algorithm.collective().is_rooted();
    for root in 0..if rooted { nranks } else { 1 } {
        let mut one = algorithm.clone();
        if rooted {
            one.set("root", ParamValue::Int(root.into())).ok()?;
        }
        let schedule = one.schedule_within(nranks, TRIED).ok()?;
        if verify::verify(&schedule).is_err() {
            return Some(false);
        }
    }
    Some(true)
}
