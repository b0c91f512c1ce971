//! Rounds of pairs of hosts: all pairs of a round are measured at once, and each host is in one of them at most.

use std::collections::BTreeSet;

/// Two hosts, by number: the ends of a pair, or the sender and the receiver of a direction.
pub(super) type Pair = (usize, usize);

/// The most hosts for which rounds of all pairs are as few as the rounds of a ring and those that name an end.
const FEW: usize = 5;
/// The healthy hosts that a suspect is to meet: a slow end is slow with each of them.
const MEETS: usize = 2;

/// Returns the first rounds of a probe: those of all pairs if they are asked for, or are as few as the others.
pub(super) fn first(hosts: usize, all: bool) -> Vec<Vec<Pair>> {
    if all || hosts <= FEW { all_pairs(hosts) } else { ring(hosts) }
}

/// Returns the rounds in which every two hosts meet once, by the circle method: one round less than there are hosts, and
/// for an odd number one more, as one host rests in each.
fn all_pairs(hosts: usize) -> Vec<Vec<Pair>> {
    let even = hosts + hosts % 2;
    let around = even - 1;
    let pair = |round: usize, nth: usize| match nth {
        0 => (round, even - 1),
        _ => ((round + nth) % around, (round + around - nth) % around),
    };
    let round = |round| (0..even / 2).map(move |nth| pair(round, nth));
    (0..around).map(|of| round(of).filter(|(a, b)| *a.max(b) < hosts).collect()).collect()
}

/// Returns the edges of the ring of all hosts as matchings: two, and for an odd number a third for the last edge.
fn ring(hosts: usize) -> Vec<Vec<Pair>> {
    let edge = |a: usize| (a, (a + 1) % hosts);
    let even = hosts - hosts % 2;
    let mut rounds: Vec<Vec<Pair>> =
        (0..2).map(|first| (first..even).step_by(2).map(edge).collect()).collect();
    if even < hosts {
        rounds.push(vec![edge(even)]);
    }
    rounds
}

/// Returns a round in which suspects meet healthy hosts that they have not met, each in the order of the ring; none where
/// each suspect has met two healthy hosts, or there is no other.
pub(super) fn naming(suspects: &[bool], met: &BTreeSet<Pair>) -> Vec<Pair> {
    let hosts = suspects.len();
    let have_met = |a: usize, b: usize| met.contains(&(a, b)) || met.contains(&(b, a));
    let healthy = |a: usize| (0..hosts).filter(move |b| !suspects[*b] && have_met(a, *b)).count();
    let mut asking: Vec<usize> = (0..hosts).filter(|a| suspects[*a]).collect();
    asking.retain(|a| healthy(*a) < MEETS);
    asking.sort_by_key(|a| healthy(*a));
    let mut free: Vec<bool> = suspects.iter().map(|suspect| !suspect).collect();
    let mut round = Vec::new();
    for a in asking {
        let partner = (1..hosts).map(|distance| (a + distance) % hosts);
        if let Some(b) = { partner }.find(|b| free[*b] && !have_met(a, *b)) {
            free[b] = false;
            round.push((a, b));
        }
    }
    round
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_matching(round: &[Pair]) -> bool {
        let ends: BTreeSet<usize> = round.iter().flat_map(|(a, b)| [*a, *b]).collect();
        ends.len() == 2 * round.len()
    }

    #[test]
    fn every_pair_meets_once_in_disjoint_rounds() {
        for hosts in 2..=64 {
            let rounds = all_pairs(hosts);
            assert_eq!(rounds.len(), hosts - 1 + hosts % 2, "{hosts}");
            assert!(rounds.iter().all(|round| is_matching(round)), "{hosts}");
            let met = rounds.iter().flatten().map(|(a, b)| (*a.min(b), *a.max(b)));
            let met: Vec<Pair> = met.collect();
            let once: BTreeSet<&Pair> = met.iter().collect();
            assert_eq!((met.len(), once.len()), (hosts * (hosts - 1) / 2, met.len()), "{hosts}");
        }
    }

    #[test]
    fn a_ring_is_two_matchings_and_touches_every_host_twice() {
        for hosts in 3..=64 {
            let rounds = ring(hosts);
            assert_eq!(rounds.len(), 2 + hosts % 2);
            assert!(rounds.iter().all(|round| is_matching(round)), "{hosts}");
            for host in 0..hosts {
                let meets = rounds.iter().flatten().filter(|(a, b)| [*a, *b].contains(&host));
                assert_eq!(meets.count(), 2, "{hosts} {host}");
            }
        }
    }
}
