//! Closed forms of time: what an algorithm family takes when nothing contends, by the alpha-beta model.
//!
//! A form is two terms in the number of ranks: how many messages stand one after another, and how much
//! of M they carry, one after another too. T = messages * alpha + volume * M * beta, alpha
//! the time of an empty message, beta the seconds a byte takes between two ranks, M the size in bytes as
//! nccl-tests counts it. The same table chooses algorithms and stands in the book.

use std::fmt::{self, Write as _};

use crate::collective::Collective;
use crate::schedule::rational::Rat;

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

    /// How tightly it binds when written.
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

/// For which numbers of ranks a form holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admits {
    /// Any.
    Any,
    /// Three or more: two ranks have one link each way, which both ways of a ring would share.
    ThreeOrMore,
    /// Powers of two.
    PowersOfTwo,
}

impl Admits {
    /// Whether `n` ranks are among them.
    pub const fn holds(self, n: u32) -> bool {
        match self {
            Self::Any => n > 0,
            Self::ThreeOrMore => n >= 3,
            Self::PowersOfTwo => n.is_power_of_two(),
        }
    }
}

/// The time of one family for one collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The family, such as `ring`.
    pub family: &'static str,
    /// What it computes.
    pub collective: Collective,
    /// For which rank counts.
    pub admits: Admits,
    /// Messages one after another: times alpha.
    pub messages: Term,
    /// Bytes one after another, in shares of M: times M * beta.
    pub volume: Term,
    /// Where the form comes from.
    pub why: &'static str,
}

impl Form {
    /// Seconds for `bytes` bytes (nccl-tests' size) on `n` ranks: `alpha` seconds a message, `bandwidth` bytes
    /// a second between two ranks in one direction. `None` where the form does not hold for `n`. A rank
    /// that is alone sends nothing.
    pub fn seconds(&self, n: u32, bytes: u64, alpha: f64, bandwidth: f64) -> Option<f64> {
        if n == 1 {
            return Some(0.0);
        }
        let value = |term: Term| term.value(n).map(|v| v.num() as f64 / v.den() as f64);
        let (messages, volume) = (value(self.messages)?, value(self.volume)?);
        self.admits.holds(n).then_some(messages * alpha + volume * bytes as f64 / bandwidth)
    }
}

/// The form of a family for a collective.
pub fn of(family: &str, collective: Collective) -> Option<&'static Form> {
    FORMS.iter().find(|form| form.family == family && form.collective == collective)
}

/// The table as Markdown, for the book.
pub fn markdown() -> String {
    let mut text = String::from(
        "| family | collective | ranks | messages (alpha) | volume (M beta) | because |\n|---|---|---|---|---|---|\n",
    );
    for Form { family, collective, admits, messages, volume, why } in FORMS {
        let ranks = match admits {
            Admits::Any => "any",
            Admits::ThreeOrMore => "3 or more",
            Admits::PowersOfTwo => "2^k",
        };
        let _ =
            writeln!(text, "| {family} | {collective} | {ranks} | {messages} | {volume} | {why} |");
    }
    text
}

use Admits::{Any, PowersOfTwo, ThreeOrMore};
use Collective::{AllGather, AllReduce, AllToAll, Broadcast, Reduce, ReduceScatter, Scatter};
use Term::{Add, CeilLog, Div, FloorLog, Int, Mul, N, Pow, Sub};

const STEPS: Term = Sub(&N, &Int(1));
const ALL_BUT_ONE: Term = Div(&STEPS, &N);
const TWICE_STEPS: Term = Mul(&Int(2), &STEPS);
const TWICE_ALL_BUT_ONE: Term = Div(&TWICE_STEPS, &N);
const TWICE_CEIL: Term = Mul(&Int(2), &CeilLog);
const TWICE_FLOOR: Term = Mul(&Int(2), &FloorLog);
const ONE_OF_N: Term = Div(&Int(1), &N);
/// Halving and doubling among the powers of two, and twice the whole buffer where ranks are left over.
const FOLDED: Term =
    Add(&Div(&Mul(&Int(2), &Sub(&Pow, &Int(1))), &Pow), &Mul(&Int(2), &Sub(&CeilLog, &FloorLog)));

