//! Signal elision of random programs: the proof and the oracles find no fault in the remaining signals, joined or not,
//! and find one if any of these signals is removed.

use roundelay_core::ids::OpId;
use roundelay_core::optimize::elide::{Why, elide};
use roundelay_core::optimize::join;
use roundelay_core::schedule::switch::as_moves;
use roundelay_core::schedule::{Schedule, legality, text};
use roundelay_core::verify::Callers;
use roundelay_core::verify::{Signals, verify_called};
use roundelay_oracles::judge;

use crate::proof::mutation::delete;
use crate::proof::random::some;

/// Programs tried; `ROUNDELAY_CASES` asks for another number.
const CASES: u64 = 1_100;

fn right(schedule: &Schedule, callers: Callers) -> bool {
    verify_called(schedule, Signals::default(), callers).is_ok()
}

/// Without a post and its wait.
fn without(schedule: &Schedule, post: OpId, wait: OpId) -> Schedule {
    let mut less = schedule.clone();
    for at in [post.max(wait), post.min(wait)] {
        delete(&mut less, at.index());
    }
    less
}

#[test]
fn of_random_programs() {
    let [mut tried, mut dropped, mut kept, mut fewer] = [0; 4];
    for (source, schedule) in some(CASES, 1 << 32) {
        // An engine's schedule has no switch; the order of its sums is of an op, whose number changes.
        let schedule = as_moves(&schedule);
        for callers in [Callers::Each, Callers::One] {
            if !right(&schedule, callers) {
                continue;
            }
            let what = || format!("{callers:?}\n{source}\n{}", text::print(&schedule));
            let few = elide(&schedule, callers).unwrap_or_else(|f| panic!("{f:#?} {}", what()));
            assert!(few.least && few.unchanged.is_none(), "{}", what());
            assert_eq!(legality::check(&few.schedule), Ok(()), "{}", what());
            assert!(right(&few.schedule, callers), "{}", what());
            if callers == Callers::Each
                && let Some(opinion) = judge(&few.schedule)
            {
                assert_eq!(opinion.objections, [], "{}", what());
            }
            let joined = join(&few.schedule);
            assert_eq!(legality::check(&joined), Ok(()), "{}", what());
            let proved = verify_called(&joined, Signals::default(), callers);
            let proved = proved.unwrap_or_else(|f| panic!("joined: {f:#?} {}", what()));
            let author =
                verify_called(&schedule, Signals::default(), callers).expect("it is right");
            assert_eq!(author.orders.differs(&proved.orders), None, "{}", what());
            if callers == Callers::Each
                && let Some(opinion) = judge(&joined)
            {
                assert_eq!(opinion.objections, [], "joined: {}", what());
            }
            fewer += usize::from(joined.ops.len() < few.schedule.ops.len());
            for signal in few.kept.iter().filter(|kept| kept.why != Why::Stream) {
                let less = without(&few.schedule, signal.post, signal.wait);
                assert!(!right(&less, callers), "{signal:?} is not needed, {}", what());
                kept += 1;
            }
            dropped += few.dropped;
            tried += 1;
        }
    }
    println!("{tried} right, {kept} signals kept, {dropped} dropped, {fewer} with moves joined");
    assert!(
        tried > 100 && kept > 100 && dropped > 100 && fewer > 0,
        "{tried} {kept} {dropped} {fewer}"
    );
}
