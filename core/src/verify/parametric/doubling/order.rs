//! The order of events in loops over the bits of nranks. Two accesses to one rank's memory are ordered by way of this
//! rank: a signal tells it that the one is done, and a signal of its own lets the other begin.

use std::cmp::Ordering;

use super::program::{Action, Doubling, Move, SeatPlace, Stretch};
use super::signals::SignalLink;
use super::terms::RoundSeat;
use crate::schedule::Buffer;
use crate::verify::parametric::rounds::NotCovered;

/// An access of a move to the memory of `owner`.
#[derive(Clone, Copy, Debug)]
struct SeatAccess {
    step: usize,
    writes: bool,
    owner: RoundSeat,
    buffer: Buffer,
    stretch: Stretch,
}

/// The moves with their places as they lie in memory; a copy onto itself in place is left out.
pub(super) fn effects(
    program: &Doubling,
    in_place: bool,
) -> Result<Vec<(usize, Move)>, NotCovered> {
    let mut effects = Vec::new();
    for (i, step) in program.steps.iter().enumerate() {
        let Action::Move(step) = &step.action else { continue };
        if !in_place {
            well_formed(program, i, step)?;
        }
        let located = |places: &[SeatPlace]| -> Vec<SeatPlace> {
            places.iter().map(|place| program.located(*place, in_place)).collect()
        };
        let (sources, destinations) = (located(&step.sources), located(&step.destinations));
        if in_place && !step.reduces && sources == destinations {
            continue;
        }
        for (k, destination) in destinations.iter().enumerate() {
            for other in sources.iter().chain(&destinations[..k]) {
                let a = access(i, destination, true);
                // Two seats may be one rank, so the owners do not matter.
                if destination.buffer == other.buffer
                    && (destination.owner == other.owner
                        && !apart(&a, &access(i, other, false), Ordering::Equal)
                        || destination.owner != other.owner
                            && destination.owner != RoundSeat::Own
                            && other.owner != RoundSeat::Own)
                {
                    let what = "two operands of this move may be the same memory";
                    return program.fault(i, what);
                }
            }
        }
        effects.push((i, Move { sources, destinations, reduces: step.reduces }));
    }
    Ok(effects)
}

/// Checks the rules of a move.
fn well_formed(program: &Doubling, step: usize, of: &Move) -> Result<(), NotCovered> {
    let all = || of.sources.iter().chain(&of.destinations);
    if of.destinations.iter().any(|place| place.buffer == Buffer::Input) {
        return program.fault(step, "an input is written");
    }
    if !(1..=7).contains(&of.sources.len()) || !(1..=8).contains(&of.destinations.len()) {
        return program
            .fault(step, "a reduce of no sources or of more than 7, or a copy to more than 8");
    }
    if !all().any(|place| place.owner == RoundSeat::Own) {
        return program.fault(step, "no operand of this move is always the rank's own");
    }
    // One block, or the same blocks of both: the operands are equally long for every count.
    let blocks = |place: &SeatPlace| {
        let one = matches!(place.blocks, super::program::Blocks::One(_))
            || !program.has_blocks(place.buffer);
        (!one).then_some(place.blocks)
    };
    if all().any(|place| blocks(place) != blocks(&of.destinations[0])) {
        return program.fault(step, "two operands differ in length for some count or nranks");
    }
    Ok(())
}

fn access(step: usize, place: &SeatPlace, writes: bool) -> SeatAccess {
    let (owner, buffer, stretch) = (place.owner, place.buffer, place.stretch());
    SeatAccess { step, writes, owner, buffer, stretch }
}

/// Whether two accesses to the memory of one rank never touch the same place; `rounds` compares the round of the first
/// access with that of the second. The blocks known in a round are those that were known in each earlier
/// round and that it added; so the blocks that a round adds are apart from those known up to it, and from those of
/// any other round.
fn apart(a: &SeatAccess, b: &SeatAccess, rounds: Ordering) -> bool {
    use Stretch::{Known, Next, Other, Own};
    a.buffer != b.buffer
        || match (a.stretch, b.stretch) {
            (Own, Other | Next) | (Other | Next, Own) => true,
            (Known, Other | Next) => rounds.is_le(),
            (Other | Next, Known) => rounds.is_ge(),
            (Other | Next, Other | Next) => rounds.is_ne(),
            _ => false,
        }
}

