//! Exact fractions of large terms, the values of bounds.

use std::cmp::Ordering;
use std::fmt;

/// A non-negative fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fraction {
    num: u128,
    den: u128,
}

impl Fraction {
    /// 0
    pub const ZERO: Self = Self { num: 0, den: 1 };

    /// num / den; 0 for 0 / 0, for then there is no data to send.
    pub fn new(num: u128, den: u128) -> Self {
        let (mut a, mut b) = (num, den);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        match (num.checked_div(a), den.checked_div(a)) {
            (Some(num), Some(den)) => Self { num, den },
            _ => Self::ZERO,
        }
    }

    /// Numerator in lowest terms.
    pub const fn num(self) -> u128 {
        self.num
    }

    /// Denominator in lowest terms.
    pub const fn den(self) -> u128 {
        self.den
    }

    /// The nearest float.
    pub fn value(self) -> f64 {
        self.num as f64 / self.den as f64
    }

    /// The sum; the parts of a bound have small terms.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let whole = Self::new(self.den, other.den);
        // den / gcd(den, other.den), and the same for the other one.
        let (a, b) = (whole.num, whole.den);
        Self::new(self.num * b + other.num * a, self.den * b)
    }
}

impl Ord for Fraction {
    /// Compares by continued fractions: products of large terms would not fit.
    fn cmp(&self, other: &Self) -> Ordering {
        let (mut a, mut b) = ((self.num, self.den), (other.num, other.den));
        let mut turned = false;
        loop {
            let decide = |order: Ordering| if turned { order.reverse() } else { order };
            match (a.1, b.1) {
                (0, 0) => return Ordering::Equal,
                (0, _) => return decide(Ordering::Greater),
                (_, 0) => return decide(Ordering::Less),
                _ => {}
            }
            match (a.0 / a.1).cmp(&(b.0 / b.1)) {
                Ordering::Equal => {
                    (a, b) = ((a.1, a.0 % a.1), (b.1, b.0 % b.1));
                    turned = !turned;
                }
                order => return decide(order),
            }
        }
    }
}

impl PartialOrd for Fraction {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Fraction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.den == 1 {
            return write!(f, "{}", self.num);
        }
        write!(f, "{}/{}", self.num, self.den)
    }
}
