//! Random programs: right ones have a form, which gives equal bits.

use fastrand::Rng;
use roundelay_core::messages::TwoSided;
use roundelay_core::schedule::text;
use roundelay_core::verify::{Callers, Proved};
use roundelay_oracles::judge;

use super::same_bits;
use crate::proof::random::some;

/// Programs tried; `ROUNDELAY_CASES` asks for another number.
const CASES: u64 = 700;

#[test]
fn of_random_programs() {
    let (mut right, mut messages, mut judged) = (0, 0, 0);
    let mut random = Rng::with_seed(2);
    for (source, schedule) in some(CASES, 1 << 40) {
        // One call of all ranks needs fewer signals; messages need none.
        let one = || Proved::for_callers(schedule.clone(), Callers::One);
        let Ok(author) = Proved::new(schedule.clone()).or_else(|_| one()) else { continue };
        let what = || format!("{source}\n{}", text::print(author.schedule()));
        let form = TwoSided::new(&author).unwrap_or_else(|found| panic!("{found:#?} {}", what()));
        same_bits(&author, &form, &mut random, &what());
        // The oracles share nothing with the proof.
        if let Some(opinion) = judge(form.schedule()) {
            assert_eq!(opinion.objections, [], "{}\n{}", what(), text::print(form.schedule()));
            judged += 1;
        }
        right += 1;
        messages += form.messages().len();
    }
    println!("{right} right, {messages} messages, {judged} judged");
    assert!(right > 100 && messages > 800 && judged > 100, "{right} {messages} {judged}");
}
