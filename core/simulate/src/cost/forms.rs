//! Closed forms: the costs of an algorithm family, as terms in the number of ranks.

use std::fmt::Write as _;

use super::counts::{Counts, Work};
use super::term::Term;
use roundelay_base::collective::Collective;
use roundelay_base::rational::Rat;

/// The numbers of ranks for which a form holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admits {
    /// Any number.
    Any,
    /// Three or more: two ranks have one link each way, which both ways of a ring would share.
    ThreeOrMore,
    /// Powers of two.
    PowersOfTwo,
    /// The numbers that are no powers of two.
    NoPowersOfTwo,
}

impl Admits {
    /// Whether `n` ranks are among them.
    pub const fn holds(self, n: u32) -> bool {
        match self {
            Self::Any => n > 0,
            Self::ThreeOrMore => n >= 3,
            Self::PowersOfTwo => n.is_power_of_two(),
            Self::NoPowersOfTwo => n > 0 && !n.is_power_of_two(),
        }
    }

    /// The text in tables.
    const fn text(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::ThreeOrMore => "3 or more",
            Self::PowersOfTwo => "2^k",
            Self::NoPowersOfTwo => "not 2^k",
        }
    }
}

/// The closed form of a family of algorithms for one collective: the numbers of [`Counts`] by the number of ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostForm {
    /// The family, such as `ring`.
    pub family: &'static str,
    /// The library's algorithm of this form, with its parameters at their defaults, if there is one.
    pub algorithm: Option<&'static str>,
    /// The collective that the family computes.
    pub collective: Collective,
    /// The numbers of ranks for which the form holds.
    pub admits: Admits,
    /// Steps that follow one another; each costs L.
    pub steps: Term,
    /// The most messages that a stream of a rank moves.
    pub messages: Term,
    /// The most pieces of these messages.
    pub pieces: Term,
    /// Bytes that follow one another where every pair of ranks has a link of its own, in shares of S; times S / B.
    pub volume: Term,
    /// Bytes that follow one another where each rank has one port each way, in shares of S; times S / B.
    pub port: Term,
    /// Bytes that a rank reduces, in shares of S.
    pub reduced: Term,
    /// Bytes that a rank copies in its own memory, in shares of S.
    pub copied: Term,
    /// The number of streams of a rank, each with `messages` messages; where there is a stream for each ring, the
    /// largest possible number of rings.
    pub streams: Term,
    /// Whether steps are in turn at all numbers of ranks: see [`Self::exact`].
    pub in_turn: bool,
    /// The source of the form: a paper, or an argument in words.
    pub why: &'static str,
}

impl CostForm {
    /// Seconds for `bytes` bytes (nccl-tests' size) on `n` ranks: `latency` seconds a step, and `bandwidth` bytes a
    /// second between two ranks in one direction, with `own_links` over a link for every two of them, else over one
    /// port a rank. `None` where the form does not hold for `n`, or where streams share a port: then the latency of
    /// one passes while the bytes of another flow. A single rank sends no data. Where the form is not
    /// [`Self::exact`], the time is an estimate.
    pub fn seconds(
        &self,
        n: u32,
        bytes: u64,
        latency: f64,
        bandwidth: f64,
        own_links: bool,
    ) -> Option<f64> {
        if n == 1 {
            return Some(0.0);
        }
        if !own_links && self.streams.value(n)? > Rat::ONE {
            return None;
        }
        let value = |term: Term| term.value(n).map(|v| v.num() as f64 / v.den() as f64);
        let volume = value(if own_links { self.volume } else { self.port })?;
        let steps = value(self.steps)?;
        self.admits.holds(n).then_some(steps * latency + volume * bytes as f64 / bandwidth)
    }

    /// The counts for `n` ranks, each with one port each way. The totals are n times the work of one rank, an upper
    /// bound. `None` where the form does not hold for `n`.
    pub fn counts(&self, n: u32) -> Option<Counts> {
        if !self.admits.holds(n) {
            return None;
        }
        if n == 1 {
            return Some(Counts::default());
        }
        let value = |term: Term| term.value(n).map(|v| v.num() as f64 / v.den() as f64);
        let work = |term: Term| {
            let busiest = value(term)?;
            Some(Work { busiest, total: busiest * f64::from(n) })
        };
        let streams = value(self.streams)?;
        let of_streams = |term| {
            let Work { busiest, total } = work(term)?;
            Some(Work { busiest: busiest * streams, total: total * streams })
        };
        Some(Counts {
            steps: u32::try_from(self.steps.value(n)?.floor()).ok()?,
            messages: of_streams(self.messages)?,
            pieces: of_streams(self.pieces)?,
            volume: work(self.port)?,
            reduced: work(self.reduced)?,
            copied: work(self.copied)?,
        })
    }

