//! Whether every link that a schedule uses exists in a topology. Data and signals go from rank to rank over cables and
//! switches; data that has to pass through a third rank needs moves of that rank.

use std::collections::BTreeMap;

use super::report::Reporter;
use crate::diagnostics::{Code, Finding};
use crate::ids::{RankId, SpanId};
use crate::schedule::Schedule;
use crate::schedule::traffic::Use;
use crate::topology::Topology;
use roundelay_topology::search;

/// The most links listed at a statement before the others are only counted.
const LISTED: usize = 8;

/// Finds every use of a link that `topology` does not have (E0313), statement by statement; E0604 where the topology
/// has too few ranks.
pub fn links(schedule: &Schedule, topology: &Topology) -> Vec<Finding> {
    if let Err(problem) = topology.holds(schedule.nranks) {
        return vec![problem.into_finding(SpanId(0))];
    }
    let mut missing: BTreeMap<(SpanId, bool), Vec<Use>> = BTreeMap::new();
    for used in schedule.traffic().filter(|used| !topology.are_linked(used.from, used.to)) {
        let key = (schedule.op(used.op).at, used.units.is_none());
        missing.entry(key).or_default().push(used);
    }
    let missing_pairs: Vec<_> =
        missing.values().flatten().map(|used| (used.from, used.to)).collect();
    let reporter = Reporter::new(schedule);
    let mut findings: Vec<Finding> =
        missing.iter().map(|((at, _), uses)| finding(&reporter, *at, uses)).collect();
    // The program does not fit the topology: one error, at the first statement that shows it.
    let others: Vec<_> = findings.drain(1.min(findings.len())..).collect();
    if let Some(first) = findings.first_mut() {
        let place = |other: Finding| (other.at, other.title);
        first.others.extend(
            others.into_iter().filter(|other| other.at != first.at).map(place).take(LISTED),
        );
        // Only an algorithm with a ring could take another ring.
        let ring = schedule.demands.rings.then(|| search::ring_around(topology, schedule.nranks));
        match ring {
            None => first.help = Some(beside(topology, &missing_pairs)),
            Some(Ok(ring)) => {
                let order: Vec<_> = ring.iter().map(ToString::to_string).collect();
                first.help = Some(format!(
                    "a ring that uses only links of the topology: {}",
                    order.join(",")
                ));
            }
            Some(Err(problem)) => {
                first.notes.push(problem.title);
                first.notes.extend(problem.notes);
                first.help = Some(beside(topology, &missing_pairs));
            }
        }
    }
    findings
}

/// Returns the help for a schedule that no ring helps.
fn beside(topology: &Topology, missing: &[(RankId, RankId)]) -> String {
    let relayed = missing.iter().map(|(from, to)| (from, to, topology.relays(*from, *to)));
    match relayed.min_by_key(|(.., relays)| relays.is_empty()) {
        Some((from, to, relays)) if !relays.is_empty() => {
            let names: Vec<_> = relays.iter().take(LISTED).map(ToString::to_string).collect();
            let names = names.join(", ");
            format!(
                "relay from rank {from} to rank {to} through one of `topology.relays({from}, {to})`: {names}"
            )
        }
        _ => "no rank has a link to both ends: choose partners by `topology.neighbors(rank)`"
            .to_owned(),
    }
}

fn finding(reporter: &Reporter<'_>, at: SpanId, uses: &[Use]) -> Finding {
    let Use { op, by, from, to, units } = uses[0];
    let does = match units {
        None => format!("rank {from} signals rank {to}"),
        Some(_) if by == to => format!("rank {to} pulls from rank {from}"),
        Some(_) => format!("rank {from} pushes to rank {to}"),
    };
    let title = format!("{does}, and there is no link {from} -> {to}");
    // Most repeat themselves round by round: one line for each rank's uses of a pair.
    let mut lines: BTreeMap<(RankId, RankId, String), Vec<usize>> = BTreeMap::new();
    for used in uses {
        let (lane, step) = reporter.step(used.op);
        lines.entry((used.from, used.to, lane)).or_default().push(step);
    }
    let mut finding = Finding::new(Code::MissingLink, at, title)
        .label("over a link that does not exist")
        .note(reporter.place(op));
    finding = reporter.naming(finding, [op]);
    for ((from, to, lane), steps) in lines.iter().take(LISTED) {
        let at = match steps[..] {
            [step] => format!("step {step}"),
            _ => format!("{} times, steps {} to {}", steps.len(), steps[0], steps[steps.len() - 1]),
        };
        finding = finding.note(format!("{from} -> {to}: {lane}, {at}"));
    }
    if lines.len() > LISTED {
        finding = finding.note(format!("and {} more links", lines.len() - LISTED));
    }
    finding
}
