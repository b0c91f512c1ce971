//! Numbers in a loop over the bits k of nranks: sums of a few known quantities, with integer factors.

use std::collections::BTreeMap;

/// A rank, as the rank that runs the statement names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum RoundSeat {
    /// The rank itself.
    Own,
    /// `rank ^ 2^k`, for a power of two nranks.
    Partner,
    /// `(rank + 2^k) % nranks`
    Ahead,
    /// `(rank - 2^k) % nranks`
    Behind,
}

impl RoundSeat {
    /// Returns the seat at which that rank sees the rank that runs the statement.
    pub(super) const fn back(self) -> Self {
        match self {
            Self::Ahead => Self::Behind,
            Self::Behind => Self::Ahead,
            seat => seat,
        }
    }
}

/// A number that is not the same for all ranks, rank counts and rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Quantity {
    Nranks,
    /// The number of rounds: `ceil_log2(nranks)`.
    Rounds,
    /// The round, k.
    Round,
    /// `2^k`, which is below nranks in every round.
    Distance,
    /// `min(2^k, nranks - 2^k)`, where nranks may be any number.
    Lacking,
    /// The number of a rank.
    Rank(RoundSeat),
    /// The number of a rank's group: `rank / 2^k`.
    Group(RoundSeat),
    /// `rank % 2^k`, which is the partner's too.
    Low,
    /// `min(seat + lacking, nranks)`: the end of as many blocks, or of all blocks.
    End(RoundSeat),
}

/// A sum of quantities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Term {
    constant: i64,
    /// The factors, none of which is 0.
    factors: BTreeMap<Quantity, i64>,
}

/// The largest factor and constant.
const MOST: i64 = 1 << 20;

impl Term {
    pub(super) fn int(constant: i64) -> Self {
        Self { constant, factors: BTreeMap::new() }
    }

    pub(super) fn of(quantity: Quantity) -> Self {
        Self { constant: 0, factors: [(quantity, 1)].into() }
    }

    pub(super) fn rank(seat: RoundSeat) -> Self {
        Self::of(Quantity::Rank(seat))
    }

    /// Returns the value of a term without quantities.
    pub(super) fn constant(&self) -> Option<i64> {
        self.factors.is_empty().then_some(self.constant)
    }

    /// Returns the sum of this term and `by` times the other; `None` where a factor grows too large.
    pub(super) fn plus(&self, other: &Self, by: i64) -> Option<Self> {
        let scaled = |factor: i64| factor.checked_mul(by);
        let tame = |sum: Option<i64>| sum.filter(|sum| sum.abs() <= MOST);
        let mut sum = self.clone();
        sum.constant = tame(sum.constant.checked_add(scaled(other.constant)?))?;
        for (quantity, factor) in &other.factors {
            let known = sum.factors.remove(quantity).unwrap_or(0);
            let factor = tame(known.checked_add(scaled(*factor)?))?;
            if factor != 0 {
                sum.factors.insert(*quantity, factor);
            }
        }
        Some(sum)
    }

    /// Whether this term is the sum of `parts`, each with a factor of its own.
    pub(super) fn is(&self, parts: &[(Quantity, i64)]) -> bool {
        self.constant == 0
            && self.factors.len() == parts.len()
            && parts.iter().all(|(quantity, factor)| self.factors.get(quantity) == Some(factor))
    }

    /// Returns the seat whose rank this number is.
    pub(super) fn seat(&self) -> Option<RoundSeat> {
        match self.factors.iter().next() {
            Some((Quantity::Rank(seat), 1)) if self.is(&[(Quantity::Rank(*seat), 1)]) => {
                Some(*seat)
            }
            _ => None,
        }
    }

    /// Returns the product of the distance and this number of a group: the first rank of the group.
    pub(super) fn of_group(&self) -> Option<Self> {
        match self.factors.iter().next() {
            Some((Quantity::Group(seat), 1)) if self.is(&[(Quantity::Group(*seat), 1)]) => {
                Self::rank(*seat).plus(&Self::of(Quantity::Low), -1)
            }
            _ => None,
        }
    }

    /// Returns the residue of this term modulo nranks.
    pub(super) fn residue(&self) -> Option<Self> {
        let mut term = self.clone();
        term.factors.remove(&Quantity::Nranks);
        let own = Quantity::Rank(RoundSeat::Own);
        let seat = if term.is(&[(own, 1), (Quantity::Distance, 1)]) {
            RoundSeat::Ahead
        } else if term.is(&[(own, 1), (Quantity::Distance, -1)]) {
            RoundSeat::Behind
        } else {
            term.seat()?
        };
        Some(Self::rank(seat))
    }

    /// Returns this term with bit k inverted, for a power of two nranks: of a rank, or of the start of its group.
    pub(super) fn flipped(&self) -> Option<Self> {
        let low = Self::of(Quantity::Low);
        let start = self.plus(&low, 1)?;
        let (rank, by) = match (self.seat(), start.seat()) {
            (Some(seat), _) => (seat, 0),
            (_, Some(seat)) => (seat, -1),
            _ => return None,
        };
        let other = match rank {
            RoundSeat::Own => RoundSeat::Partner,
            RoundSeat::Partner => RoundSeat::Own,
            _ => return None,
        };
        Self::rank(other).plus(&low, by)
    }
}
