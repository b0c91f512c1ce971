//! All that a probe measured, and the findings: what is slow, lost, or at odds.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use roundelay_core::ids::RankId;
use roundelay_simulate::{Machine, rates};
use serde::Serialize;

use super::blame::{Blamed, to_blame};
use super::facts::HostFacts;
use super::pairings::{Pair, naming};
use super::prober::{ProbeOrder, Prober, Told};
use crate::report::Failure;

/// The share of the expected rate below which a direction is slow.
const SLOW: f64 = 0.8;
/// The most times that a round is made, first with both ways of each pair together, and then with one way after the other:
/// a direction is slow if it is slow each time.
const TRIES: usize = 3;
/// The share of segments sent again from which a direction loses segments, where others lose no quarter of it; and the
/// least number of them.
const LOSS: f64 = 2e-3;
const TIMES: f64 = 4.0;
const LOST: u32 = 8;
/// The same for packets of an interface that have errors or are dropped.
const FAULTS: f64 = 1e-4;
const FAULTY: u64 = 10;

/// A direction from a host to another.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Measured {
    /// Bytes a second.
    pub(super) rate: f64,
    /// Bytes a second that the topology allows beside the other pairs of the round.
    pub(super) bound: Option<f64>,
    /// Seconds of a message of no length.
    pub(super) latency: f64,
    pub(super) segments: Option<u32>,
    pub(super) retransmits: Option<u32>,
}

/// A kind of fault; the first ones are found by traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Fault {
    Slow,
    Loss,
    Errors,
    Mtu,
    Speed,
    Pci,
}

/// A part of the network that is not as it should be.
#[derive(Clone, Debug, Serialize)]
pub(super) struct ProbeFinding {
    pub(super) fault: Fault,
    pub(super) part: Blamed,
    /// The share of the expected rate, or of segments or packets that were lost.
    pub(super) share: Option<f64>,
    pub(super) text: String,
}

pub(super) struct Survey<'j> {
    pub(super) job: &'j Prober<'j>,
    machine: Option<(Machine, Vec<u32>)>,
    pub(super) facts: Vec<HostFacts>,
    after: Vec<HostFacts>,
    pub(super) links: BTreeMap<Pair, Measured>,
    pub(super) rounds: usize,
    /// The median of all rates.
    pub(super) usual: f64,
}

/// Returns the middle of some numbers, and of two the larger; 0 for none.
pub(super) fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = numbers.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

impl<'j> Survey<'j> {
    pub(super) fn new(
        job: &'j Prober<'j>,
        machine: Option<(Machine, Vec<u32>)>,
    ) -> Result<Self, Failure> {
        let (links, after, rounds) = (BTreeMap::new(), Vec::new(), 0);
        let facts = Vec::new();
        let mut survey = Self { job, machine, facts, after, links, rounds, usual: 0.0 };
        survey.facts = survey.read()?;
        Ok(survey)
    }

    /// Returns the name of the topology, if one is given.
    pub(super) fn topology(&self) -> Option<&str> {
        self.machine.as_ref().map(|(machine, _)| machine.topology.name())
    }

    fn read(&self) -> Result<Vec<HostFacts>, Failure> {
        let told = self.job.lead(&ProbeOrder::Facts)?;
        let facts = |told| if let Told::Facts(facts) = told { facts } else { HostFacts::default() };
        Ok(told.into_iter().map(facts).collect())
    }

    /// Reads the counters of the hosts again.
    pub(super) fn settle(&mut self) -> Result<(), Failure> {
        self.after = self.read()?;
        Ok(())
    }

