//! The comment above a kernel: a description, and the facts that were proved.

use super::source::Notes;
use super::{Form, Spec};
use roundelay_core::schedule::{OpKind, Schedule};
use roundelay_core::verify::{Callers, Proof};

/// Returns the lines of the comment above a kernel.
pub(super) fn about(
    name: &str,
    docs: &[String],
    form: Form,
    spec: Spec,
    (schedule, proof): (&Schedule, &Proof),
) -> Vec<String> {
    let Schedule { collective, nranks, .. } = schedule;
    let mut about = vec![format!(
        "{name} ({collective}), {} {}, protocol {}, {}",
        spec.element.name(),
        spec.op,
        spec.protocol.name(),
        match form {
            Form::Loops => "the author's loops",
            Form::Table => "a table of ops",
        }
    )];
    about.extend(
        docs.iter().take_while(|line| !line.trim().is_empty()).map(|l| l.trim().to_owned()),
    );
    about.push(String::new());
    let most = |kind: OpKind| {
        let of_rank = |rank: u32| {
            let streams = schedule.streams.iter().filter(|s| s.rank.0 == rank);
            let ops = streams.flat_map(|s| &schedule.ops[s.first.index()..][..s.len as usize]);
            ops.filter(|op| op.kind == kind).count()
        };
        (0..*nranks).map(of_rank).max().unwrap_or(0)
    };
    let streams = schedule.streams.iter().map(|s| s.index + 1).max().unwrap_or(1);
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let callers = match spec.callers {
        Callers::Each => "Each rank begins and ends by itself.",
        Callers::Announced => "No rank begins before all are called; each ends by itself.",
        Callers::One => "One launch begins and ends all ranks.",
    };
    about.push(callers.to_owned());
    about.push(format!(
        "Proved for {}: {}; at the busiest rank {}, {}, {}, {}.",
        plural(*nranks as usize, "rank"),
        plural(proof.steps as usize, "step"),
        plural(streams as usize, "stream"),
        plural(most(OpKind::Move), "move"),
        plural(most(OpKind::Post), "post"),
        plural(most(OpKind::Wait), "wait"),
    ));
    about.push(format!(
        "The busiest port carries {:.4} units of the count.",
        schedule.busiest_port()
    ));
    about
}

/// Returns a line that lists the left out signals by their lines.
pub(super) fn left_out(notes: &Notes, schedule: &Schedule) -> Vec<String> {
    if notes.dropped.is_empty() {
        return Vec::new();
    }
    let lines: Vec<_> =
        notes.dropped.iter().map(|at| schedule.location(*at).line.to_string()).collect();
    vec![format!("Signals that others imply are left out: line {}.", lines.join(", "))]
}
