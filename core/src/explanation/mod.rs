//! The diagnostics of an algorithm that cannot be laid out or proved: the findings at their places in the source, and
//! facts that are known only when a similar program is proved, too. So a change is proposed only after it was tried.

mod repairs;
mod requires;
mod rings;
mod signal_repair;

use crate::diagnostics::common_cause::join_causes;
use crate::diagnostics::{Code, Diagnostic, Finding};
use crate::layout::{Algorithm as _, Configured, Limits};
use crate::values::params::ParamValue;
use crate::verify;

/// The limits of a program that is tried: a macro tries it at every keystroke in an editor.
const TRIED: Limits = Limits { steps: 1 << 12, ops: 1 << 10 };

/// Returns the findings of `algorithm` at `nranks` ranks as diagnostics, the worst first. Where one change is proved to
/// mend them all, they have one cause, and the worst is told alone.
pub fn explain(algorithm: &Configured, findings: Vec<Finding>, nranks: u32) -> Vec<Diagnostic> {
    let place = |finding| algorithm.diagnostic(finding, nranks);
    let has_remedy = findings.first().is_some_and(|first| first.has_remedy);
    let mut all = join_causes(findings.into_iter().map(place).collect());
    let Some(first) = all.first_mut() else { return all };
    if has_remedy {
        return all;
    }
    if of_layout(first.code) {
        requires::propose(first, algorithm, nranks);
    } else if of_proof(first.code) {
        let mended = rings::explain(first, algorithm, nranks)
            || signal_repair::propose(first, algorithm, nranks)
            || repairs::propose(first, algorithm, nranks);
        if mended {
            all.truncate(1);
        }
    }
    all
}

/// Whether a finding with this code is that of a value that does not fit the number of ranks.
fn of_layout(code: Code) -> bool {
    matches!(
        code,
        Code::IndexOutOfRange
            | Code::RankOutOfRange
            | Code::LengthMismatch
            | Code::MisalignedRegions
    )
}

/// Whether a finding with this code comes from a proof.
fn of_proof(code: Code) -> bool {
    code >= Code::Deadlock && code < Code::WrongBufferCount
}

/// Whether the algorithm is proved, with each rank as the root; `None` where it cannot be laid out within the limits.
fn proved(algorithm: &Configured, nranks: u32) -> Option<bool> {
    tried(algorithm, nranks).ok()
}

/// Whether the algorithm is proved, as [`proved`] says; an error with the code for which it cannot be laid out.
fn tried(algorithm: &Configured, nranks: u32) -> Result<bool, Code> {
    let rooted = algorithm.collective().is_rooted();
    for root in 0..if rooted { nranks } else { 1 } {
        let mut one = algorithm.clone();
        if rooted {
            one.set("root", ParamValue::Int(root.into())).map_err(|_| Code::BadParameter)?;
        }
        let refused = |all: Vec<Finding>| all.first().map_or(Code::StepLimit, |first| first.code);
        let schedule = one.schedule_within(nranks, TRIED).map_err(refused)?;
        if verify::verify(&schedule).is_err() {
            return Ok(false);
        }
    }
    Ok(true)
}
