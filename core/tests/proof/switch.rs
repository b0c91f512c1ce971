//! Moves by a switch: their proof, their open order, and the moves of ranks that stand for them.

use roundelay_core::schedule::switch::as_moves_by;
use roundelay_core::schedule::text;
use roundelay_core::values::order_class::OrderClass;
use roundelay_core::verify::{Proved, Reduction, Sameness, verify};
use roundelay_oracles::wrong;

use crate::proof::programs::{ONE_SHOT_SWITCH, RIGHT, SWITCH, SWITCH_ALL_GATHER, SWITCH_ROOTED};
use crate::proof::schedule;

/// The programs whose moves a switch makes.
const PROGRAMS: [&str; 4] = [SWITCH, ONE_SHOT_SWITCH, SWITCH_ALL_GATHER, SWITCH_ROOTED];

#[test]
fn ranks_can_stand_for_a_switch_in_any_order() {
    for source in PROGRAMS {
        assert!(RIGHT.iter().any(|(right, _)| *right == source));
        for nranks in (1..=9).chain([17, 23]) {
            let written = schedule(source, nranks);
            assert!(written.has_switch());
            for seed in 0..4 {
                let moves = as_moves_by(&written, seed);
                assert!(!moves.has_switch());
                let proof = verify(&moves);
                assert!(proof.is_ok(), "{nranks} ranks, seed {seed}: {proof:#?}\n{source}");
                if nranks <= 3 {
                    assert_eq!(wrong(&moves, 6, false), None, "{nranks} ranks\n{source}");
                }
            }
        }
    }
}

/// An engine's schedule has one order, and the proof promises that of the switch.
#[test]
fn the_order_of_a_switch_is_open() {
    let order = |source| {
        let written = schedule(source, 4);
        assert!(written.has_switch());
        let proved = Proved::new(written).expect("it is right");
        assert!(!proved.schedule().has_switch());
        proved.proof().reduction.clone().expect("it reduces")
    };
    let (two, one) = (order(SWITCH), order(ONE_SHOT_SWITCH));
    let [both, own] = [&two, &one].map(Reduction::in_every_mode);
    assert!(!both.every_run && !own.every_run);
    assert_eq!((both.ranks, own.ranks), (Sameness::Exact, Sameness::Differs));
    for order in [both, own] {
        let open = (order.elements, order.counts, order.in_rank_order);
        assert_eq!(open, (Sameness::Differs, Sameness::Differs, false));
        // One rounding that need not be to the nearest counts as two.
        assert_eq!((order.roundings, order.depth), (2, 3));
    }
    let witness = two.witness(OrderClass::AllElements).expect("the order is open");
    assert_eq!(witness.orders, ["{0 1 2 3}"; 2]);
}

#[test]
fn more_ranks_than_a_switch_takes_are_refused() {
    assert!(crate::proof::lay_out(SWITCH, 255).is_ok());
    let found = crate::proof::lay_out(SWITCH, 256).expect_err("too many ranks");
    assert!(found[0].title.contains("256 ranks, and takes at most 255"), "{}", found[0].title);
}

/// A region that differs from rank to rank is no region of all ranks, whatever wrote the schedule.
#[test]
fn texts_of_moves_that_no_switch_makes_are_illegal() {
    let text = text::print(&schedule(SWITCH, 3));
    let line = "switch 0.output[0..1/3], 1.output[0..1/3], 2.output[0..1/3]";
    for (from, to) in [
        (line.to_owned(), line.replace("2.output[0..1/3]", "2.output[1/3..2/3]")),
        (line.to_owned(), line.replace("2.output", "1.output")),
    ] {
        assert!(text.contains(&from));
        let wrong = text::parse(&text.replacen(&from, &to, 1)).expect("it is a schedule");
        let found = verify(&wrong).expect_err("no switch moves this");
        assert!(found[0].title.contains("switch"), "{}", found[0].title);
    }
}
