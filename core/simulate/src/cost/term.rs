//! Terms in the number of ranks, exact, and written as on paper.

use std::fmt;

use roundelay_base::rational::Rat;

/// A term in n, the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Term {
    /// A number.
    Int(u64),
    /// n
    N,
    /// floor(log2 n)
    FloorLog,
    /// ceil(log2 n)
    CeilLog,
    /// The largest power of two that is at most n.
    Pow,
    /// ceil(n/2)
    HalfUp,
    /// The ones of 0, 1, … n - 1 in binary.
    Ones,
    /// The addition of pairs to halving and doubling among 2^f = 2^floor(log2 n) ranks, of which the first r = n - 2^f
    /// stand for two ranks each: the sum of min(r, 2^k) over k < f.
    Pairs,
    /// a + b
    Add(&'static Term, &'static Term),
    /// a - b, never negative in a form
    Sub(&'static Term, &'static Term),
    /// a * b
    Mul(&'static Term, &'static Term),
    /// a / b
    Div(&'static Term, &'static Term),
}

impl Term {
    /// Its value for n >= 1 ranks, exactly; `None` out of the range of 64 bits.
    pub fn value(self, n: u32) -> Option<Rat> {
        let both = |a: &Self, b: &Self| Some((a.value(n)?, b.value(n)?));
        let n = n.max(1);
        match self {
            Self::Int(k) => Some(Rat::whole(k)),
            Self::N => Some(Rat::whole(n.into())),
            Self::FloorLog => Some(Rat::whole(n.ilog2().into())),
            // The next power of two would not fit for n > 2^31.
            Self::CeilLog => Some(Rat::whole((u32::BITS - (n - 1).leading_zeros()).into())),
            Self::Pow => Some(Rat::whole(1 << n.ilog2())),
            Self::HalfUp => Some(Rat::whole(n.div_ceil(2).into())),
            Self::Ones => {
                // Bit k is set in half of every 2^(k+1) numbers, and in the last ones of the remainder.
                let of_bit = |k: u32| {
                    let (n, half) = (u64::from(n), 1_u64 << k);
                    n / (2 * half) * half + (n % (2 * half)).saturating_sub(half)
                };
                Some(Rat::whole((0..u32::BITS).map(of_bit).sum()))
            }
            Self::Pairs => {
                let f = n.ilog2();
                let left_over = u64::from(n) - (1 << f);
                Some(Rat::whole((0..f).map(|k| left_over.min(1 << k)).sum()))
            }
            Self::Add(a, b) => {
                let (a, b) = both(a, b)?;
                let left = a.num().checked_mul(b.den())?;
                Rat::new(
                    left.checked_add(b.num().checked_mul(a.den())?)?,
                    a.den().checked_mul(b.den())?,
                )
            }
            Self::Sub(a, b) => {
                let (a, b) = both(a, b)?;
                a.minus(b)
            }
            Self::Mul(a, b) => {
                let (a, b) = both(a, b)?;
                Rat::new(a.num().checked_mul(b.num())?, a.den().checked_mul(b.den())?)
            }
            Self::Div(a, b) => {
                let (a, b) = both(a, b)?;
                Rat::new(a.num().checked_mul(b.den())?, a.den().checked_mul(b.num())?)
            }
        }
    }

    /// The binding strength of the operator when written.
    const fn strength(self) -> u8 {
        match self {
            Self::Add(..) | Self::Sub(..) => 0,
            Self::Mul(..) | Self::Div(..) => 1,
            _ => 2,
        }
    }

    fn write(self, f: &mut fmt::Formatter<'_>, least: u8) -> fmt::Result {
        if self.strength() < least {
            f.write_str("(")?;
            self.write(f, 0)?;
            return f.write_str(")");
        }
        match self {
            Self::Int(k) => write!(f, "{k}"),
            Self::N => f.write_str("n"),
            Self::FloorLog => f.write_str("floor(log2 n)"),
            Self::CeilLog => f.write_str("ceil(log2 n)"),
            Self::Pow => f.write_str("2^floor(log2 n)"),
            Self::HalfUp => f.write_str("ceil(n/2)"),
            Self::Ones => f.write_str("ones(n)"),
            Self::Pairs => f.write_str("pairs(n)"),
            Self::Add(a, b) => {
                a.write(f, 0)?;
                f.write_str(" + ")?;
                b.write(f, 1)
            }
            Self::Sub(a, b) => {
                a.write(f, 0)?;
                f.write_str(" - ")?;
                b.write(f, 1)
            }
            Self::Mul(a, b) => {
                a.write(f, 1)?;
                // 2(n - 1), as it is written on paper.
                f.write_str(if b.strength() == 0 { "" } else { " " })?;
                b.write(f, 1)
            }
            Self::Div(a, b) => {
                a.write(f, 1)?;
                f.write_str("/")?;
                b.write(f, 2)
            }
        }
    }
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, 0)
    }
}
