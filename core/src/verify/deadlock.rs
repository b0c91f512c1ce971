//! The reasons for streams not to end: posts and waits without a partner, and waits that block each other.

use std::collections::{BTreeMap, BTreeSet};

use super::fifo::{Depth, Links};
use super::order::{Cycle, Order, Progress};
use super::report::Reporter;
use crate::diagnostics::{Code, Finding};
use crate::ids::OpId;
use crate::schedule::{Channel, OpKind, Schedule, SignalKind};

/// Runs the streams against each other; the error is the signals that keep them from ending.
pub(crate) fn order(schedule: &Schedule, reporter: &Reporter<'_>) -> Result<Order, Vec<Finding>> {
    let unmatched = unmatched(schedule, reporter);
    let mut progress = Progress::new(schedule);
    progress.all();
    let stuck = progress.stuck();
    if stuck.is_empty() && unmatched.is_empty() {
        return Ok(progress.order());
    }
    // A wait that is never met blocks others behind it: they are no cycle of their own.
    if unmatched.iter().any(|finding| finding.code == Code::UnmatchedWait) {
        return Err(unmatched);
    }
    let cycle = progress.shortest_cycle(&stuck).map(|Cycle { waits, behind }| {
        too_shallow(schedule, &waits, &behind, reporter)
            .unwrap_or_else(|| reporter.deadlock(&waits, &behind))
    });
    Err(cycle.into_iter().chain(unmatched).collect())
}

/// Whether all streams end, and no signal is left over.
pub(super) fn ends(schedule: &Schedule) -> bool {
    let mut progress = Progress::new(schedule);
    progress.all();
    progress.stuck().is_empty() && balance(schedule).iter().all(|balance| *balance == 0)
}

/// Returns the waits that block each other for ever, if streams do not end.
pub(super) fn stuck(schedule: &Schedule) -> Option<Vec<(OpId, OpId)>> {
    let mut progress = Progress::new(schedule);
    progress.all();
    let stuck = progress.stuck();
    if stuck.is_empty() {
        return None;
    }
    Some(progress.shortest_cycle(&stuck).map_or_else(Vec::new, |cycle| cycle.waits))
}

/// Returns the finding for a cycle of waits that more slots of the fifos would resolve.
fn too_shallow(
    schedule: &Schedule,
    waits: &[(OpId, OpId)],
    behind: &[OpId],
    reporter: &Reporter<'_>,
) -> Option<Finding> {
    let head = |wait: OpId| schedule.channel(schedule.op(wait)).kind == SignalKind::Head;
    let first = waits.iter().position(|(wait, _)| head(*wait))?;
    let links = Links::new(schedule);
    let (credits, needed) = (links.in_flight(waits[first].0), links.needed()?);
    // With fewer slots the run would end as well: then the wait stands in the wrong place.
    if needed <= credits {
        return None;
    }
    let mut waits = waits.to_vec();
    waits.rotate_left(first);
    Some(reporter.too_shallow(&waits, behind, Depth { credits, needed }))
}

/// Returns for each channel the number of posts minus the number of waits.
fn balance(schedule: &Schedule) -> Vec<i64> {
    let mut balance = vec![0_i64; schedule.channels.len()];
    for op in &schedule.ops {
        match op.kind {
            OpKind::Post => balance[op.arg as usize] += 1,
            OpKind::Wait => balance[op.arg as usize] -= 1,
            OpKind::Move => {}
        }
    }
    balance
}

/// Returns the findings for the posts and waits of a channel without a partner.
fn unmatched(schedule: &Schedule, reporter: &Reporter<'_>) -> Vec<Finding> {
    let mut balance = balance(schedule);
    if balance.iter().all(|left| *left == 0) {
        return Vec::new();
    }
    // A message that is sent and not received, or the reverse, leaves the credits of its link without a partner too:
    // the finding for the data gives the reason.
    let astray = |(at, balance): (usize, &i64)| {
        let Channel { from, to, kind, lane } = schedule.channels[at];
        (kind == SignalKind::Tail && *balance != 0).then_some((to, from, lane))
    };
    let astray: BTreeSet<_> = balance.iter().enumerate().filter_map(astray).collect();
    for (Channel { from, to, kind, lane }, balance) in schedule.channels.iter().zip(&mut balance) {
        if *kind == SignalKind::Head && astray.contains(&(*from, *to, *lane)) {
            *balance = 0;
        }
    }
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    let mut tallies = BTreeMap::new();
    // From the end: the surplus signals are the last.
    for (index, op) in schedule.ops.iter().enumerate().rev() {
        if op.kind == OpKind::Move {
            continue;
        }
        let left = &mut balance[op.arg as usize];
        let finding = if op.kind == OpKind::Post && *left > 0 {
            *left -= 1;
            reporter.left_over(OpId(index as u32))
        } else if op.kind == OpKind::Wait && *left < 0 {
            *left += 1;
            reporter.unmatched_wait(OpId(index as u32))
        } else {
            continue;
        };
        // Once a statement: only the first finding is shown.
        let tally = seen
            .insert(op.at)
            .then(|| tallies.entry(op.arg).or_insert_with(|| reporter.tally(op.arg)).clone());
        findings.push(match tally {
            Some(tally) => finding.note(tally),
            None => finding,
        });
    }
    findings.sort_by_key(|finding| (finding.code != Code::UnmatchedWait, finding.at));
    findings
}
