//! Sums of known quantities with integer factors, among them the linear terms in `nranks` and two loop variables, and
//! the consequences of inequalities between those. This is a module of its own because every claim of the linear class
//! ends as one question to it.

use std::ops::{Add, Mul, Neg, Sub};

/// A constant, and the factors of K - 1 quantities.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Combination<const K: usize>([i64; K]);

/// `c[0] + c[1] * nranks + c[2] * s + c[3] * t`: s is the round at hand, t the round of another statement.
pub(super) type Affine = Combination<4>;

/// `nranks`
pub(super) const N: Affine = Affine::unit(1);
/// The round at hand.
pub(super) const S: Affine = Affine::unit(2);
/// The round of the other statement.
pub(super) const T: Affine = Affine::unit(3);

/// The multiples of `nranks` that are tried for a difference: `-REACH..=REACH`.
const REACH: i64 = 4;

/// The most inequalities; beyond this number no conclusion is drawn.
const MOST: usize = 400;

impl<const K: usize> Combination<K> {
    pub(super) const ZERO: Self = Self([0; K]);

    pub(super) const fn int(value: i64) -> Self {
        Self::ZERO.with(0, value)
    }

    /// Returns the quantity of that index.
    pub(super) const fn unit(index: usize) -> Self {
        Self::ZERO.with(index, 1)
    }

    /// Returns this sum with another factor of the quantity of that index.
    pub(super) const fn with(mut self, index: usize, factor: i64) -> Self {
        self.0[index] = factor;
        self
    }

    /// Returns the value of a term that is equal for every nranks and round.
    pub(super) fn constant(self) -> Option<i64> {
        (self == Self::int(self.0[0])).then_some(self.0[0])
    }

    /// Whether the constant and all factors are at most `most`, so that all products here fit.
    pub(super) fn is_below(self, most: i64) -> bool {
        self.0.iter().all(|c| c.abs() <= most)
    }
}

impl Affine {
    /// Whether the term is a constant or has a slope that is small enough for all products here to fit.
    pub(super) fn is_tame(self) -> bool {
        self.0[0].abs() <= 1 << 20 && self.with(0, 0).is_below(8)
    }

    /// Returns the coefficient of s.
    pub(super) const fn slope(self) -> i64 {
        self.0[2]
    }

    /// Returns the coefficient of t.
    pub(super) const fn other_slope(self) -> i64 {
        self.0[3]
    }

    /// Returns the sign of a constant, and 0 for any other term.
    pub(super) fn sign(self) -> i64 {
        self.constant().map_or(0, i64::signum)
    }

    /// Returns the term without its multiple of nranks, which has the same residue.
    pub(super) const fn residue(self) -> Self {
        self.with(1, 0)
    }

    /// Returns the term with `round` in place of s.
    pub(super) fn at(self, round: Self) -> Self {
        self.with(2, 0) + round * self.0[2]
    }
}

impl<const K: usize> Add for Combination<K> {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] + other.0[i]))
    }
}

impl<const K: usize> Neg for Combination<K> {
    type Output = Self;

    fn neg(self) -> Self {
        self * -1
    }
}

impl<const K: usize> Sub for Combination<K> {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl<const K: usize> Mul<i64> for Combination<K> {
    type Output = Self;

    fn mul(self, factor: i64) -> Self {
        Self(self.0.map(|c| c * factor))
    }
}

/// Terms that are known to be at least 0.
#[derive(Clone, Debug)]
pub(super) struct Facts(Vec<Affine>);

/// The verdict of the facts on a list of conditions.
pub(super) enum LinearVerdict {
    /// All conditions hold.
    Holds,
    /// The conditions never hold together.
    Fails,
    /// The verdict depends on the sign of this term.
    Depends(Affine),
}

impl Facts {
    /// Returns the fact `nranks >= from`.
    pub(super) fn ranks(from: u32) -> Self {
        Self(vec![N - Affine::int(from.into())])
    }

    /// Returns these facts and `term >= 0`.
    pub(super) fn and(&self, term: Affine) -> Self {
        let mut facts = self.clone();
        facts.0.push(term);
        facts
    }

    /// Returns these facts and `term < 0`.
    pub(super) fn but_not(&self, term: Affine) -> Self {
        self.and(-term - Affine::int(1))
    }

    /// Returns these facts and `lo <= term <= hi`.
    pub(super) fn within(&self, term: Affine, lo: Affine, hi: Affine) -> Self {
        self.and(term - lo).and(hi - term)
    }