    /// Whether on `n` ranks no message of a step shares a link or a port with a message of another step. With ranks
    /// beyond the largest power of two, some messages of some families find their data early, and slow others down.
    pub const fn exact(&self, n: u32) -> bool {
        self.in_turn || n.is_power_of_two()
    }

    /// Marks that messages of several steps may be under way at once, except at powers of two.
    const fn early(mut self) -> Self {
        self.in_turn = false;
        self
    }

    /// Sets the library's algorithm of the form.
    const fn by(mut self, algorithm: &'static str) -> Self {
        self.algorithm = Some(algorithm);
        self
    }

    /// Sets the number of pieces of all messages.
    const fn of_pieces(mut self, pieces: Term) -> Self {
        self.pieces = pieces;
        self
    }

    /// Sets the number of streams of a rank.
    const fn streams(mut self, streams: Term) -> Self {
        self.streams = streams;
        self
    }
}

/// Returns the form of a family for a collective; if it has several, the form for `n` ranks.
pub fn form_of(family: &str, collective: Collective, n: u32) -> Option<&'static CostForm> {
    let mut forms = FORMS.iter().filter(|f| f.family == family && f.collective == collective);
    let first = forms.clone().next()?;
    Some(forms.find(|form| form.admits.holds(n)).unwrap_or(first))
}

/// Returns the form of the library's algorithm `name` for `n` ranks.
pub fn of_algorithm(name: &str, n: u32) -> Option<&'static CostForm> {
    FORMS.iter().find(|form| form.algorithm == Some(name) && form.admits.holds(n))
}

/// Returns the table as Markdown, for the book. To make a row fit a page, f stands for floor(log2 n) and g for
/// ceil(log2 n).
pub fn markdown() -> String {
    let mut text = String::from(
        "| family | collective | ranks | steps | volume, own links | volume, one port | messages | reduced | because |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for form in FORMS {
        let CostForm {
            family,
            collective,
            admits,
            steps,
            messages,
            volume,
            port,
            reduced,
            why,
            ..
        } = form;
        let ranks = admits.text();
        let _ = writeln!(
            text,
            "| {family} | {collective} | {ranks} | {steps} | {volume} | {port} | {messages} | {reduced} | {why} |"
        );
    }
    text.replace("floor(log2 n)", "f").replace("ceil(log2 n)", "g")
}

use Admits::{Any, NoPowersOfTwo, PowersOfTwo, ThreeOrMore};
use Collective::{
    AllGather, AllReduce, AllToAll, Broadcast, Gather, Reduce, ReduceScatter, Scatter,
};
use Term::{Add, CeilLog, Div, FloorLog, HalfUp, Int, Mul, N, Ones, Pairs, Pow, Sub};

const NONE: Term = Int(0);
const ONE: Term = Int(1);
const TWO: Term = Int(2);
const STEPS: Term = Sub(&N, &ONE);
const LESS: Term = Div(&STEPS, &N);
const STEPS2: Term = Mul(&TWO, &STEPS);
const LESS2: Term = Div(&STEPS2, &N);
const CEIL2: Term = Mul(&TWO, &CeilLog);
const FLOOR2: Term = Mul(&TWO, &FloorLog);
const PART: Term = Div(&ONE, &N);
const PART2: Term = Div(&TWO, &N);
const ONE_MORE: Term = Div(&Add(&N, &ONE), &N);
/// 1 where there are ranks beyond the largest power of two.
const ODD: Term = Sub(&CeilLog, &FloorLog);
/// Halving among the powers of two, and the whole buffer once where there are ranks beyond them.
const FOLD: Term = Add(&Div(&Sub(&Pow, &ONE), &Pow), &ODD);
/// Halving and doubling, and the whole buffer twice.
const FOLD2: Term = Add(&Div(&Mul(&TWO, &Sub(&Pow, &ONE)), &Pow), &Mul(&TWO, &ODD));
const FOLD_STEPS: Term = Add(&FloorLog, &Mul(&TWO, &ODD));
const PAIRED: Term = Add(&Sub(&Pow, &ONE), &Pairs);
/// With ranks beyond the power of two, all blocks go to the even rank of a pair, and at the end one goes back.
const FOLD_BLOCKS: Term = Div(&Add(&PAIRED, &Mul(&ODD, &Add(&N, &ONE))), &N);
const FOLD_SUMS: Term = Div(&Add(&PAIRED, &Mul(&ODD, &N)), &N);
/// Eight slices, one behind another, along n - 1 links.
const SLICED: Term = Add(&N, &Int(6));
const EIGHTHS: Term = Div(&SLICED, &Int(8));
const BOTH_LOGS: Term = Add(&FloorLog, &CeilLog);
const ONES: Term = Div(&Ones, &N);

