//! Entering a call, being refused, and leaving while another rank is inside. A window has three calls here.

use std::time::Duration;

use loom::sync::Arc;
use loom::thread;
use roundelay_core::ids::RankId;

use crate::error::Error;
use crate::model_memory::{ModelledMemory, check, within};
use crate::options::Options;
use crate::threads::calls::Calls;
use crate::threads::needs::Needs;

/// Ranks, and a caller's buffer of each.
struct Ranks {
    calls: std::sync::Arc<Calls>,
    buffers: [ModelledMemory; 3],
}

const ZERO: RankId = RankId(0);
const ONE: RankId = RankId(1);
const TWO: RankId = RankId(2);

/// Two shapes of calls.
const THIS: u32 = 0;
const THAT: u32 = 1;

impl Ranks {
    fn new(nranks: u32) -> Arc<Self> {
        // loom's clocks stand still.
        let options = Options::new().deadline(Duration::MAX);
        let calls = Calls::new(nranks, options).expect("the number of ranks is allowed");
        Arc::new(Self {
            calls,
            buffers: [ModelledMemory::new(), ModelledMemory::new(), ModelledMemory::new()],
        })
    }

    /// Makes a call in which the rank does `inside`, once it has met the ranks of `needs`.
    fn call(
        &self,
        rank: RankId,
        shape: u32,
        needs: &[RankId],
        inside: impl FnOnce(),
    ) -> Result<(), Error> {
        let needs = Needs::Some(needs.into());
        let active = self.calls.enter(rank, shape, &needs, || {})?;
        inside();
        active.end(Ok(()))
    }
}

#[test]
fn who_has_met_a_rank_sees_its_buffers() {
    check(|| {
        let ranks = Ranks::new(2);
        let other = Arc::clone(&ranks);
        let other = thread::spawn(move || {
            other.buffers[1].raise();
            other.call(ONE, THIS, &[], || {})
        });
        let seen = || assert_eq!(ranks.buffers[1].get(), 1);
        assert_eq!(ranks.call(ZERO, THIS, &[ONE], seen), Ok(()));
        assert_eq!(other.join().unwrap(), Ok(()));
    });
}

#[test]
fn a_rank_that_is_ahead_waits_for_room_and_each_call_meets_its_own() {
    // Longer than the others, so with fewer preemptions.
    within(2, || {
        let ranks = Ranks::new(2);
        let other = Arc::clone(&ranks);
        let other = thread::spawn(move || {
            for shape in [THIS, THAT, THAT, THAT] {
                assert_eq!(other.call(ONE, shape, &[], || {}), Ok(()));
            }
        });
        for shape in [THIS, THAT] {
            assert_eq!(ranks.call(ZERO, shape, &[ONE], || {}), Ok(()));
        }
        other.join().unwrap();
    });
}

#[test]
fn two_that_differ_are_both_told() {
    check(|| {
        let ranks = Ranks::new(2);
        let other = Arc::clone(&ranks);
        let other = thread::spawn(move || other.call(ONE, THAT, &[ZERO], || panic!("inside")));
        let mine = ranks.call(ZERO, THIS, &[ONE], || panic!("inside"));
        let theirs = other.join().unwrap();
        assert!(matches!(mine, Err(Error::CallsDiffer(_))), "{mine:?}");
        assert_eq!(mine, theirs);
    });
}

/// Makes ranks of which rank 2 has made another call, for which it did not need the others.
fn with_an_odd_one() -> Arc<Ranks> {
    let ranks = Ranks::new(3);
    assert_eq!(ranks.call(TWO, THAT, &[], || {}), Ok(()));
    ranks
}

#[test]
fn a_rank_that_is_refused_returns_when_nobody_visits_it() {
    check(|| {
        let ranks = with_an_odd_one();
        let guest = Arc::clone(&ranks);
        let guest = thread::spawn(move || {
            // The guest learns that the call is void before its access, or during it, or never.
            _ = guest.call(ZERO, THIS, &[ONE], || guest.buffers[1].raise());
        });
        let refused = ranks.call(ONE, THIS, &[TWO], || panic!("inside"));
        assert!(matches!(refused, Err(Error::CallsDiffer(_))), "{refused:?}");
        // The caller has its buffer back: loom reports it if the guest may still access it.
        ranks.buffers[1].raise();
        guest.join().unwrap();
    });
}

#[test]
fn a_rank_that_panics_returns_when_nobody_visits_it() {
    check(|| {
        let ranks = Ranks::new(2);
        let guest = Arc::clone(&ranks);
        let guest = thread::spawn(move || {
            _ = guest.call(ZERO, THIS, &[ONE], || guest.buffers[1].raise());
        });
        // Dropped without an end, as by a panic.
        drop(ranks.calls.enter(ONE, THIS, &Needs::Some([].into()), || {}));
        ranks.buffers[1].raise();
        guest.join().unwrap();
        let later = ranks.call(ONE, THIS, &[], || panic!("inside"));
        assert!(matches!(later, Err(Error::Abandoned { by: ONE, .. })), "{later:?}");
    });
}

#[test]
fn whoever_waits_for_a_refused_call_hears_of_it() {
    check(|| {
        let ranks = with_an_odd_one();
        let waits = Arc::clone(&ranks);
        // Nothing but the refusal ends this wait.
        let waits = thread::spawn(move || {
            let active = waits.calls.enter(ZERO, THIS, &Needs::Some([ONE].into()), || {})?;
            assert!(waits.calls.listen(ZERO, || active.ends()));
            let why = active.goes_on();
            active.end(why)
        });
        let mine = ranks.call(ONE, THIS, &[TWO], || panic!("inside"));
        assert_eq!(waits.join().unwrap(), mine);
        assert!(matches!(mine, Err(Error::CallsDiffer(_))), "{mine:?}");
    });
}
