//! Turns: groups of permutations of ranks, of which exactly one takes any rank to any other rank.
//!
//! A rank is a number of several digits, each with a radix of its own, and a turn adds a number digit by digit without
//! carry. With one digit the turns are the rotations of a ring; with digits of radix 2 they are the exclusive ors; with
//! a digit for the island and a digit for the position in it they are the rotations of the islands and within islands.

use std::fmt;

use crate::ids::RankId;

/// A group of turns. A turn is named by the rank to which it takes rank 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turns {
    /// The radix of each digit, the most significant first.
    radices: Vec<u32>,
    /// The weight of each digit: the product of the radices behind it.
    weights: Vec<u32>,
}

impl Turns {
    /// Returns the rotations of `nranks` ranks.
    pub fn rotation(nranks: u32) -> Self {
        Self::from_radices(&[nranks])
    }

    /// Returns the exclusive ors of `nranks` ranks; `None` where their number is no power of two.
    pub fn xor(nranks: u32) -> Option<Self> {
        nranks
            .is_power_of_two()
            .then(|| Self::from_radices(&vec![2; nranks.trailing_zeros() as usize]))
    }

    /// Returns the turns of ranks with digits of these radices, the most significant first. Digits of radix 1 are left
    /// out.
    pub fn from_radices(radices: &[u32]) -> Self {
        let radices: Vec<u32> = radices.iter().copied().filter(|radix| *radix != 1).collect();
        let mut weights = vec![1; radices.len()];
        for digit in (1..radices.len()).rev() {
            weights[digit - 1] = weights[digit] * radices[digit];
        }
        Self { radices, weights }
    }

    /// The number of ranks, which is the number of turns.
    pub fn nranks(&self) -> u32 {
        self.radices.iter().product()
    }

    /// The radix of each digit, the most significant first.
    pub fn radices(&self) -> &[u32] {
        &self.radices
    }

    /// The number that a digit counts by: rank 0 with one more in the digit is this rank.
    pub fn weight(&self, digit: usize) -> u32 {
        self.weights[digit]
    }

    /// Returns a digit of a rank.
    pub fn digit(&self, rank: u32, digit: usize) -> u32 {
        rank / self.weights[digit] % self.radices[digit]
    }

    /// Whether each digit has radix 2: then a turn is an exclusive or.
    pub fn is_xor(&self) -> bool {
        self.radices.iter().all(|radix| *radix == 2)
    }

    /// Returns the rank to which turn `by` takes `rank`; also the turn that is made of the two.
    pub fn turn(&self, rank: u32, by: u32) -> u32 {
        match &self.radices[..] {
            [] => 0,
            // The sum of two ranks may need more than 32 bits.
            [n] => ((u64::from(rank) + u64::from(by)) % u64::from(*n)) as u32,
            _ if self.is_xor() => rank ^ by,
            _ => self.by_digits(rank, by, |a, b, radix| (a + b) % radix),
        }
    }

    /// Returns the turn that takes rank `from` to `to`.
    pub fn turn_between(&self, from: u32, to: u32) -> u32 {
        match &self.radices[..] {
            [] => 0,
            [n] => ((u64::from(to) + u64::from(*n) - u64::from(from)) % u64::from(*n)) as u32,
            _ if self.is_xor() => from ^ to,
            _ => self.by_digits(to, from, |to, from, radix| (to + radix - from) % radix),
        }
    }

    /// Returns the turn that undoes `turn`.
    pub fn back(&self, turn: u32) -> u32 {
        self.turn_between(turn, 0)
    }

    fn by_digits(&self, a: u32, b: u32, join: impl Fn(u32, u32, u32) -> u32) -> u32 {
        let digits = 0..self.radices.len();
        digits
            .map(|at| {
                join(self.digit(a, at), self.digit(b, at), self.radices[at]) * self.weights[at]
            })
            .sum()
    }

    /// Returns turns of which all turns are made, the smallest first: one step of each digit.
    pub fn generators(&self) -> impl Iterator<Item = u32> + '_ {
        self.weights.iter().rev().copied()
    }

    /// Returns all ranks.
    pub fn ranks(&self) -> impl Iterator<Item = RankId> {
        (0..self.nranks()).map(RankId)
    }
}

/// `rotation of 64`, `exclusive or of 64`, `rotations of 8 x 8`.
impl fmt::Display for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.nranks();
        match &self.radices[..] {
            [] | [_] => write!(f, "rotation of {all}"),
            _ if self.is_xor() => write!(f, "exclusive or of {all}"),
            many => {
                let many: Vec<_> = many.iter().map(u32::to_string).collect();
                write!(f, "rotations of {}", many.join(" x "))
            }
        }
    }
}
