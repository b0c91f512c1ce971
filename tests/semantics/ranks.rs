//! Ranks that call by themselves, each from a thread of its own. Every run has data of its own, and every rank looks
//! at its result before it calls again: a rank may be runs ahead of another, as far as the schedule lets it.

use std::fmt::Debug;
use std::iter;
use std::ops::Range;
use std::time::Duration;

use roundelay::{Collective, Element, SpmdPlan, half};
use roundelay_core::collective::{Alias, Expected};
use roundelay_core::ids::RankId;

/// An element type in which sums of a few small whole numbers are exact, whatever their order.
pub(super) trait Whole: Element + PartialEq + Debug {
    fn of(whole: u16) -> Self;
}

impl Whole for i32 {
    fn of(whole: u16) -> Self {
        whole.into()
    }
}

impl Whole for f32 {
    fn of(whole: u16) -> Self {
        whole.into()
    }
}

impl Whole for half::bf16 {
    fn of(whole: u16) -> Self {
        Self::from_f32(whole.into())
    }
}

/// The calls of a team; its op is a sum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Runs<'t> {
    pub(super) team: &'t SpmdPlan,
    pub(super) collective: Collective,
    pub(super) root: RankId,
    /// Elements a unit.
    pub(super) count: usize,
    pub(super) in_place: bool,
}

/// Where a rank is before a call.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    pub(super) run: u64,
    pub(super) rank: RankId,
}

impl Turn {
    /// As random as the data.
    pub(super) fn random(self) -> u64 {
        mixed(self.run << 32 | u64::from(self.rank.0) << 16)
    }
}

/// An element of a rank's input; below 16, so that the sums of 16 ranks are exact in bf16.
fn element(run: u64, rank: RankId, at: usize) -> u16 {
    (mixed(run << 32 | u64::from(rank.0) << 16 | at as u64) >> 60) as u16
}

/// The mixing of bits of `SplitMix64`.
pub(super) fn mixed(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Runs<'_> {
    /// All ranks, a thread each; `before` is called before each call.
    pub(super) fn assert_right<T: Whole>(&self, runs: Range<u64>, before: impl Fn(Turn) + Sync) {
        std::thread::scope(|threads| {
            for rank in (0..self.team.nranks()).map(RankId) {
                let (runs, before) = (runs.clone(), &before);
                threads.spawn(move || self.rank::<T>(rank, runs, before));
            }
        });
    }

    /// Runs one rank's thread. Its buffers stay in all runs.
    fn rank<T: Whole>(&self, rank: RankId, runs: Range<u64>, before: impl Fn(Turn)) {
        let Self { team, collective, root, count, in_place } = *self;
        let nranks = team.nranks();
        let me = team.rank(rank).expect("it has so many ranks");
        let input_len = collective.input_units(rank, nranks, root) as usize * count;
        let output_len = collective.output_units(rank, nranks, root) as usize * count;
        let (input_at, output_at) = match collective.alias(rank, root) {
            Alias::Apart => (0, 0),
            Alias::InputInOutput(units) => (units as usize * count, 0),
            Alias::OutputInInput(units) => (0, units as usize * count),
        };
        let mut input = vec![T::of(0); input_len];
        let mut output = vec![T::of(0); output_len];
        let mut whole = vec![T::of(0); input_len.max(output_len)];
        for run in runs {
            let given = if in_place { &mut whole[input_at..][..input_len] } else { &mut input };
            for (at, given) in given.iter_mut().enumerate() {
                *given = T::of(element(run, rank, at));
            }
            before(Turn { run, rank });
            let done = if in_place {
                me.run_in_place(&mut whole)
            } else {
                output.fill(T::of(255));
                me.run(&input, &mut output)
            };
            done.unwrap_or_else(|error| panic!("run {run}: {error}\n{self:?}"));
            let got = if in_place { &whole[output_at..][..output_len] } else { &output[..] };
            for (at, got) in got.iter().enumerate() {
                let wanted = T::of(self.expected(run, rank, at));
                assert_eq!(*got, wanted, "run {run}, rank {rank}, element {at}\n{self:?}");
            }
        }
    }

    fn expected(&self, run: u64, rank: RankId, at: usize) -> u16 {
        let (unit, i) = ((at / self.count) as u32, at % self.count);
        let of = |rank, unit: u32| element(run, rank, unit as usize * self.count + i);
        match self.collective.expected_value(rank, unit, self.root) {
            Expected::Reduced { unit } => {
                (0..self.team.nranks()).map(|rank| of(RankId(rank), unit)).sum()
            }
            Expected::Copied { rank, unit } => of(rank, unit),
        }
    }
}

/// Returns the result of `run` with a deadline of 30 ms, doubled while it returns `None`: on a busy machine a rank that
/// should be in time may come after the deadline.
pub(super) fn with_longer_deadlines<T>(run: impl FnMut(Duration) -> Option<T>) -> T {
    let deadlines =
        iter::successors(Some(Duration::from_millis(30)), |deadline| Some(*deadline * 2));
    let said = deadlines.take_while(|deadline| *deadline < Duration::from_secs(20)).find_map(run);
    said.expect("with every deadline, it does not name the missing rank")
}