const fn form(
    family: &'static str,
    collective: Collective,
    admits: Admits,
    messages: Term,
    volume: Term,
    why: &'static str,
) -> Form {
    Form { family, collective, admits, messages, volume, why }
}

/// Every form, family by family.
pub const FORMS: &[Form] = &[
    form("ring", ReduceScatter, Any, STEPS, ALL_BUT_ONE, "n - 1 rounds, a block of M/n each"),
    form("ring", AllGather, Any, STEPS, ALL_BUT_ONE, "n - 1 rounds, a block of M/n each"),
    form("ring", AllReduce, Any, TWICE_STEPS, TWICE_ALL_BUT_ONE, "ReduceScatter, then AllGather"),
    form(
        "two-way ring",
        AllReduce,
        ThreeOrMore,
        TWICE_STEPS,
        ALL_BUT_ONE,
        "half of M each way at once",
    ),
    form(
        "HD",
        ReduceScatter,
        PowersOfTwo,
        FloorLog,
        ALL_BUT_ONE,
        "M/2, M/4, … M/n with partners by xor",
    ),
    form("HD", AllGather, PowersOfTwo, FloorLog, ALL_BUT_ONE, "the same backwards"),
    form("HD", AllReduce, PowersOfTwo, TWICE_FLOOR, TWICE_ALL_BUT_ONE, "halving, then doubling"),
    form(
        "RHD",
        AllReduce,
        Any,
        TWICE_CEIL,
        FOLDED,
        "HD among 2^f ranks; the others fold M in before and get M after",
    ),
    form(
        "NHR",
        ReduceScatter,
        Any,
        CeilLog,
        ALL_BUT_ONE,
        "a binomial tree for each block, all at once",
    ),
    form("NHR", AllGather, Any, CeilLog, ALL_BUT_ONE, "the same trees backwards"),
    form("NHR", AllReduce, Any, TWICE_CEIL, TWICE_ALL_BUT_ONE, "ReduceScatter, then AllGather"),
    form("NHR", Scatter, Any, CeilLog, ALL_BUT_ONE, "each block down the route of its tree"),
    form("NHR", Broadcast, Any, TWICE_CEIL, TWICE_ALL_BUT_ONE, "Scatter, then AllGather"),
    form(
        "mesh, two-shot",
        ReduceScatter,
        Any,
        Int(1),
        ONE_OF_N,
        "a block of M/n on every link at once",
    ),
    form(
        "mesh, two-shot",
        AllGather,
        Any,
        Int(1),
        ONE_OF_N,
        "a block of M/n on every link at once",
    ),
    form(
        "mesh, two-shot",
        AllReduce,
        Any,
        Int(2),
        Div(&Int(2), &N),
        "ReduceScatter, then AllGather",
    ),
    form(
        "mesh, one-shot",
        AllReduce,
        Any,
        Int(1),
        Int(1),
        "everybody reads everything, M on every link at once",
    ),
    form("pairwise", AllToAll, Any, STEPS, ALL_BUT_ONE, "n - 1 rounds, a block of M/n each"),
    form(
        "recursive doubling",
        AllReduce,
        PowersOfTwo,
        FloorLog,
        FloorLog,
        "M with each of log2 n partners",
    ),
    form(
        "recursive doubling",
        AllGather,
        PowersOfTwo,
        FloorLog,
        ALL_BUT_ONE,
        "what a rank has doubles every round",
    ),
    form(
        "Bruck",
        AllGather,
        Any,
        CeilLog,
        ALL_BUT_ONE,
        "what a rank has doubles; the last round sends the rest",
    ),
    form("binomial tree", Broadcast, Any, CeilLog, CeilLog, "M down ceil(log2 n) levels"),
    form("binomial tree", Reduce, Any, CeilLog, CeilLog, "M up ceil(log2 n) levels"),
    form("binomial tree", AllReduce, Any, TWICE_CEIL, TWICE_CEIL, "Reduce, then Broadcast"),
    form(
        "star",
        Broadcast,
        Any,
        Int(1),
        Int(1),
        "M from the root to every rank at once, each over its own link",
    ),
];
