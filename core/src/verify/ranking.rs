//! Which findings are told: the worst first, each mistake once, and nothing that another one causes.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostics::{Code, Finding};
use crate::ids::SpanId;

/// Findings shown of one run.
const SHOWN: usize = 16;

/// The worst first; the same mistake of the same statement once, with how often it shows. What a race
/// or a slot of another piece makes a statement read is no mistake of its own.
pub(super) fn fold(findings: Vec<Finding>) -> Vec<Finding> {
    // Where a wait may take another's signal, nothing after it means anything.
    let astray = findings.iter().any(|f| severity(f.code) == ASTRAY);
    let findings = findings.into_iter().filter(|f| !astray || severity(f.code) <= ASTRAY);
    let findings: Vec<_> = findings.collect();
    let racing: BTreeSet<SpanId> = findings
        .iter()
        .filter(|f| severity(f.code) == RACE || f.code == Code::SlotLength)
        .flat_map(places)
        .collect();
    let mut groups: BTreeMap<(u8, SpanId, Code), (Finding, usize)> = BTreeMap::new();
    for finding in findings {
        if finding.code == Code::UninitialisedRead && racing.contains(&finding.at) {
            continue;
        }
        let key = (severity(finding.code), finding.at, finding.code);
        groups.entry(key).and_modify(|(_, more)| *more += 1).or_insert((finding, 0));
    }
    // A race has two ends, and each may be the later one somewhere: one report for both.
    let mut pairs = BTreeSet::new();
    groups
        .into_values()
        .filter(|(finding, _)| match finding.others.first() {
            Some((other, _)) if finding.code == Code::Race => {
                pairs.insert((finding.at.min(*other), finding.at.max(*other)))
            }
            _ => true,
        })
        .take(SHOWN)
        .map(|(finding, more)| match more {
            0 => finding,
            1 => finding.note("and at 1 more place like this"),
            _ => finding.note(format!("and at {more} more places like this")),
        })
        .collect()
}

/// Where it stands, and the other place.
fn places(finding: &Finding) -> impl Iterator<Item = SpanId> + '_ {
    std::iter::once(finding.at).chain(finding.others.iter().map(|(at, _)| *at))
}

const ASTRAY: u8 = 3;
const RACE: u8 = 5;

const fn severity(code: Code) -> u8 {
    match code {
        Code::Deadlock => 0,
        Code::UnmatchedWait => 1,
        Code::LeftOverSignal => 2,
        Code::SharedSignal | Code::LostSignal => ASTRAY,
        Code::UninitialisedRead | Code::SlotLength | Code::OutOfBounds => 4,
        Code::Race | Code::RaceWithCaller | Code::ScratchRace => RACE,
        _ => 6,
    }
}