/// Makes a form of steps, messages, volume over own links and through one port, and reduced and copied data.
const fn form(
    family: &'static str,
    collective: Collective,
    admits: Admits,
    [steps, messages, volume, port, reduced, copied]: [Term; 6],
    why: &'static str,
) -> CostForm {
    let algorithm = None;
    CostForm {
        family,
        algorithm,
        collective,
        admits,
        steps,
        messages,
        pieces: messages,
        volume,
        port,
        reduced,
        copied,
        streams: ONE,
        in_turn: true,
        why,
    }
}

/// Every form, family by family.
#[rustfmt::skip] // a line a form
pub const FORMS: &[CostForm] = &[
    form("ring", ReduceScatter, Any, [STEPS, STEPS, LESS, LESS, LESS, ONE], "n - 1 rounds, a block of S/n each").by("RingReduceScatter"),
    form("ring", AllGather, Any, [STEPS, STEPS, LESS, LESS, NONE, PART], "n - 1 rounds, a block of S/n each").by("RingAllGather"),
    form("ring", AllReduce, Any, [STEPS2, STEPS2, LESS2, LESS2, LESS, ONE], "ReduceScatter, then AllGather").by("RingAllReduce"),
    form("ring", Broadcast, Any, [SLICED, SLICED, EIGHTHS, EIGHTHS, NONE, ONE], "8 slices of S/8, one behind the other, over n - 1 links").by("RingBroadcast"),
    form("ring", Reduce, Any, [SLICED, SLICED, EIGHTHS, EIGHTHS, EIGHTHS, ONE], "the same backwards").by("RingReduce"),
    form("two-way ring", ReduceScatter, ThreeOrMore, [STEPS, STEPS, Div(&LESS, &TWO), LESS, LESS, ONE], "half of each block each way at once").by("TwistedRingReduceScatter").streams(TWO),
    form("two-way ring", AllGather, ThreeOrMore, [STEPS, STEPS, Div(&LESS, &TWO), LESS, NONE, PART], "half of each block each way at once").by("TwistedRingAllGather").streams(TWO),
    form("two-way ring", AllReduce, ThreeOrMore, [STEPS2, STEPS2, LESS, LESS2, LESS, ONE], "half of S each way at once").by("TwistedRingAllReduce").streams(TWO),
    form("multi-ring", ReduceScatter, Any, [STEPS, STEPS, PART, LESS, LESS, ONE], "a part of each block on each of n - 1 rings, where so many share no link").by("MultiRingReduceScatter").streams(STEPS2),
    form("multi-ring", AllGather, Any, [STEPS, STEPS, PART, LESS, NONE, PART], "the same").by("MultiRingAllGather").streams(STEPS2),
    form("multi-ring", AllReduce, Any, [STEPS2, STEPS2, PART2, LESS2, LESS, ONE], "ReduceScatter, then AllGather").by("MultiRingAllReduce").streams(STEPS2),
    form("HD", ReduceScatter, PowersOfTwo, [FloorLog, FloorLog, LESS, LESS, LESS, ONE_MORE], "S/2, S/4, … S/n with partners by xor").by("HalvingDoublingReduceScatter"),
    form("HD", AllGather, PowersOfTwo, [FloorLog, FloorLog, LESS, LESS, NONE, PART], "the same backwards").by("HalvingDoublingAllGather"),
    form("HD", AllReduce, PowersOfTwo, [FLOOR2, FLOOR2, LESS2, LESS2, LESS, ONE], "halving, then doubling").by("HalvingDoublingAllReduce"),
    form("RHD", ReduceScatter, Any, [FOLD_STEPS, FOLD_STEPS, FOLD_BLOCKS, FOLD_BLOCKS, FOLD_SUMS, ONE_MORE], "HD among 2^f ranks, of which those that others fold S into have two blocks each, and hand one back").by("RecursiveHalvingDoublingReduceScatter").early(),
    form("RHD", AllGather, Any, [FOLD_STEPS, FOLD_STEPS, FOLD_BLOCKS, FOLD_BLOCKS, NONE, PART], "the same backwards").by("RecursiveHalvingDoublingAllGather").early(),
    form("RHD", AllReduce, Any, [CEIL2, CEIL2, FOLD2, FOLD2, FOLD, ONE], "HD among 2^f ranks; the others fold S in before and get S after").by("RecursiveHalvingDoublingAllReduce").early(),
    form("NHR", ReduceScatter, Any, [CeilLog, CeilLog, LESS, LESS, LESS, Div(&Add(&HalfUp, &ONE), &N)], "a binomial tree for each block, all at once").by("NhrReduceScatter").of_pieces(STEPS),
    form("NHR", AllGather, Any, [CeilLog, CeilLog, LESS, LESS, NONE, PART], "the same trees backwards").by("NhrAllGather").of_pieces(STEPS),
    form("NHR", AllReduce, Any, [CEIL2, CEIL2, LESS2, LESS2, LESS, ONE], "ReduceScatter, then AllGather").by("NhrAllReduce").of_pieces(STEPS2),
    form("NHR", Scatter, Any, [CeilLog, CeilLog, LESS, LESS, NONE, PART], "each block down the route of its tree").by("NhrScatter").of_pieces(STEPS),
    form("NHR", Broadcast, Any, [CEIL2, CEIL2, LESS2, LESS2, NONE, ONE], "Scatter, then AllGather").by("NhrBroadcast").of_pieces(STEPS2).early(),
    form("NHR, one-shot", AllReduce, Any, [BOTH_LOGS, CEIL2, CEIL2, CEIL2, CeilLog, ONE], "S up one tree and down again").by("NhrOneShotAllReduce").early(),
    form("mesh, two-shot", ReduceScatter, Any, [ONE, STEPS, PART, LESS, LESS, PART], "a block of S/n on every link at once").by("MeshReduceScatter"),
    form("mesh, two-shot", AllGather, Any, [ONE, STEPS, PART, LESS, NONE, PART], "a block of S/n on every link at once").by("MeshAllGather"),
    form("mesh, two-shot", AllReduce, Any, [TWO, STEPS2, PART2, LESS2, LESS, ONE], "ReduceScatter, then AllGather").by("MeshAllReduce"),
    form("mesh, one-shot", AllReduce, Any, [ONE, STEPS, ONE, STEPS, STEPS, TWO], "everybody reads everything, S on every link at once").by("OneShotMeshAllReduce"),
    form("mesh", AllToAll, Any, [ONE, STEPS, PART, LESS, NONE, PART], "a block of S/n on every link at once").by("MeshAllToAll"),
    form("mesh", Scatter, Any, [ONE, ONE, PART, LESS, NONE, PART], "a block of S/n on every link of the root at once").by("MeshScatter"),
    form("mesh", Gather, Any, [ONE, ONE, PART, LESS, NONE, PART], "a block of S/n on every link of the root at once").by("MeshGather"),
    form("pairwise", AllToAll, PowersOfTwo, [STEPS, STEPS, LESS, LESS, NONE, PART], "n - 1 rounds, a block of S/n each").by("PairwiseAllToAll"),
    form("pairwise", AllToAll, NoPowersOfTwo, [N, N, ONE, ONE, NONE, PART], "n rounds, of which each rank sits out one or two").by("PairwiseAllToAll"),
    form("pairwise", ReduceScatter, PowersOfTwo, [STEPS, STEPS, LESS, LESS, LESS, PART], "n - 1 rounds, a block of S/n each").by("PairwiseReduceScatter"),
    form("pairwise", ReduceScatter, NoPowersOfTwo, [N, N, ONE, ONE, ONE, PART], "n rounds, of which each rank sits out one or two").by("PairwiseReduceScatter"),
    form("recursive doubling", AllReduce, PowersOfTwo, [FloorLog, FloorLog, FloorLog, FloorLog, FloorLog, ONE], "S with each of log2 n partners").by("RecursiveDoublingAllReduce"),
    form("recursive doubling", AllGather, PowersOfTwo, [FloorLog, FloorLog, LESS, LESS, NONE, PART], "what a rank has doubles every round").by("RecursiveDoublingAllGather"),
    form("Bruck", AllGather, Any, [CeilLog, CeilLog, LESS, LESS, NONE, PART], "what a rank has doubles; the last round sends the rest").by("BruckAllGather").of_pieces(Sub(&BOTH_LOGS, &ONE)),
    form("Bruck", AllToAll, Any, [CeilLog, CeilLog, ONES, ONES, NONE, TWO], "a block moves once for each one of its distance in binary").by("BruckAllToAll").of_pieces(Ones),
    form("binomial tree", Broadcast, Any, [CeilLog, CeilLog, CeilLog, CeilLog, NONE, ONE], "S down ceil(log2 n) levels"),
    form("binomial tree", Reduce, Any, [CeilLog, CeilLog, CeilLog, CeilLog, CeilLog, ONE], "S up ceil(log2 n) levels"),
    form("binomial tree", AllReduce, Any, [CEIL2, CEIL2, CEIL2, CEIL2, CeilLog, ONE], "Reduce, then Broadcast"),
    form("star", Broadcast, Any, [ONE, ONE, ONE, STEPS, NONE, ONE], "S from the root to every rank at once, each over its own link"),
];
