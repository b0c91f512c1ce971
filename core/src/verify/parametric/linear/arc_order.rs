//! The order of events, for every nranks: an access is ordered before another if a few signals lead from one access to
//! the next, each taken in the first round that can still send it.

use super::{Linear, Place, own_block};
use crate::source::Span;
use crate::verify::parametric::access_order::{Access, Ordered, RoundOrder};
use crate::verify::parametric::places::{Relation, relate};
use crate::verify::parametric::rounds::{Answer, Covered as _};
use crate::verify::parametric::signals::SignalLink;
use crate::verify::parametric::terms::{Affine, Facts, N, S, T};

/// The most signals in a row that are tried.
const HOPS: usize = 3;

/// A moment in a rank's run.
#[derive(Clone, Copy, Debug)]
enum RoundPoint {
    /// The caller has written the rank's buffers.
    Enter,
    /// A statement, in a round.
    At(usize, Affine),
    /// The caller may use the rank's buffers again.
    Exit,
}

impl Ordered for Linear {
    fn owned(order: &RoundOrder<'_, Self>, access: Access<'_, Self>, before: bool) -> bool {
        let facts = order.within(&order.program.class.ranks(), access.step, S);
        let (here, owner) = (RoundPoint::At(access.step, S), access.place.owner);
        if before {
            order.leads(&facts, RoundPoint::Enter, here, -owner)
        } else {
            order.leads(&facts, here, RoundPoint::Exit, owner)
        }
    }

    fn in_order(order: &RoundOrder<'_, Self>, [a, b]: [Access<'_, Self>; 2]) -> Answer<bool> {
        let at = order.program.steps[a.step].at;
        let facts = order.within(&order.program.class.ranks(), a.step, S);
        let facts = order.within(&facts, b.step, T);
        let away = a.place.owner - b.place.owner.at(T);
        let (first, second) = (RoundPoint::At(a.step, S), RoundPoint::At(b.step, T));
        let in_order = |case: &Facts| {
            (0..=HOPS).any(|hops| {
                let mut ways = Vec::new();
                order.ways(case, first, second, away, hops, &mut Vec::new(), &mut ways);
                order.ways(case, second, first, -away, hops, &mut Vec::new(), &mut ways);
                if a.step == b.step {
                    // The accesses of one move are one access.
                    arrive(case, away, &[S - T, T - S], &mut ways);
                }
                case.prove_any(&ways)
            })
        };
        Ok(coincide(a.place, b.place, &facts, at)?.iter().all(in_order))
    }
}

/// Returns the cases in which `a` in round s and `b` in round t share memory.
fn coincide(a: &Place, b: &Place, facts: &Facts, at: Span) -> Answer<Vec<Facts>> {
    match relate(&a.region, &b.region, at)? {
        Relation::Apart => Ok(Vec::new()),
        Relation::Meet => Ok(vec![facts.clone()]),
        Relation::SameBlock => {
            let between = own_block(a) - own_block(b).at(T);
            let multiples = facts
                .multiples(between)
                .covered(at, "this block runs around the ring more than once")?;
            Ok(multiples.into_iter().map(|j| facts.multiple(between, j)).collect())
        }
    }
}

