//! Contests between the library behind and this one: a communicator that makes many calls of a shape has some of them made by
//! each, and then leaves them to the faster one. A shape is a collective and the power of two that the bytes of a block
//! reach.
//!
//! All ranks decide alike: they make the calls of a communicator in one order, so the same calls are on trial, and they
//! compare times that they have agreed on.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The calls that the table of choices decides: a communicator with fewer calls of a shape is not worth a world.
const BEFORE: u64 = 64;
/// The calls on trial, by turns, for small blocks and for blocks that take long.
const TRIED: u64 = 24;
const TRIED_LONG: u64 = 8;
/// The bytes of a block from which a call takes long.
const LONG: u64 = 1 << 20;
/// The calls of a turn: a call also takes the time that the call before it has left to do.
const TURN: u64 = 4;
/// A difference that may be chance, as a part of a time: there the table decides.
const CHANCE: f64 = 0.03;

/// The calls that are decided alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape<What> {
    what: What,
    /// The binary logarithm of the bytes of a block.
    class: u32,
}

impl<What> Shape<What> {
    /// The shape of a call with blocks of so many bytes.
    pub fn new(what: What, block: u64) -> Self {
        Self { what, class: block.max(1).ilog2() }
    }
}

impl<What: fmt::Display> fmt::Display for Shape<What> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |class: u32| match class {
            ..10 => format!("{} B", 1_u64 << class),
            10..20 => format!("{} KB", 1_u64 << (class - 10)),
            _ => format!("{} MB", 1_u64 << (class - 20)),
        };
        write!(f, "{} of {} to {}", self.what, told(self.class), told(self.class + 1))
    }
}

/// The maker of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMaker {
    /// This library.
    Ours,
    /// The library behind.
    Theirs,
}

/// What is to be done with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// One of the two makes it, and so it stays.
    Settled(CallMaker),
    /// One of the two makes it, and its time counts.
    Tried(CallMaker),
    /// The ranks first agree on the times.
    Due,
}

#[derive(Debug, Default)]
struct Contest {
    calls: u64,
    /// Seconds of the calls that we made and that the other made.
    times: [Vec<f64>; 2],
    settled: Option<CallMaker>,
}

/// The contests of a communicator.
#[derive(Debug)]
pub struct Contests<What>(Mutex<BTreeMap<Shape<What>, Contest>>);

impl<What> Default for Contests<What> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// A decision, with the seconds of both, for the report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Seconds of a call here.
    pub ours: f64,
    /// Seconds of a call of the library behind.
    pub theirs: f64,
    /// Whether further calls are made here.
    pub taken: bool,
}

impl<What: Copy + Ord> Contests<What> {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Shape<What>, Contest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is to be done with the next call of a shape; `by_table` is the choice of the table.
    pub fn turn(&self, shape: Shape<What>, by_table: bool) -> Turn {
        let mut all = self.all();
        let contest = all.entry(shape).or_default();
        if let Some(maker) = contest.settled {
            return Turn::Settled(maker);
        }
        let call = contest.calls;
        contest.calls += 1;
        let tried = if 1 << shape.class >= LONG { TRIED_LONG } else { TRIED };
        match call.checked_sub(BEFORE) {
            None => Turn::Settled(if by_table { CallMaker::Ours } else { CallMaker::Theirs }),
            Some(nth) if nth < tried => Turn::Tried(if (nth / TURN).is_multiple_of(2) {
                CallMaker::Ours
            } else {
                CallMaker::Theirs
            }),
            Some(_) => Turn::Due,
        }
    }

    /// Whether the shape is settled, so that equal calls need no other look.
    pub fn is_settled(&self, shape: Shape<What>) -> bool {
        self.all().get(&shape).is_some_and(|contest| contest.settled.is_some())
    }

    /// Notes the time of a call on trial.
    pub fn note(&self, shape: Shape<What>, maker: CallMaker, time: Duration) {
        if let Some(contest) = self.all().get_mut(&shape) {
            contest.times[maker as usize].push(time.as_secs_f64());
        }
    }

