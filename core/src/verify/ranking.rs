//! The choice of findings that are reported: the worst first, each mistake once, and no finding that another one
//! causes.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostics::{Code, Finding};
use crate::ids::SpanId;

/// The most findings shown of one run.
const SHOWN: usize = 16;

/// The most other places that a finding gets from findings of its cause.
const PLACES: usize = 4;

/// Sorts findings, the worst first, and reports a mistake of a statement once, with its number of occurrences. A wrong
/// read that a race or a slot with another piece causes is not reported as a mistake of its own.
pub(crate) fn fold(findings: Vec<Finding>) -> Vec<Finding> {
    // Where a wait may take another wait's signal, no later finding means anything.
    let astray = findings.iter().any(|f| severity(f.code) == ASTRAY);
    let findings = findings.into_iter().filter(|f| !astray || severity(f.code) <= ASTRAY);
    let findings = one_of_signals(findings.collect());
    let garbled = findings.iter().any(|f| matches!(severity(f.code), GARBAGE | RACE));
    let raced: BTreeSet<SpanId> =
        findings.iter().filter(|f| f.code == Code::Race).flat_map(places).collect();
    let racing: BTreeSet<SpanId> = findings
        .iter()
        .filter(|f| severity(f.code) == RACE || f.code == Code::SlotLength)
        .flat_map(places)
        .collect();
    let mut reread = BTreeSet::new();
    let mut groups: BTreeMap<(u8, SpanId, Code), (Finding, usize)> = BTreeMap::new();
    for finding in findings {
        let follows = match finding.code {
            Code::UninitializedRead => racing.contains(&finding.at),
            // The race has shown the missing edge already; what is written too early over a slot is read as another piece.
            Code::RaceWithCaller | Code::SlotLength => raced.contains(&finding.at),
            Code::WrongResult => garbled,
            _ => false,
        };
        if follows {
            if finding.code == Code::SlotLength {
                reread.insert(finding.at);
            }
            continue;
        }
        // One mistake makes many results wrong, at many statements; and what was not written may be read at many.
        let one = matches!(finding.code, Code::WrongResult | Code::UninitializedRead);
        let at = if one { SpanId(0) } else { finding.at };
        let key = (severity(finding.code), at, finding.code);
        match groups.get_mut(&key) {
            Some((first, more)) => {
                *more += 1;
                if first.code == Code::UninitializedRead {
                    also(first, finding.at, "and here");
                }
            }
            None => {
                groups.insert(key, (finding, 0));
            }
        }
    }
    // A read of what was not written yet comes too early, and may come before the rank has entered, too.
    let garbage = groups.keys().next().is_some_and(|(worst, ..)| *worst == GARBAGE);
    if garbage {
        let with_caller = |key: &&(u8, SpanId, Code)| key.2 == Code::RaceWithCaller;
        let follow: Vec<_> = groups.keys().filter(with_caller).copied().collect();
        for key in follow {
            groups.remove(&key);
            if let Some(mut first) = groups.first_entry() {
                also(&mut first.get_mut().0, key.1, &format!("{} here may follow from it", key.2));
            }
        }
    }
    // A race has two ends, and each may be the later end somewhere: one report serves both.
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
        .map(|(finding, more)| {
            let other =
                finding.code == Code::Race && places(&finding).any(|at| reread.contains(&at));
            (
                if other {
                    finding.note("so the slot may hold another piece than is read here [E0309]")
                } else {
                    finding
                },
                more,
            )
        })
        .map(|(finding, more)| match more {
            0 => finding,
            1 => finding.note("and at 1 more place like this"),
            _ => finding.note(format!("and at {more} more places like this")),
        })
        .collect()
}

/// Adds a place of another finding with the same cause.
fn also(first: &mut Finding, at: SpanId, label: &str) {
    let known = first.at == at || first.others.iter().any(|(other, _)| *other == at);
    if !known && first.others.len() < PLACES {
        first.others.push((at, label.to_owned()));
    }
}

/// Joins the findings of posts and waits that do not meet into one error: a missing signal is a surplus signal
/// elsewhere, or an unmet wait blocks others from being met.
fn one_of_signals(findings: Vec<Finding>) -> Vec<Finding> {
    let rank = |code| match code {
        Code::Deadlock | Code::FifoTooShallow => Some(0),
        Code::UnmatchedWait => Some(1),
        Code::LeftOverSignal => Some(2),
        _ => None,
    };
    let Some(worst) = findings.iter().filter_map(|f| rank(f.code)).min() else { return findings };
    let (mut told, rest): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(|f| rank(f.code).is_none_or(|rank| rank == worst));
    let Some(first) = told.iter().position(|f| rank(f.code) == Some(worst)) else { return told };
    let at = told[first].at;
    let mut also: Vec<(SpanId, String)> = Vec::new();
    let mut known = BTreeSet::from([at]);
    let mut add = |finding: &Finding, label: &str| {
        if known.insert(finding.at) {
            also.push((finding.at, label.to_owned()));
        }
    };
    if worst > 0 {
        for finding in &told {
            match finding.code {
                Code::UnmatchedWait => add(finding, "nor is this one met"),
                Code::LeftOverSignal => add(finding, "nor for this one"),
                _ => {}
            }
        }
        let code = told[first].code;
        told.retain(|f| f.code != code || f.at == at);
        for finding in rest.iter().filter(|f| f.code == Code::LeftOverSignal) {
            add(finding, "and nobody waits for this one");
        }
    }
    if let Some(first) = told.iter_mut().find(|f| rank(f.code) == Some(worst)) {
        first.others.extend(also);
    }
    told
}

/// Returns the place of a finding, and its other places.
fn places(finding: &Finding) -> impl Iterator<Item = SpanId> + '_ {
    std::iter::once(finding.at).chain(finding.others.iter().map(|(at, _)| *at))
}

const ASTRAY: u8 = 3;
const GARBAGE: u8 = 4;
const RACE: u8 = 5;

const fn severity(code: Code) -> u8 {
    match code {
        Code::Deadlock => 0,
        Code::UnmatchedWait => 1,
        Code::LeftOverSignal => 2,
        Code::SharedSignal | Code::LostSignal => ASTRAY,
        Code::UninitializedRead | Code::SlotLength | Code::OutOfBounds => GARBAGE,
        Code::Race | Code::RaceWithCaller | Code::ScratchRace => RACE,
        _ => 6,
    }
}
