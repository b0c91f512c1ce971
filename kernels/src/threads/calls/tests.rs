//! Call numbers too large for their word, refusals one after the other, ranks that are ahead.

use std::sync::atomic::Ordering;

use roundelay_core::ids::RankId;

use super::Calls;
use crate::call_numbers::{LOW, WINDOW};
use crate::error::Error;
use crate::options::Options;
use crate::threads::needs::Needs;

const RANKS: [RankId; 2] = [RankId(0), RankId(1)];

/// Makes a call of each rank; the first rank does not wait for the second.
fn both(calls: &Calls, shapes: [u32; 2]) -> Result<(), Error> {
    calls.enter(RANKS[0], shapes[0], &Needs::Some([].into()), || {})?.end(Ok(()))?;
    calls.enter(RANKS[1], shapes[1], &Needs::All, || {})?.end(Ok(()))
}

#[test]
fn numbers_that_no_longer_fit_a_word() {
    let calls = Calls::new(2, Options::new()).expect("two ranks");
    let first = (1 << (64 - LOW)) - 5;
    for rank in RANKS {
        calls.seat(rank).own.0.number.store(first, Ordering::Relaxed);
        crate::sync::lock(&calls.seat(rank).own.0.numbers).made = first;
    }
    for turn in 0..4 * WINDOW as u32 {
        assert_eq!(both(&calls, [turn % 3; 2]), Ok(()), "{turn}");
    }
    let error = both(&calls, [0, 1]).expect_err("the calls differ");
    assert!(matches!(error, Error::CallsDiffer(_)), "{error}");
}

/// Ranks come in the order of their numbers, from the first or from the last: a rank that waits for all of them falls
/// asleep only a few times.
#[test]
fn whoever_waits_for_all_is_woken_a_few_times() {
    for n in [2, 3, 64, 1000, 1024, 4099] {
        let calls = Calls::new(n, Options::new()).expect("ranks");
        for rank in [0, 1, n / 2, n - 1].map(RankId) {
            let others: Vec<u32> = calls.others(rank).map(|other| other.0).collect();
            let mut sorted = others.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq((0..n).filter(|other| *other != rank.0)), "{n}");
            for last in [0, n - 1] {
                let (mut slept, mut come) = (0, None);
                for other in &others {
                    let at = other.abs_diff(last);
                    if come.is_none_or(|come| at > come) {
                        (slept, come) = (slept + 1, Some(at));
                    }
                }
                assert!(slept <= 20, "{slept} of {n}");
            }
        }
    }
}

#[test]
fn each_rank_is_told_once_and_then_calls_are_as_good_as_ever() {
    let calls = Calls::new(2, Options::new()).expect("two ranks");
    for _ in 0..3 * WINDOW {
        let Err(Error::CallsDiffer(now)) = both(&calls, [3, 4]) else { panic!("the calls differ") };
        let Err(Error::CallsDiffer(late)) = both(&calls, [3, 3]) else {
            panic!("the first rank is told late")
        };
        assert_eq!((now.late, late.late), (None, Some(RANKS[0])));
        assert_eq!((now.number, &now.calls), (late.number, &late.calls));
        assert_eq!(both(&calls, [3, 3]), Ok(()));
        assert_eq!(both(&calls, [5, 5]), Ok(()));
    }
}

#[test]
fn a_rank_gets_no_further_ahead_than_can_be_read() {
    let short = Options::new().deadline(std::time::Duration::from_millis(5));
    let calls = Calls::new(2, short).expect("two ranks");
    let alone = || {
        let active = calls.enter(RANKS[0], 0, &Needs::Some([].into()), || {})?;
        active.end(Ok(()))
    };
    for turn in 1..WINDOW {
        assert_eq!(alone(), Ok(()), "{turn}");
    }
    let Err(Error::Missing(missing)) = alone() else { panic!("rank 1 makes no call") };
    assert_eq!((missing.missing, missing.number, missing.waits_in), (RANKS[1], 1, WINDOW));
    assert!(matches!(alone(), Err(Error::Abandoned { .. })));
}

#[test]
fn shapes_that_a_rank_is_still_to_come_to() {
    let calls = Calls::new(2, Options::new()).expect("two ranks");
    let one = |rank, shape| {
        let active = calls.enter(rank, shape, &Needs::Some([].into()), || {})?;
        active.end(Ok(()))
    };
    for shape in 1..4 {
        assert_eq!(one(RANKS[0], shape), Ok(()));
    }
    assert!((1..4).all(|shape| calls.awaits(shape)) && !calls.awaits(4));
    assert_eq!(one(RANKS[1], 1), Ok(()));
    assert_eq!(one(RANKS[1], 2), Ok(()));
    assert_eq!((1..4).map(|shape| calls.awaits(shape)).collect::<Vec<_>>(), [false, true, true]);
}
