//! Exact fractions: the boundaries of regions, in units of the count.
//!
//! A boundary p/q lies at element `floor(p * count / q)`. Nested splits refine the fraction and never round again, so
//! every rank cuts at equal elements.

use std::cmp::Ordering;
use std::fmt;

/// A non-negative fraction in lowest terms.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rat {
    num: u64,
    den: u64,
}

/// Returns the least common multiple; `None` beyond 64 bits.
pub const fn lcm(a: u64, b: u64) -> Option<u64> {
    if a == 0 || b == 0 {
        return Some(0);
    }
    (a / gcd(a, b)).checked_mul(b)
}

/// Returns the greatest common divisor; of 0 and a number, that number. Shifts and differences cost less than divisions.
pub const fn gcd(mut a: u64, mut b: u64) -> u64 {
    if a == 0 || b == 0 {
        return a | b;
    }
    let twos = (a | b).trailing_zeros();
    a >>= a.trailing_zeros();
    loop {
        b >>= b.trailing_zeros();
        if a == 1 || b == 1 {
            return 1 << twos;
        }
        if a > b {
            (a, b) = (b, a);
        }
        b -= a;
        if b == 0 {
            return a << twos;
        }
    }
}

impl Rat {
    /// 0
    pub const ZERO: Self = Self { num: 0, den: 1 };
    /// 1
    pub const ONE: Self = Self { num: 1, den: 1 };

    /// Returns num / den in lowest terms; `None` when `den` is 0.
    pub const fn new(num: u64, den: u64) -> Option<Self> {
        if den == 0 {
            return None;
        }
        let g = gcd(num, den);
        Some(Self { num: num / g, den: den / g })
    }

    /// Returns a whole number of units.
    pub const fn whole(units: u64) -> Self {
        Self { num: units, den: 1 }
    }

    /// Returns the numerator in lowest terms.
    pub const fn num(self) -> u64 {
        self.num
    }

    /// Returns the denominator in lowest terms.
    pub const fn den(self) -> u64 {
        self.den
    }

    fn reduced(num: u128, den: u128) -> Option<Self> {
        if let (Ok(num), Ok(den)) = (u64::try_from(num), u64::try_from(den)) {
            return Self::new(num, den);
        }
        let (mut a, mut b) = (num, den);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Some(Self { num: u64::try_from(num / a).ok()?, den: u64::try_from(den / a).ok()? })
    }

    /// Returns the boundary `i/n` of the way from `self` to `hi`; `None` on overflow or `n == 0`.
    pub fn boundary(self, hi: Self, i: u64, n: u64) -> Option<Self> {
        if i == 0 {
            return (n != 0).then_some(self);
        }
        if i == n {
            return Some(hi);
        }
        // The whole of a user buffer: the case of nearly every split.
        if self == Self::ZERO && hi == Self::ONE && i < n {
            return Self::new(i, n);
        }
        let (a, b) = (u128::from(self.num), u128::from(self.den));
        let (c, d) = (u128::from(hi.num), u128::from(hi.den));
        let (i, n) = (u128::from(i), u128::from(n));
        // a/b * (n-i)/n + c/d * i/n
        let left = a.checked_mul(d)?.checked_mul(n.checked_sub(i)?)?;
        let right = c.checked_mul(b)?.checked_mul(i)?;
        let den = b.checked_mul(d)?.checked_mul(n)?;
        if den == 0 {
            return None;
        }
        Self::reduced(left.checked_add(right)?, den)
    }

    /// Returns `self + other`; `None` if out of range.
    pub fn plus(self, other: Self) -> Option<Self> {
        let (a, b) = (u128::from(self.num), u128::from(self.den));
        let (c, d) = (u128::from(other.num), u128::from(other.den));
        Self::reduced((a * d).checked_add(c.checked_mul(b)?)?, b * d)
    }

    /// Returns `self - other`; `None` if negative or out of range.
    pub fn minus(self, other: Self) -> Option<Self> {
        let (a, b) = (u128::from(self.num), u128::from(self.den));
        let (c, d) = (u128::from(other.num), u128::from(other.den));
        Self::reduced((a * d).checked_sub(c.checked_mul(b)?)?, b * d)
    }

    /// Returns `self * times`; `None` if out of range.
    pub const fn times(self, times: u64) -> Option<Self> {
        if times == 1 {
            return Some(self);
        }
        let shared = gcd(self.den, times);
        match self.num.checked_mul(times / shared) {
            Some(num) => Self::new(num, self.den / shared),
            None => None,
        }
    }

    /// Returns the least common denominator of both fractions.
    pub const fn common(self, other: Self) -> u128 {
        (self.den / gcd(self.den, other.den)) as u128 * other.den as u128
    }

    /// Returns the whole part.
    pub const fn floor(self) -> u64 {
        self.num / self.den
    }

    /// Returns the part below one unit, which decides where between elements a boundary falls.
    #[must_use]
    pub const fn fraction(self) -> Self {
        Self { num: self.num % self.den, den: self.den }
    }

    /// Returns the element at which this boundary lies for `count` elements a unit: `floor(self * count)`. It saturates
    /// at `u64::MAX`, beyond any buffer.
    pub fn element(self, count: u64) -> u64 {
        if self.den == 1 {
            return self.num.saturating_mul(count);
        }
        let wide = u128::from(self.num) * u128::from(count) / u128::from(self.den);
        u64::try_from(wide).unwrap_or(u64::MAX)
    }

    /// Returns `ceil(self * count)`: the number of elements of a slot of this width.
    pub fn element_ceil(self, count: u64) -> u64 {
        let wide = (u128::from(self.num) * u128::from(count)).div_ceil(u128::from(self.den));
        u64::try_from(wide).unwrap_or(u64::MAX)
    }
}

impl PartialOrd for Rat {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Rat {
    fn cmp(&self, other: &Self) -> Ordering {
        (u128::from(self.num) * u128::from(other.den))
            .cmp(&(u128::from(other.num) * u128::from(self.den)))
    }
}

impl fmt::Display for Rat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.den == 1 {
            write!(f, "{}", self.num)
        } else {
            write!(f, "{}/{}", self.num, self.den)
        }
    }
}

impl fmt::Debug for Rat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::str::FromStr for Rat {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (num, den) = text.split_once('/').unwrap_or((text, "1"));
        Self::new(num.parse().map_err(drop)?, den.parse().map_err(drop)?).ok_or(())
    }
}
