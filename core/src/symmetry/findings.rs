//! The findings of a schedule of which one rank stands for all.

use crate::diagnostics::{Code, Finding, NamedOp};
use crate::schedule::Schedule;

/// The note of every finding.
const ALIKE: &str = "so at every rank: all ranks do the same, turned";

/// Returns findings of rank 0 as those of all ranks.
pub(super) fn of_all_ranks(found: Vec<Finding>) -> Vec<Finding> {
    found.into_iter().map(|finding| finding.note(ALIKE)).collect()
}

/// Returns the findings of signals that never meet, in the words of a schedule where one rank stands for all.
pub(super) fn signals(own: &Schedule, found: Vec<Finding>) -> Vec<Finding> {
    let alike = |finding: Finding| {
        let line = own.location(finding.at).line;
        let title = match finding.code {
            Code::Deadlock | Code::FifoTooShallow => {
                format!("deadlock: every rank waits in line {line} for a rank that waits there too")
            }
            Code::UnmatchedWait => format!("no rank posts the signal that line {line} waits for"),
            Code::LeftOverSignal => format!("no rank waits for the signal of line {line}"),
            _ => finding.title.clone(),
        };
        let others =
            finding.others.into_iter().map(|(at, _)| (at, "and here".to_owned())).collect();
        let mut fresh = Finding::new(finding.code, finding.at, title).note(ALIKE);
        let op = finding.ops.into_iter().find(|op| op.at == finding.at);
        if let Some(op) = op {
            let name = format!("rank {}, line {line}", op.rank);
            fresh = fresh.note(&*name);
            fresh.ops.push(NamedOp { name, ..op });
        }
        Finding { others, ..fresh }
    };
    found.into_iter().map(alike).collect()
}