/// The order of events of a program.
pub(super) struct DoublingOrder<'a> {
    pub(super) program: &'a Doubling,
    pub(super) links: &'a [SignalLink],
}

impl DoublingOrder<'_> {
    /// Proves that two accesses to one memory are ordered if one of them is a write, and that no rank touches another
    /// rank's memory before that rank has begun its run or after it has ended it. So accesses of two runs are ordered
    /// too.
    pub(super) fn races(&self, effects: &[(usize, Move)]) -> Result<(), NotCovered> {
        let mut all = Vec::new();
        for (step, of) in effects {
            all.extend(of.sources.iter().map(|place| access(*step, place, false)));
            all.extend(of.destinations.iter().map(|place| access(*step, place, true)));
        }
        for access in &all {
            if self.opens(access).next().is_none() {
                let what = "its owner may not have entered yet when this touches it";
                return self.program.fault(access.step, what);
            }
            if self.closes(access).next().is_none() {
                let what = "its owner may have left already when this touches it";
                return self.program.fault(access.step, what);
            }
        }
        for (i, a) in all.iter().enumerate() {
            for b in &all[i..] {
                if a.writes || b.writes {
                    self.pair(a, b)?;
                }
            }
        }
        Ok(())
    }

    fn pair(&self, a: &SeatAccess, b: &SeatAccess) -> Result<(), NotCovered> {
        let both = self.program.in_rounds(a.step) && self.program.in_rounds(b.step);
        let cases: &[Ordering] = if both {
            &[Ordering::Less, Ordering::Equal, Ordering::Greater]
        } else {
            &[Ordering::Equal]
        };
        for &rounds in cases {
            // In one round, the ranks at one seat are one rank, which keeps its own order.
            let one_rank = a.owner == b.owner && (a.owner == RoundSeat::Own || rounds.is_eq());
            if one_rank
                || apart(a, b, rounds)
                || self.before(a, b, rounds)
                || self.before(b, a, rounds.reverse())
            {
                continue;
            }
            let what = "nothing orders this with an access of another rank to the same memory";
            return self.program.fault(a.step, what);
        }
        Ok(())
    }

    /// Whether signals order `a` before `b`; `rounds` compares their rounds.
    fn before(&self, a: &SeatAccess, b: &SeatAccess, rounds: Ordering) -> bool {
        self.closes(a).any(|done| self.opens(b).any(|free| self.follows(done, free, rounds)))
    }

    /// The statements of the owner, in the round of the access, that wait until the access is done.
    fn closes(&self, access: &SeatAccess) -> impl Iterator<Item = usize> {
        let (step, owner) = (access.step, access.owner);
        let own = (owner == RoundSeat::Own).then_some(step);
        let told = self.links.iter().filter(move |link| {
            owner != RoundSeat::Own
                && link.to == owner
                && self.follows(step, link.post, Ordering::Equal)
        });
        own.into_iter().chain(told.map(|link| link.wait))
    }

    /// The statements of the owner, in the round of the access, that are done before the access begins.
    fn opens(&self, access: &SeatAccess) -> impl Iterator<Item = usize> {
        let (step, owner) = (access.step, access.owner);
        let own = (owner == RoundSeat::Own).then_some(step);
        let told = self.links.iter().filter(move |link| {
            owner != RoundSeat::Own
                && link.to.back() == owner
                && self.follows(link.wait, step, Ordering::Equal)
        });
        own.into_iter().chain(told.map(|link| link.post))
    }

    /// Whether a rank comes to statement `a` before it comes to statement `b`; `rounds` compares their rounds.
    fn follows(&self, a: usize, b: usize, rounds: Ordering) -> bool {
        let (p, q) = (self.program.steps[a].part, self.program.steps[b].part);
        p < q || p == q && (rounds.is_lt() || rounds.is_eq() && a < b)
    }
}