impl RoundOrder<'_, Linear> {
    fn within(&self, facts: &Facts, step: usize, round: Affine) -> Facts {
        let (first, last) = self.program.rounds(step);
        facts.within(round, first, last)
    }

    /// Whether `from` is always before `to`, whose rank is `away` ranks further.
    fn leads(&self, facts: &Facts, from: RoundPoint, to: RoundPoint, away: Affine) -> bool {
        (0..=HOPS).any(|hops| {
            let mut ways = Vec::new();
            self.ways(facts, from, to, away, hops, &mut Vec::new(), &mut ways);
            facts.prove_any(&ways)
        })
    }

    /// Adds all ways from `from` to `to` of at most `hops` signals, each with the conditions under which it leads
    /// there.
    #[expect(clippy::too_many_arguments, reason = "the state of one search")]
    fn ways(
        &self,
        facts: &Facts,
        from: RoundPoint,
        to: RoundPoint,
        away: Affine,
        hops: usize,
        so_far: &mut Vec<Affine>,
        ways: &mut Vec<Vec<Affine>>,
    ) {
        if let Some(more) = self.follows(from, to) {
            let mut conditions = so_far.clone();
            conditions.extend(more);
            arrive(facts, away, &conditions, ways);
        }
        if hops == 0 {
            return;
        }
        for link in self.links {
            for round in self.rounds_of(link, from, away) {
                let post = RoundPoint::At(link.post, round);
                let (first, last) = self.program.rounds(link.post);
                let (Some(sent), true) =
                    (self.follows(from, post), self.may_precede(link.wait, to))
                else {
                    continue;
                };
                let kept = so_far.len();
                so_far.extend(sent);
                so_far.extend([round - first, last - round]);
                let possible = so_far.iter().fold(facts.clone(), |facts, term| facts.and(*term));
                if !possible.is_empty() {
                    for more in self.relayed(link, round, away) {
                        let end = round + more;
                        let rest = away - link.offset.at(round) - more * link.offset.sign();
                        so_far.extend([more, last - end]);
                        let next = RoundPoint::At(link.wait, end);
                        self.ways(facts, next, to, rest, hops - 1, so_far, ways);
                        so_far.truncate(so_far.len() - 2);
                    }
                }
                so_far.truncate(kept);
            }
        }
    }

    /// Returns the rounds in which a signal is worth following: the first possible round; and, where the peer changes
    /// from round to round, the round at hand and the round in which the signal goes to the target rank.
    fn rounds_of(&self, link: &SignalLink<Affine>, from: RoundPoint, away: Affine) -> Vec<Affine> {
        let part = self.program.steps[link.post].part;
        let mut rounds = vec![self.program.parts[part].rounds.0];
        if let RoundPoint::At(step, round) = from {
            if self.program.steps[step].part == part {
                rounds = vec![round + Affine::int(i64::from(step >= link.post))];
            } else if link.offset.slope() != 0 {
                rounds.push(round);
            }
        }
        let slope = link.offset.slope();
        if slope.abs() == 1 {
            // offset(round) = away, modulo nranks.
            let round = (away - link.offset.at(Affine::ZERO)) * slope;
            rounds.extend((-1..=1).map(|j| round + N * j));
        }
        rounds
    }

    /// Returns the numbers of further rounds for which to follow a signal that each next rank hears before it sends its
    /// own in the next round: 0, up to the end of the loop, or up to the target rank.
    fn relayed(&self, link: &SignalLink<Affine>, round: Affine, away: Affine) -> Vec<Affine> {
        let mut more = vec![Affine::ZERO];
        let part = self.program.steps[link.post].part;
        let next = matches!(link.offset.constant(), Some(1 | -1));
        if next && self.program.steps[link.wait].part == part {
            let (first, last) = self.program.parts[part].rounds;
            if first != last {
                more.push(last - round);
                let there = away * link.offset.sign() - Affine::int(1);
                more.extend((-1..=1).map(|j| there + N * j));
            }
        }
        more
    }

    fn may_precede(&self, step: usize, to: RoundPoint) -> bool {
        match to {
            RoundPoint::Enter => false,
            RoundPoint::Exit => true,
            RoundPoint::At(other, _) => self.part_order(step, other).is_some(),
        }
    }

    /// Compares the parts of two statements: `false` if the part of `step` is before that of `other`, `true` if they
    /// are one part.
    fn part_order(&self, step: usize, other: usize) -> Option<bool> {
        let (p, q) = (self.program.steps[step].part, self.program.steps[other].part);
        let (a, b) = (&self.program.parts[p], &self.program.parts[q]);
        let earlier =
            a.section < b.section || (a.section == b.section && a.stream == b.stream && p < q);
        (earlier || p == q).then_some(p == q)
    }

    /// Returns the conditions under which one rank is at `from` before it is at `to`; `None` if it never is.
    fn follows(&self, from: RoundPoint, to: RoundPoint) -> Option<Vec<Affine>> {
        match (from, to) {
            (RoundPoint::Enter, _) | (_, RoundPoint::Exit) => Some(Vec::new()),
            (RoundPoint::Exit, _) | (_, RoundPoint::Enter) => None,
            (RoundPoint::At(a, s), RoundPoint::At(b, t)) => {
                let same_part = self.part_order(a, b)?;
                let wait = Affine::int(i64::from(a >= b));
                Some(same_part.then_some(t - s - wait).into_iter().collect())
            }
        }
    }
}

/// Adds the ways that end at the target rank: `away` is a multiple of nranks.
fn arrive(facts: &Facts, away: Affine, conditions: &[Affine], ways: &mut Vec<Vec<Affine>>) {
    for j in facts.multiples(away).unwrap_or_default() {
        let rest = away - N * j;
        ways.push(conditions.iter().copied().chain([rest, -rest]).collect());
    }
}
