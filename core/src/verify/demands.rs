//! Whether a proved schedule keeps to the demands of its author and its caller beyond being right.

use super::owners::{one_count, owners};
use super::{Finding, Ports, Proof, depth, in_order, links, ranking, report::Reporter};
use crate::ids::SpanId;
use crate::rational::Rat;
use crate::schedule::Schedule;
use crate::schedule::demands::Budget;
use crate::values::resource::Resource;

/// Finds every unmet demand of the schedule's author: E0313, E0315, E0316, E0317, E0319, E0320. Where a count for each
/// block is demanded, `by_block` has the finding of the first move that is right for equal counts alone.
pub(crate) fn unmet_by(
    schedule: &Schedule,
    proof: &Proof,
    by_block: impl FnOnce() -> Option<Box<Finding>>,
) -> Vec<Finding> {
    let demands = &schedule.demands;
    let reporter = Reporter::new(schedule);
    let mut findings = Vec::new();
    if let Some((topology, at)) = &demands.topology {
        findings.extend(links(schedule, topology).into_iter().map(|mut finding| {
            if at.0 > 0 {
                finding.others.push((*at, "these are the links".to_owned()));
            }
            finding
        }));
    }
    if let Some(reduction) = &proof.reduction {
        let order = reduction.in_every_mode();
        let broken = demands.order.iter().filter(|(class, _)| !order.keeps(*class));
        findings.extend(broken.filter_map(|(class, at)| {
            let witness = reduction.witness(*class)?;
            Some(reporter.order_differs(*class, *at, witness))
        }));
        if let Some((most, at)) = demands.roundings
            && order.roundings > most
        {
            let by = (&*reduction.rounding_ops, proof.scale_outputs);
            findings.push(reporter.too_many_roundings(most, at, by));
        }
    }
    if let Some(at) = demands.uneven {
        findings.extend(equal_counts(schedule, at, by_block));
    }
    findings.extend(
        demands
            .budgets
            .iter()
            .filter_map(|budget| over(schedule, &proof.ports, *budget, &reporter)),
    );
    ranking::fold(findings)
}

/// Finds every unmet demand of the author of a schedule with the ops of all ranks: E0313, E0315, E0316, E0317, E0319,
/// E0320.
pub fn unmet(schedule: &Schedule, proof: &Proof) -> Vec<Finding> {
    // A proved schedule has an order.
    unmet_by(schedule, proof, || owners(schedule, &in_order(schedule).ok()?).err())
}

/// Returns the finding of the first move that is right for equal counts alone.
fn equal_counts(
    schedule: &Schedule,
    at: SpanId,
    by_block: impl FnOnce() -> Option<Box<Finding>>,
) -> Option<Finding> {
    if let Some(one) = one_count(schedule, at) {
        return Some(one);
    }
    let mut finding = *by_block()?;
    if at.0 > 0 {
        finding.others.push((at, "demands a count for each rank".to_owned()));
    }
    Some(finding)
}

fn over(
    schedule: &Schedule,
    ports: &Ports,
    budget: Budget,
    reporter: &Reporter<'_>,
) -> Option<Finding> {
    let needs = schedule.needs();
    let most = budget.most;
    match budget.resource {
        Resource::Scratch => {
            let fits = needs.scratch.is_some_and(|need| need <= Rat::whole(most));
            (!fits).then(|| reporter.scratch_over(budget, needs.scratch))
        }
        Resource::Streams => (u64::from(needs.streams) > most)
            .then(|| reporter.streams_over(budget, needs.streams, needs.last_stream)),
        Resource::Notifies => (u64::from(needs.notifies) > most)
            .then(|| reporter.notifies_over(budget, needs.notifies, needs.last_notify)),
        Resource::Fifo => {
            let needed = depth(schedule)?.needed;
            (u64::from(needed) > most).then(|| reporter.fifo_over(budget, needed))
        }
        Resource::Ports => (ports.most() as u64 > most).then(|| reporter.ports_over(budget, ports)),
    }
}