    /// Returns these facts and `term == j * nranks`.
    pub(super) fn multiple(&self, term: Affine, j: i64) -> Self {
        let rest = term - N * j;
        self.and(rest).and(-rest)
    }

    /// Whether no integers satisfy the facts. `false` proves nothing: the elimination is over the rationals, with
    /// bounds rounded to integers, and gives up when it grows.
    pub(super) fn is_empty(&self) -> bool {
        let row = |term: &Affine| tighten(term.0.map(i128::from));
        let mut rows: Vec<[i128; 4]> = self.0.iter().map(row).collect();
        for var in [3, 2, 1] {
            let Some(rest) = eliminate(rows, var) else { return false };
            rows = rest;
        }
        rows.iter().any(|row| row[0] < 0)
    }

    /// Whether `term >= 0` follows from the facts.
    pub(super) fn prove(&self, term: Affine) -> bool {
        self.but_not(term).is_empty()
    }

    /// Whether `term == 0` follows from the facts.
    pub(super) fn prove_zero(&self, term: Affine) -> bool {
        self.prove(term) && self.prove(-term)
    }

    /// Whether `term` is one multiple of nranks in all cases.
    pub(super) fn prove_congruent(&self, term: Affine) -> bool {
        (-REACH..=REACH).any(|j| self.prove_zero(term - N * j))
    }

    /// Returns each `j` for which `term == j * nranks` is possible; `None` where some of them are beyond `REACH`.
    pub(super) fn multiples(&self, term: Affine) -> Option<Vec<i64>> {
        let edge = N * (REACH + 1) - Affine::int(1);
        let near = self.prove(edge - term) && self.prove(edge + term);
        let may = |j: &i64| !self.multiple(term, *j).is_empty();
        near.then(|| (-REACH..=REACH).filter(may).collect())
    }

    /// Returns the verdict of the facts on `conditions`, each a term that should be at least 0.
    pub(super) fn judge(&self, conditions: &[Affine]) -> LinearVerdict {
        let open = conditions.iter().find(|term| !self.prove(**term));
        let Some(open) = open else { return LinearVerdict::Holds };
        let all = conditions.iter().fold(self.clone(), |facts, term| facts.and(*term));
        if all.is_empty() { LinearVerdict::Fails } else { LinearVerdict::Depends(*open) }
    }

    /// Whether in every case all conditions of one of `alternatives` hold.
    pub(super) fn prove_any(&self, alternatives: &[Vec<Affine>]) -> bool {
        self.prove_any_within(alternatives, 12)
    }

    fn prove_any_within(&self, alternatives: &[Vec<Affine>], splits: u32) -> bool {
        if self.is_empty() {
            return true;
        }
        let mut open = None;
        let mut possible = Vec::new();
        for alternative in alternatives {
            match self.judge(alternative) {
                LinearVerdict::Holds => return true,
                LinearVerdict::Fails => {}
                LinearVerdict::Depends(term) => {
                    open.get_or_insert(term);
                    possible.push(alternative.clone());
                }
            }
        }
        let (Some(term), true) = (open, splits > 0) else { return false };
        self.but_not(term).prove_any_within(&possible, splits - 1)
            && self.and(term).prove_any_within(&possible, splits - 1)
    }
}

/// Eliminates `var` from the rows, each at least 0, by the method of Fourier and Motzkin.
fn eliminate(rows: Vec<[i128; 4]>, var: usize) -> Option<Vec<[i128; 4]>> {
    let (with, mut rest): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row[var] != 0);
    let (lower, upper): (Vec<_>, Vec<_>) = with.into_iter().partition(|row| row[var] > 0);
    if lower.len() * upper.len() + rest.len() > MOST {
        return None;
    }
    for low in &lower {
        for high in &upper {
            let mut row = [0; 4];
            for (i, c) in row.iter_mut().enumerate() {
                let (a, b) = (low[i].checked_mul(-high[var])?, high[i].checked_mul(low[var])?);
                *c = a.checked_add(b)?;
            }
            rest.push(tighten(row));
        }
    }
    rest.sort_unstable_by_key(|row| (row[1], row[2], row[3], row[0]));
    // Of rows that differ in their constant only, the first is the strongest.
    rest.dedup_by(|later, first| later[1..] == first[1..]);
    Some(rest)
}

/// Divides by the common factor of the variables, rounding towards the integers.
fn tighten(mut row: [i128; 4]) -> [i128; 4] {
    let gcd = |mut a: i128, mut b: i128| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a.abs()
    };
    let factor = row[1..].iter().fold(0, |a, b| gcd(a, *b));
    if factor > 1 {
        row = row.map(|c| c.div_euclid(factor));
    }
    row
}
