//! The order of events in loops over the bits of nranks. Two accesses to one rank's memory are ordered by way of this
//! rank: a signal tells it that the one is done, and a signal of its own lets the other begin.

use std::cmp::Ordering;

use super::numbers::RoundSeat;
use super::{Blocks, Doubling, SeatPlace, Shape};
use crate::verify::parametric::access_order::{Access, Ordered, RoundOrder};
use crate::verify::parametric::rounds::{Answer, Naming as _};

/// A set of ranks, or of their blocks, as one rank sees it in round k. Two families of programs share the names: where
/// partners are `rank ^ 2^k`, the ranks known in round k are the aligned group of 2^k ranks; where peers are
/// `rank ± 2^k`, they are the arc of 2^k ranks from the rank on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RankSet {
    /// Any other set: nothing is known of it.
    Unknown,
    /// The rank alone.
    Own,
    /// Those known in round k: 2^k ranks, the rank itself among them.
    Known,
    /// The partner, or the rank ahead: one of those that round k adds.
    Other,
    /// Those that round k adds, without those known: as many as are known, or as many as are lacking.
    Next,
    /// Those known in round k and those that it adds: those known in the next round, or all.
    Doubled,
    All,
}

use RankSet::{All, Known, Next, Other, Own, Unknown};

/// Returns the blocks of a place as their owner sees them.
pub(super) fn set_of(place: &SeatPlace) -> RankSet {
    let Some(Blocks { shape, seat }) = place.region.block else { return All };
    let (one, several) = match seat.seen(place.owner) {
        Some(RoundSeat::Own) => (Own, Known),
        Some(RoundSeat::Partner | RoundSeat::Ahead) => (Other, Next),
        _ => (Unknown, Unknown),
    };
    if shape == Shape::One { one } else { several }
}

/// Whether two places of one rank's buffer never share a block; `rounds` compares the round of the first with that of
/// the second. The blocks known in a round are those that were known in each earlier round and that it added; so the
/// blocks that a round adds are apart from those known up to it, and from those of any other round.
pub(super) fn apart(a: &SeatPlace, b: &SeatPlace, rounds: Ordering) -> bool {
    match (set_of(a), set_of(b)) {
        (Own, Other | Next) | (Other | Next, Own) => true,
        (Known, Other | Next) => rounds.is_le(),
        (Other | Next, Known) => rounds.is_ge(),
        (Other | Next, Other | Next) => rounds.is_ne(),
        _ => false,
    }
}

impl Ordered for Doubling {
    fn owned(order: &RoundOrder<'_, Self>, access: Access<'_, Self>, before: bool) -> bool {
        order.at_owner(access, before).next().is_some()
    }

    fn in_order(order: &RoundOrder<'_, Self>, [a, b]: [Access<'_, Self>; 2]) -> Answer<bool> {
        let both = order.program.rounds(a.step) && order.program.rounds(b.step);
        let cases = [Ordering::Equal, Ordering::Less, Ordering::Greater];
        let (x, y) = (a.place, b.place);
        Ok(cases.into_iter().take(if both { 3 } else { 1 }).all(|rounds| {
            // In one round, the ranks at one seat are one rank, which keeps its own order.
            let one_rank = x.owner == y.owner && (Self::is_own(x.owner) || rounds.is_eq());
            one_rank
                || x.region.buffer != y.region.buffer
                || apart(x, y, rounds)
                || order.before(a, b, rounds)
                || order.before(b, a, rounds.reverse())
        }))
    }
}

impl RoundOrder<'_, Doubling> {
    /// Whether signals order `a` before `b`; `rounds` compares their rounds.
    fn before(&self, a: Access<'_, Doubling>, b: Access<'_, Doubling>, rounds: Ordering) -> bool {
        self.at_owner(a, false)
            .any(|done| self.at_owner(b, true).any(|free| self.follows(done, free, rounds)))
    }

    /// The statements of the owner, in the round of the access, that are done before the access begins, or else that
    /// wait until it is done.
    fn at_owner(&self, access: Access<'_, Doubling>, before: bool) -> impl Iterator<Item = usize> {
        let (step, owner) = (access.step, access.place.owner);
        let own = Doubling::is_own(owner).then_some(step);
        let told = self.links.iter().filter_map(move |link| {
            let (seat, [first, second], theirs) = if before {
                (Doubling::back(link.offset), [link.wait, step], link.post)
            } else {
                (link.offset, [step, link.post], link.wait)
            };
            (seat == owner && self.follows(first, second, Ordering::Equal)).then_some(theirs)
        });
        own.into_iter().chain(told)
    }

    /// Whether a rank comes to statement `a` before it comes to statement `b`; `rounds` compares their rounds.
    fn follows(&self, a: usize, b: usize, rounds: Ordering) -> bool {
        let (p, q) = (self.program.steps[a].part, self.program.steps[b].part);
        p < q || p == q && (rounds.is_lt() || rounds.is_eq() && a < b)
    }
}
