//! The ends and pairs that explain which directions between hosts are bad.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::pairings::Pair;

/// The part of the network that is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Blamed {
    /// A host both as a sender and as a receiver.
    Host(usize),
    /// A host as a sender: all that it was seen to send was bad.
    Sender(usize),
    /// A host as a receiver.
    Receiver(usize),
    /// Two hosts, both ways: each is well with others, as far as it met any.
    Pair(usize, usize),
    /// The direction from one host to another alone.
    Direction(usize, usize),
}

impl Blamed {
    /// Whether a direction belongs to it.
    pub(super) fn explains(self, (from, to): Pair) -> bool {
        match self {
            Self::Host(host) => from == host || to == host,
            Self::Sender(host) => from == host,
            Self::Receiver(host) => to == host,
            Self::Pair(a, b) => (from, to) == (a, b) || (from, to) == (b, a),
            Self::Direction(a, b) => (from, to) == (a, b),
        }
    }
}

/// Returns the fewest parts, as far as a greedy choice finds them, that explain all bad directions among those that were
/// measured (`true` for a bad one), in order. An end is blamed only if it was measured with two hosts or more, and bad with
/// all of them.
pub(super) fn to_blame(measured: &BTreeMap<Pair, bool>) -> Vec<Blamed> {
    let mut open: BTreeSet<Pair> =
        measured.iter().filter(|(_, bad)| **bad).map(|(pair, _)| *pair).collect();
    let ends = open.iter().flat_map(|(from, to)| [Blamed::Sender(*from), Blamed::Receiver(*to)]);
    let ends: BTreeSet<Blamed> = ends.collect();
    let of = |end: Blamed| measured.iter().filter(move |(pair, _)| end.explains(**pair));
    let mut ends: Vec<Blamed> = ends
        .into_iter()
        .filter(|end| of(*end).count() > 1 && of(*end).all(|(_, bad)| *bad))
        .collect();
    let mut chosen = BTreeSet::new();
    // An end that explains most of what is still open; of several, one that was measured most often.
    let weight = |open: &BTreeSet<Pair>, end: Blamed| {
        (open.iter().filter(|pair| end.explains(**pair)).count(), of(end).count())
    };
    while let Some(end) = ends.iter().copied().max_by_key(|end| weight(&open, *end)) {
        if weight(&open, end).0 == 0 {
            break;
        }
        ends.retain(|other| *other != end);
        open.retain(|pair| !end.explains(*pair));
        chosen.insert(end);
    }
    let mut parts: Vec<Blamed> = Vec::new();
    for end in &chosen {
        match *end {
            Blamed::Sender(host) if chosen.contains(&Blamed::Receiver(host)) => {
                parts.push(Blamed::Host(host));
            }
            Blamed::Receiver(host) if chosen.contains(&Blamed::Sender(host)) => {}
            end => parts.push(end),
        }
    }
    for &(from, to) in &open {
        match open.contains(&(to, from)) {
            true if from < to => parts.push(Blamed::Pair(from, to)),
            true => {}
            false => parts.push(Blamed::Direction(from, to)),
        }
    }
    parts.sort_unstable();
    parts
}

#[cfg(test)]
mod tests {
    use super::super::pairings::{first, naming};
    use super::*;

    /// Probes hosts of which some parts are bad, and returns the parts that are blamed and the number of rounds.
    fn probe(hosts: usize, all: bool, bad: &[Blamed]) -> (Vec<Blamed>, usize) {
        let mut measured = BTreeMap::new();
        let mut rounds = 0;
        let mut measure = |round: &[Pair], measured: &mut BTreeMap<Pair, bool>| {
            rounds += 1;
            for &(a, b) in round {
                for pair in [(a, b), (b, a)] {
                    measured.insert(pair, bad.iter().any(|part| part.explains(pair)));
                }
            }
        };
        for round in first(hosts, all) {
            measure(&round, &mut measured);
        }
        let mut suspects = vec![false; hosts];
        for ((from, to), _) in measured.iter().filter(|(_, bad)| **bad) {
            (suspects[*from], suspects[*to]) = (true, true);
        }
        loop {
            let met = measured.keys().copied().collect();
            match &naming(&suspects, &met)[..] {
                [] => break,
                round => measure(round, &mut measured),
            }
        }
        (to_blame(&measured), rounds)
    }

    fn parts(hosts: usize) -> Vec<Blamed> {
        let of = |host| [Blamed::Host(host), Blamed::Sender(host), Blamed::Receiver(host)];
        let mut all: Vec<Blamed> = (0..hosts).flat_map(of).collect();
        for a in 0..hosts {
            all.push(Blamed::Pair(a, (a + 1) % hosts));
            all.push(Blamed::Direction(a, (a + 1) % hosts));
            all.push(Blamed::Direction((a + 1) % hosts, a));
        }
        let ordered = |part| match part {
            Blamed::Pair(a, b) => Blamed::Pair(a.min(b), a.max(b)),
            part => part,
        };
        all.into_iter().map(ordered).collect()
    }

    #[test]
    fn one_bad_part_is_named_in_few_rounds() {
        for hosts in (3..=24).chain([63, 64]) {
            for part in parts(hosts) {
                let (named, rounds) = probe(hosts, false, &[part]);
                assert_eq!(named, [part], "{hosts} hosts");
                assert!(rounds <= 5, "{hosts} hosts, {part:?}: {rounds} rounds");
            }
        }
        assert_eq!(probe(8, false, &[]), (vec![], 2));
    }

    #[test]
    fn two_bad_parts_are_named() {
        for hosts in 8..=10 {
            let all = parts(hosts);
            for (nth, a) in all.iter().enumerate() {
                for b in &all[..nth] {
                    let both = [*a, *b];
                    let (named, _) = probe(hosts, false, &both);
                    // One may hold the other, and a direction from a bad sender to a bad receiver is bad for both.
                    let explains = |parts: &[Blamed], pair| parts.iter().any(|p| p.explains(pair));
                    let pairs = (0..hosts).flat_map(|a| (0..hosts).map(move |b| (a, b)));
                    for pair in pairs.filter(|(a, b)| a != b) {
                        assert_eq!(
                            explains(&named, pair),
                            explains(&both, pair),
                            "{hosts} hosts, {both:?}: {named:?} at {pair:?}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn two_hosts_have_a_bad_direction_and_no_bad_end() {
        assert_eq!(probe(2, false, &[Blamed::Sender(1)]).0, [Blamed::Direction(1, 0)]);
        assert_eq!(probe(2, false, &[Blamed::Host(1)]).0, [Blamed::Pair(0, 1)]);
    }
}
