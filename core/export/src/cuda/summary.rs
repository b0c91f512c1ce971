//! The comment above a kernel: a description, and the facts that were proved.

use std::collections::BTreeSet;

use super::{Form, Protocol, Spec, WHOLE_LINES};
use crate::loops::Loops;
use crate::loops::ir::NodeId;
use roundelay_core::schedule::{OpKind, Schedule};
use roundelay_core::units::count;
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
            Form::Switch => "a table of ops, those of all ranks by a switch",
        }
    )];
    about.extend(
        docs.iter().take_while(|line| !line.trim().is_empty()).map(|l| l.trim().to_owned()),
    );
    if spec.protocol == Protocol::Ll128 {
        let (name, reason) = WHOLE_LINES;
        about.push(format!("Assumes {name}: {reason}."));
    }
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
    let callers = match spec.callers {
        Callers::Each => "Each rank begins and ends by itself.",
        Callers::Announced => "No rank begins before all are called; each ends by itself.",
        Callers::One => "One launch begins and ends all ranks.",
    };
    about.push(callers.to_owned());
    about.push(format!(
        "Proved for {}: {}; at the busiest rank {}, {}, {}, {}.",
        count(*nranks, "rank"),
        count(proof.steps, "step"),
        count(streams, "stream"),
        count(most(OpKind::Move), "move"),
        count(most(OpKind::Post), "post"),
        count(most(OpKind::Wait), "wait"),
    ));
    about.push(format!(
        "The busiest port carries {:.4} units of the count.",
        schedule.busiest_port()
    ));
    about
}

/// Returns a line that lists the left out signals of a form by their lines.
pub(super) fn left_out(loops: &mut Loops, dropped: &BTreeSet<NodeId>) -> Option<String> {
    let mut lines = BTreeSet::new();
    let files = loops.files.clone();
    for node in loops.nodes_mut() {
        node.visit_nodes(&mut |node| {
            let at = node.at_mut().filter(|at| dropped.contains(&at.id));
            lines.extend(at.map(|at| (at.file, at.line)));
        });
    }
    let line = |(file, line): &(usize, u32)| match file {
        0 => line.to_string(),
        file => format!("{line} of {}", files[*file]),
    };
    let lines: Vec<_> = lines.iter().map(line).collect();
    let many = if lines.len() == 1 { "line" } else { "lines" };
    (!lines.is_empty())
        .then(|| format!("Signals that others imply are left out: {many} {}.", lines.join(", ")))
}
