//! The proof: a schedule is replayed once, and what holds of the replay holds of every interleaving.
//!
//! Nothing depends on data, the k-th post meets the k-th wait, so the order of events is one partial
//! order: acyclic with equal counts means no deadlock in any run; free of races means one result.
//! The caller is part of it: `enter` and `exit` count as writing a rank's whole input and output, so any
//! sequence of plans is safe without a barrier between them.

mod cache;
mod clocks;
mod layout;
mod links;
mod memory;
mod order;
pub mod parametric;
mod ranking;
mod replay;
mod report;
mod result;
mod values;

use crate::diagnostics::Code;
pub use crate::diagnostics::Finding;
use crate::ids::OpId;
use crate::schedule::{Schedule, legality};
pub use cache::Proved;
pub use links::links;

/// What was proved, and what the engines take from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// Reducing moves after which every destination element is complete: `avg` divides there.
    pub finish: Vec<OpId>,
    /// Completion is not uniform: `avg` divides each rank's whole output at the end of its main stream
    /// instead, and `finish` is empty.
    pub scale_outputs: bool,
    /// Whether the in-place form was proved too.
    pub in_place: bool,
    /// The deepest reduction tree of any output element, in reduce steps.
    pub reduce_depth: u32,
    /// The longest chain of data moves between ranks.
    pub rounds: u32,
}

/// Proves `schedule`, out of place and (where the collective has it) in place; or says all that is wrong.
pub fn verify(schedule: &Schedule) -> Result<Proof, Vec<Finding>> {
    let reporter = report::Reporter::new(schedule);
    legality::check(schedule)
        .map_err(|all| ranking::fold(all.iter().map(|i| reporter.illegal(i)).collect()))?;
    let in_place = schedule.collective.has_in_place() && !schedule.out_of_place;

    let order = order::order(schedule, &reporter).map_err(ranking::fold)?;
    let replay =
        replay::replay(schedule, &order, &reporter, in_place).map_err(|finding| vec![*finding])?;

    if !replay.findings.is_empty() {
        return Err(ranking::fold(replay.findings));
    }
    if !replay.in_place_findings.is_empty() {
        return Err(ranking::fold(
            replay.in_place_findings.into_iter().map(only_in_place).collect(),
        ));
    }
    let reduces = schedule.collective.reduces() && schedule.nranks > 1;
    Ok(Proof {
        scale_outputs: reduces && replay.finish.is_none(),
        finish: replay.finish.unwrap_or_default(),
        in_place,
        reduce_depth: replay.reduce_depth,
        rounds: replay.rounds,
    })
}

/// A finding that shows only where input and output share memory.
fn only_in_place(finding: Finding) -> Finding {
    let why = format!("{} [{}]", finding.title, finding.code);
    let title = "right out of place, wrong in place".to_owned();
    let mut finding = Finding { code: Code::InPlaceOnly, title, ..finding };
    finding.notes.insert(0, why);
    finding.help(
        "read the input before its memory is written as output, or mark the algorithm `#[out_of_place]`",
    )
}
