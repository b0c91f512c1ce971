//! The verdict on a plan: its schedule is proved, with one stretch of each loop and with several.

use super::Program;
use crate::findings::{FindingPlacer, Verdict};
use crate::report::span;
use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::ids::SpanId;
use roundelay_core::stages::stage;
use roundelay_core::syntax::Source;

/// The numbers of stretches of a loop that are checked: a single stretch, and a first, a middle and a last one.
const STRETCHES: [u32; 2] = [1, 3];

impl Program {
    /// Proves the plan. `source` is the text that the plan was read from.
    pub fn verdict(&self, source: &Source) -> Verdict {
        let teller = FindingPlacer::new(source, self);
        let check = |stretches, flushes| {
            let laid = stage("schedule", || self.lay_out(source, stretches, flushes));
            let (schedule, mut warnings, unread) = match laid {
                Ok(laid) => (Ok(laid.schedule), laid.warnings, laid.unread),
                Err(errors) => (Err(errors), Vec::new(), None),
            };
            let checked = teller.prove(self.mode(), schedule);
            warnings.extend(unread.filter(|_| checked.errors.is_empty()));
            (checked, warnings)
        };
        let all = |flushes| {
            let [one, several] = STRETCHES;
            let first = check(one, flushes);
            if self.loops() && first.0.errors.is_empty() { check(several, flushes) } else { first }
        };
        let (mut checked, mut warnings) = all(true);
        if let Some(at) = self.flush().filter(|_| checked.errors.is_empty()) {
            let (earlier, told) = all(false);
            // Without the flush there is an error, or a put that is read too late.
            let known = |told: &Diagnostic| warnings.iter().any(|one| one.title == told.title);
            let new = told.into_iter().filter(|told| !known(told));
            let fault = earlier.errors.into_iter().chain(new).next();
            warnings.extend(fault.map(|fault| {
                let title = "a `pwsf`, which waits for its put only from June 2026 on";
                Diagnostic::new(Code::PassedOver, span(at), title).note(format!(
                    "executors of MSCCL++ 0.8 and 0.9 take it for `pws`, and then: {}",
                    fault.title
                ))
            }));
        }
        let puts = self.port_puts();
        for error in checked.errors.iter_mut().filter(|error| error.code == Code::Race) {
            let mut places = error.others.iter().map(|(at, _)| *at).chain([error.primary]);
            if places.any(|at| puts.contains(&SpanId(at.lo))) {
                error.notes.push(
                    "a proxy carries out a put over a port at any time after the op, until a signal behind it arrives"
                        .to_owned(),
                );
            }
        }
        let stretches = if self.loops() { STRETCHES.to_vec() } else { Vec::new() };
        Verdict { warnings, stretches, ..Verdict::new(vec![checked]) }
    }
}