    /// Leaves all further calls of a shape to one of the two.
    pub fn settle(&self, shape: Shape<What>, maker: CallMaker) {
        self.all().entry(shape).or_default().settled = Some(maker);
    }

    /// Returns the seconds of a call of a shape on this rank, here and by the other: the slowest rank's decide.
    pub fn times(&self, shape: Shape<What>) -> [f64; 2] {
        let all = self.all();
        let times = |which: usize| all.get(&shape).map_or(0.0, |it| quartile(&it.times[which]));
        [times(0), times(1)]
    }

    /// Settles a shape by the times that all ranks have agreed on.
    pub fn decide(&self, shape: Shape<What>, times: [f64; 2], by_table: bool) -> Verdict {
        let verdict = Verdict::new(times, by_table);
        self.settle(shape, if verdict.taken { CallMaker::Ours } else { CallMaker::Theirs });
        verdict
    }
}

impl Verdict {
    fn new([ours, theirs]: [f64; 2], by_table: bool) -> Self {
        let chance = theirs * CHANCE;
        let taken = if by_table { ours <= theirs + chance } else { ours < theirs - chance };
        Self { ours, theirs, taken }
    }

    /// Returns the line of a report: the shape, the times, and the maker of further calls, where `behind` is the other.
    pub fn line(&self, shape: &impl fmt::Display, behind: &str) -> String {
        let Self { ours, theirs, taken } = self;
        let [ours, theirs] = [ours, theirs].map(|seconds| seconds * 1e6);
        let what = if *taken { "taken" } else { "passed on" };
        format!("roundelay: {shape}: {ours:.1} us here, {theirs:.1} us by {behind}: {what}\n")
    }
}

/// Returns the lower quartile, as cold caches and other work only make calls longer.
fn quartile(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 4).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes the calls of a shape until the ranks are to agree, and returns the makers of those on trial.
    fn tried(
        contests: &Contests<&str>,
        shape: Shape<&'static str>,
        by_table: bool,
    ) -> Vec<CallMaker> {
        let mut tried = Vec::new();
        loop {
            match contests.turn(shape, by_table) {
                Turn::Settled(maker) => {
                    assert!(tried.is_empty(), "the table decides first");
                    assert_eq!(maker == CallMaker::Ours, by_table);
                }
                Turn::Tried(maker) => tried.push(maker),
                Turn::Due => return tried,
            }
        }
    }

    #[test]
    fn both_get_equally_many_calls() {
        for (block, calls) in [(1 << 10, TRIED), (LONG, TRIED_LONG)] {
            let contests = Contests::default();
            let shape = Shape::new("Allreduce", block);
            let tried = tried(&contests, shape, block == LONG);
            assert_eq!(tried.len() as u64, calls);
            assert_eq!(
                tried.iter().filter(|maker| **maker == CallMaker::Ours).count() * 2,
                tried.len()
            );
            contests.settle(shape, CallMaker::Theirs);
            assert_eq!(contests.turn(shape, true), Turn::Settled(CallMaker::Theirs));
            assert!(contests.is_settled(shape));
            let other = Shape::new("Allreduce", 2 * block);
            assert!(!contests.is_settled(other));
        }
    }

    #[test]
    fn the_table_decides_what_may_be_chance() {
        let taken = |times, by_table| Verdict::new(times, by_table).taken;
        for by_table in [false, true] {
            assert!(taken([0.9, 1.0], by_table) && !taken([1.1, 1.0], by_table));
            assert_eq!([0.98, 1.0, 1.02].map(|ours| taken([ours, 1.0], by_table)), [by_table; 3]);
        }
    }

    #[test]
    fn one_slow_call_in_four_does_not_count() {
        assert!((quartile(&[9.0, 2.0, 3.0, 1.0]) - 2.0).abs() < 1e-9);
        assert!(quartile(&[]).abs() < 1e-9);
    }
}
