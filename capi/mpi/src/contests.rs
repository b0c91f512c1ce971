//! Contests between MPI and the library: a communicator that makes many calls of a shape has some of them made by each,
//! and then leaves them to the faster one. A shape is a collective and the power of two that the bytes of a block
//! reach.
//!
//! All ranks decide alike: they make the calls of a communicator in one order, so the same calls are on trial, and they
//! compare times that they have agreed on.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use roundelay::{Call, Collective, DType, Error, Rank, ReduceOp};

use crate::call::MpiCollective;

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
pub(crate) struct Shape {
    pub(crate) what: MpiCollective,
    /// The binary logarithm of the bytes of a block.
    pub(crate) class: u32,
}

impl Shape {
    pub(crate) fn new(what: MpiCollective, block: u64) -> Self {
        Self { what, class: block.max(1).ilog2() }
    }
}

impl fmt::Display for Shape {
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
pub(crate) enum CallMaker {
    Ours,
    Mpi,
}

/// What is to be done with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
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
    /// Seconds of the calls that we made and that MPI made.
    times: [Vec<f64>; 2],
    settled: Option<CallMaker>,
}

/// The contests of a communicator.
#[derive(Debug, Default)]
pub(crate) struct Contests(Mutex<BTreeMap<Shape, Contest>>);

/// A decision, with the seconds of both, for the report.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) ours: f64,
    pub(crate) theirs: f64,
    pub(crate) taken: bool,
}

/// Whether a result has the same bits whoever makes the call, where both combine two values to the same bits: data is
/// only moved, or its values combine exactly or in one order. Else a program would get other bits from one call to the
/// next.
pub(crate) fn is_same_from_both(call: &Call, nranks: u32) -> bool {
    let Call { collective, dtype, op, .. } = *call;
    let sums = matches!(op, ReduceOp::Sum | ReduceOp::Prod);
    !collective.reduces() || !dtype.is_float() || sums && nranks == 2
}

impl Contests {
    fn all(&self) -> MutexGuard<'_, BTreeMap<Shape, Contest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is to be done with the next call of a shape; `by_table` is the choice of the table.
    pub(crate) fn turn(&self, shape: Shape, by_table: bool) -> Turn {
        let mut all = self.all();
        let contest = all.entry(shape).or_default();
        if let Some(maker) = contest.settled {
            return Turn::Settled(maker);
        }
        let call = contest.calls;
        contest.calls += 1;
        let tried = if 1 << shape.class >= LONG { TRIED_LONG } else { TRIED };
        match call.checked_sub(BEFORE) {
            None => Turn::Settled(if by_table { CallMaker::Ours } else { CallMaker::Mpi }),
            Some(nth) if nth < tried => Turn::Tried(if (nth / TURN).is_multiple_of(2) {
                CallMaker::Ours
            } else {
                CallMaker::Mpi
            }),
            Some(_) => Turn::Due,
        }
    }

    /// Whether the shape is settled, so that equal calls need no other look.
    pub(crate) fn is_settled(&self, shape: Shape) -> bool {
        self.all().get(&shape).is_some_and(|contest| contest.settled.is_some())
    }

    /// Notes the time of a call on trial.
    pub(crate) fn note(&self, shape: Shape, maker: CallMaker, time: Duration) {
        if let Some(contest) = self.all().get_mut(&shape) {
            contest.times[maker as usize].push(time.as_secs_f64());
        }
    }

    /// Leaves all further calls of a shape to one of the two.
    pub(crate) fn settle(&self, shape: Shape, maker: CallMaker) {
        self.all().entry(shape).or_default().settled = Some(maker);
    }

    /// Has the ranks agree on the times, each the slowest rank's, and settles the shape.
    ///
    /// # Errors
    /// The errors of a call.
    pub(crate) fn agree(
        &self,
        shape: Shape,
        by_table: bool,
        rank: &mut Rank<'_>,
    ) -> Result<Verdict, Error> {
        let times = self
            .all()
            .get(&shape)
            .map_or([0.0; 2], |contest| [0, 1].map(|which| quartile(&contest.times[which])));
        let mut both = [0_u8; 16];
        for (bytes, time) in both.chunks_mut(8).zip(times) {
            bytes.copy_from_slice(&((time * 1e9) as u64).to_ne_bytes());
        }
        let (collective, op) = (Collective::AllReduce, ReduceOp::Max);
        let call = Call { collective, root: 0, count: 2, dtype: DType::U64, op };
        rank.call_bytes_in_place(call, &mut both)?;
        let seconds = |at: usize| {
            let bytes = both[8 * at..][..8].try_into().expect("8 bytes");
            u64::from_ne_bytes(bytes) as f64 / 1e9
        };
        let verdict = Verdict::new([seconds(0), seconds(1)], by_table);
        self.settle(shape, if verdict.taken { CallMaker::Ours } else { CallMaker::Mpi });
        Ok(verdict)
    }
}

impl Verdict {
    fn new([ours, theirs]: [f64; 2], by_table: bool) -> Self {
        let chance = theirs * CHANCE;
        let taken = if by_table { ours <= theirs + chance } else { ours < theirs - chance };
        Self { ours, theirs, taken }
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
    fn tried(contests: &Contests, shape: Shape, by_table: bool) -> Vec<CallMaker> {
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
            let shape = Shape::new(MpiCollective::Allreduce, block);
            let tried = tried(&contests, shape, block == LONG);
            assert_eq!(tried.len() as u64, calls);
            assert_eq!(
                tried.iter().filter(|maker| **maker == CallMaker::Ours).count() * 2,
                tried.len()
            );
            contests.settle(shape, CallMaker::Mpi);
            assert_eq!(contests.turn(shape, true), Turn::Settled(CallMaker::Mpi));
            assert!(contests.is_settled(shape));
            let other = Shape::new(MpiCollective::Allreduce, 2 * block);
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