    /// Has the hosts measure some pairs at once, and again while a direction is slow. Of several measurements of a direction
    /// the best rate counts.
    pub(super) fn measure(&mut self, pairs: &[Pair]) -> Result<(), Failure> {
        let ways: Vec<Pair> = pairs.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]).collect();
        let bounds = self.machine.as_ref().and_then(|(machine, ranks)| {
            let ends = ways.iter().map(|(a, b)| (RankId(ranks[*a]), RankId(ranks[*b])));
            rates(machine, &ends.collect::<Vec<_>>())
        });
        for nth in 0..TRIES {
            let (pairs, together) = (pairs.to_vec(), nth == 0);
            let told = self.job.lead(&ProbeOrder::Measure { pairs, together })?;
            self.rounds += 1;
            for (nth, way) in ways.iter().enumerate() {
                let heard = |host: usize| match told.get(host) {
                    Some(Told::Heard(heard)) => Some(*heard),
                    _ => None,
                };
                let (Some(sender), Some(receiver)) = (heard(way.0), heard(way.1)) else { continue };
                // The first of each pair measures the latency.
                let first = if nth % 2 == 0 { sender } else { receiver };
                let measured = Measured {
                    rate: receiver.rate,
                    bound: bounds.as_ref().map(|bounds| bounds[nth]),
                    latency: first.latency,
                    segments: sender.segments.map(|[segments, _]| segments),
                    retransmits: sender.segments.map(|[_, again]| again),
                };
                let known = self.links.entry(*way).or_insert(measured);
                let of = |link: &Measured| link.rate / link.bound.unwrap_or(1.0);
                let best = if of(&measured) > of(known) { measured } else { *known };
                let latency = known.latency.min(measured.latency);
                *known = Measured { rate: best.rate, bound: best.bound, latency, ..measured };
            }
            self.usual = median(self.links.values().map(|link| link.rate));
            if !ways.iter().filter_map(|way| self.links.get(way)).any(|link| self.is_slow(link)) {
                break;
            }
        }
        Ok(())
    }

    fn is_slow(&self, link: &Measured) -> bool {
        link.rate < SLOW * self.expected(link)
    }

    /// Returns the rate that a direction should have: the bound of the topology, or the median of all directions.
    pub(super) fn expected(&self, of: &Measured) -> f64 {
        of.bound.unwrap_or(self.usual)
    }

    /// Returns which directions are slow, and which lose segments.
    fn bad(&self) -> [BTreeMap<Pair, bool>; 2] {
        let usual = median(self.links.values().filter_map(loss_share));
        let loses = |link: &Measured| {
            let again = link.retransmits.unwrap_or(0);
            again >= LOST && loss_share(link).is_some_and(|share| share > LOSS.max(TIMES * usual))
        };
        let of = |bad: &dyn Fn(&Measured) -> bool| {
            self.links.iter().map(|(pair, link)| (*pair, bad(link))).collect()
        };
        [of(&|link| self.is_slow(link)), of(&loses)]
    }

    /// Returns a round in which the ends of bad directions meet hosts that are well.
    pub(super) fn naming_round(&self) -> Option<Vec<Pair>> {
        let mut suspects = vec![false; self.job.hosts()];
        let bad = self.bad();
        for ((from, to), _) in bad.iter().flatten().filter(|(_, bad)| **bad) {
            (suspects[*from], suspects[*to]) = (true, true);
        }
        let met = self.links.keys().copied().collect();
        Some(naming(&suspects, &met)).filter(|round| !round.is_empty())
    }

    /// Returns a round of slow pairs whose ends are well with other hosts.
    pub(super) fn alone(&self) -> Option<Vec<Pair>> {
        let mut taken = BTreeSet::new();
        let [slow, _] = self.bad();
        let pair = |part| match part {
            Blamed::Pair(a, b) | Blamed::Direction(a, b) => Some((a, b)),
            _ => None,
        };
        let pairs = to_blame(&slow).into_iter().filter_map(pair);
        let free = |(a, b): &Pair| taken.insert(*a) & taken.insert(*b);
        Some(pairs.filter(free).collect::<Vec<_>>()).filter(|round| !round.is_empty())
    }

    /// Returns the findings, the worst first.
    pub(super) fn findings(&self) -> Vec<ProbeFinding> {
        let [slow, loses] = self.bad();
        let mut findings: Vec<ProbeFinding> = Vec::new();
        findings.extend(to_blame(&slow).into_iter().filter_map(|part| self.slow(part, &slow)));
        findings.extend(to_blame(&loses).into_iter().filter_map(|part| self.loss(part, &loses)));
        for (host, (before, after)) in self.facts.iter().zip(&self.after).enumerate() {
            let packets = after.packets.saturating_sub(before.packets);
            let faults = after.faults.saturating_sub(before.faults);
            let share = faults as f64 / packets.max(1) as f64;
            if faults >= FAULTY && share > FAULTS {
                let what = format!("{faults} of {packets} packets had errors or were dropped");
                findings.push(self.finding(Fault::Errors, Blamed::Host(host), Some(share), &what));
            }
        }
        // Of the rate, the smallest share is the worst; of losses, the largest.
        let badness = |finding: &ProbeFinding| match finding.fault {
            Fault::Slow => finding.share,
            _ => finding.share.map(|share| -share),
        };
        findings.sort_by(|a, b| {
            let shares = badness(a).partial_cmp(&badness(b)).unwrap_or(Ordering::Equal);
            a.fault.cmp(&b.fault).then(shares)
        });
        findings.extend(self.without_traffic());
        findings
    }

    /// Returns the findings that need no traffic.
    pub(super) fn without_traffic(&self) -> Vec<ProbeFinding> {
        type Of = fn(&HostFacts) -> Option<u64>;
        let mut findings = Vec::new();
        let alike: [(Fault, &str, Of); 2] = [
            (Fault::Mtu, "bytes is the MTU", |facts| facts.mtu),
            (Fault::Speed, "Mbit/s is the speed of its card", |facts| facts.speed),
        ];
        for (fault, what, of) in alike {
            let usual = median(self.facts.iter().filter_map(of).map(|own| own as f64)) as u64;
            for (host, own) in self.facts.iter().map(of).enumerate() {
                if let Some(own) = own.filter(|own| *own != usual) {
                    let what = format!("{own} {what}, and {usual} on most hosts");
                    findings.push(self.finding(fault, Blamed::Host(host), None, &what));
                }
            }
        }
        for (host, facts) in self.facts.iter().enumerate() {
            let of = |line: &String| self.finding(Fault::Pci, Blamed::Host(host), None, line);
            findings.extend(facts.trained_down.iter().map(of));
        }
        findings
    }

    fn finding(&self, fault: Fault, part: Blamed, share: Option<f64>, what: &str) -> ProbeFinding {
        ProbeFinding { fault, part, share, text: format!("{}: {what}", self.part(part)) }
    }

    /// Returns the name of a host, with its interface.
    pub(super) fn host_name(&self, host: usize) -> String {
        let facts = &self.facts[host];
        let by = facts.interface.as_ref().map_or_else(String::new, |name| format!(", {name}"));
        format!("host {host} ({}{by})", facts.name)
    }

    /// Returns the name of a part.
    fn part(&self, part: Blamed) -> String {
        match part {
            Blamed::Host(host) => self.host_name(host),
            Blamed::Sender(host) => format!("{}, as a sender", self.host_name(host)),
            Blamed::Receiver(host) => format!("{}, as a receiver", self.host_name(host)),
            Blamed::Pair(a, b) => {
                format!("{} and {}, both ways", self.host_name(a), self.host_name(b))
            }
            Blamed::Direction(a, b) => format!("{} to {}", self.host_name(a), self.host_name(b)),
        }
    }

    /// Returns the directions of a part that are bad.
    fn directions(&self, part: Blamed, bad: &BTreeMap<Pair, bool>) -> Vec<Measured> {
        let its = bad.iter().filter(|(pair, bad)| **bad && part.explains(**pair));
        its.filter_map(|(pair, _)| self.links.get(pair).copied()).collect()
    }

    /// Returns the end of a text about a part, of which some directions are bad: what is well beside them.
    fn verdict(part: Blamed, bad: usize, all: &BTreeMap<Pair, bool>) -> String {
        let worst =
            if bad > 1 { format!(" in the worst of {bad} directions") } else { String::new() };
        let (Blamed::Pair(a, b) | Blamed::Direction(a, b)) = part else { return worst };
        let met_others = |host| all.keys().any(|(from, to)| *from == host && *to != a && *to != b);
        let verdict = if met_others(a) && met_others(b) {
            ": this pair alone, as both are well with other hosts"
        } else {
            "; which end it is stays open, as one of them met no other host"
        };
        worst + verdict
    }

    fn slow(&self, part: Blamed, slow: &BTreeMap<Pair, bool>) -> Option<ProbeFinding> {
        let ratio = |link: &Measured| link.rate / self.expected(link);
        let its = self.directions(part, slow);
        let worst = its.iter().min_by(|a, b| ratio(a).total_cmp(&ratio(b)))?;
        let rates = format!("{} of {}", rate(worst.rate), rate(self.expected(worst)));
        let what = rates + &Self::verdict(part, its.len(), slow);
        Some(self.finding(Fault::Slow, part, Some(ratio(worst)), &what))
    }

    fn loss(&self, part: Blamed, loses: &BTreeMap<Pair, bool>) -> Option<ProbeFinding> {
        let its = self.directions(part, loses);
        let share = its.iter().filter_map(loss_share).reduce(f64::max)?;
        let lost = format!("{:.2}% of the segments were sent again", 100.0 * share);
        let what = lost + &Self::verdict(part, its.len(), loses);
        Some(self.finding(Fault::Loss, part, Some(share), &what))
    }
}

/// Returns the share of segments that were sent again.
fn loss_share(link: &Measured) -> Option<f64> {
    Some(f64::from(link.retransmits?) / f64::from(link.segments?.max(1)))
}

/// Returns bytes a second for people.
pub(super) fn rate(rate: f64) -> String {
    let rate = rounded(rate);
    roundelay_core::units::rate_text(rate)
}

/// Returns a number with three digits that count.
pub(super) fn rounded(value: f64) -> u64 {
    let digit = 10_f64.powf((value.max(1.0).log10().floor() - 2.0).max(0.0));
    ((value / digit).round() * digit) as u64
}
