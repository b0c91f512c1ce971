//! The order of events, for every nranks: an access is ordered before another if a few signals lead from one access to
//! the next, each taken in the first round that can still send it.

use super::linear::{Affine, Facts, N, S, T};
use super::memory::{Effect, coincide};
use super::rounds::{NotCovered, Owned, RoundPart, Rounds};
use super::signals::SignalLink;
use crate::schedule::Buffer;

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

/// The order of events of a program.
pub(super) struct RoundOrder<'a> {
    pub(super) program: &'a Rounds,
    pub(super) links: &'a [SignalLink],
}

/// One access of a move.
#[derive(Clone, Copy)]
struct Access<'e> {
    step: usize,
    writes: bool,
    place: &'e Owned,
}

fn accesses(effects: &[Effect]) -> Vec<Access<'_>> {
    let mut all = Vec::new();
    for Effect { step, reads, writes } in effects {
        let access = |writes| move |place| Access { step: *step, writes, place };
        all.extend(reads.iter().map(access(false)));
        all.extend(writes.iter().map(access(true)));
    }
    all
}

impl RoundOrder<'_> {
    /// Proves that no rank touches the buffers of another rank before their caller hands them over, or after it takes
    /// them back.
    pub(super) fn caller(&self, effects: &[Effect], facts: &Facts) -> Result<(), NotCovered> {
        for access in accesses(effects) {
            if access.place.owner == Affine::ZERO
                || matches!(access.place.region.buffer, Buffer::Scratch(_))
            {
                continue;
            }
            let facts = self.rounds(facts, access.step, S);
            let (here, owner) = (RoundPoint::At(access.step, S), access.place.owner);
            if !self.leads(&facts, RoundPoint::Enter, here, -owner) {
                let what = "its owner may not have entered yet when this touches it";
                return Err(NotCovered::new(self.program.steps[access.step].at, what));
            }
            if !self.leads(&facts, here, RoundPoint::Exit, owner) {
                let what = "its owner may have left already when this touches it";
                return Err(NotCovered::new(self.program.steps[access.step].at, what));
            }
        }
        Ok(())
    }

    /// Proves that two accesses to one memory are ordered if one of them is a write. With `twice`, the program is two
    /// runs of `twice` statements each, and only scratch is checked, from the first run to the second.
    pub(super) fn races(
        &self,
        effects: &[Effect],
        facts: &Facts,
        twice: Option<usize>,
    ) -> Result<(), NotCovered> {
        let all = accesses(effects);
        for (i, a) in all.iter().enumerate() {
            for b in &all[i..] {
                let between_runs = |run: usize| {
                    a.step < run
                        && run <= b.step
                        && matches!(a.place.region.buffer, Buffer::Scratch(_))
                };
                if (a.writes || b.writes) && twice.is_none_or(between_runs) {
                    self.pair(*a, *b, facts)?;
                }
            }
        }
        Ok(())
    }

    fn pair(&self, a: Access<'_>, b: Access<'_>, facts: &Facts) -> Result<(), NotCovered> {
        let at = self.program.steps[a.step].at;
        let facts = self.rounds(&self.rounds(facts, a.step, S), b.step, T);
        let away = a.place.owner - b.place.owner.at(T);
        let (first, second) = (RoundPoint::At(a.step, S), RoundPoint::At(b.step, T));
        for case in coincide(a.place, b.place, &facts, at)? {
            let ordered = (0..=HOPS).any(|hops| {
                let mut ways = Vec::new();
                self.ways(&case, first, second, away, hops, &mut Vec::new(), &mut ways);
                self.ways(&case, second, first, -away, hops, &mut Vec::new(), &mut ways);
                if a.step == b.step {
                    // The accesses of one move are one access.
                    arrive(&case, away, &[S - T, T - S], &mut ways);
                }
                case.prove_any(&ways)
            });
            if !ordered {
                let what = "nothing orders this with an access of another rank to the same memory";
                return Err(NotCovered::new(at, what));
            }
        }
        Ok(())
    }

    fn rounds(&self, facts: &Facts, step: usize, round: Affine) -> Facts {
        let part = &self.program.parts[self.program.steps[step].part];
        facts.within(round, part.first, part.last)
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
                let part = &self.program.parts[self.program.steps[link.post].part];
                let (Some(sent), true) =
                    (self.follows(from, post), self.may_precede(link.wait, to))
                else {
                    continue;
                };
                let kept = so_far.len();
                so_far.extend(sent);
                so_far.extend([round - part.first, part.last - round]);
                let possible = so_far.iter().fold(facts.clone(), |facts, term| facts.and(*term));
                if !possible.is_empty() {
                    for more in self.relayed(link, round, away) {
                        let end = round + more;
                        let rest = away - link.offset.at(round) - more * link.offset.sign();
                        so_far.extend([more, part.last - end]);
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
    fn rounds_of(&self, link: &SignalLink, from: RoundPoint, away: Affine) -> Vec<Affine> {
        let part = self.program.steps[link.post].part;
        let mut rounds = vec![self.program.parts[part].first];
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
    fn relayed(&self, link: &SignalLink, round: Affine, away: Affine) -> Vec<Affine> {
        let mut more = vec![Affine::ZERO];
        let part = self.program.steps[link.post].part;
        let next = matches!(link.offset.constant(), Some(1 | -1));
        if next && self.program.steps[link.wait].part == part {
            let RoundPart { first, last, .. } = self.program.parts[part];
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
