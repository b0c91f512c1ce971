//! Faulty passes: the results of fusion or elision are broken before the check, and schedules that pass all the same
//! must be right, and reduce in the author's order.

use roundelay_core::optimize::{Goal, Level, optimize, optimize_with};
use roundelay_core::schedule::{OpKind, Schedule, legality, text};
use roundelay_core::verify::Callers;
use roundelay_core::verify::Proved;
use roundelay_oracles::judge;

use crate::proof::mutation::CLASSES;
use crate::proof::programs::{ONE_MODE, RIGHT};
use crate::proof::schedule;

const EACH: Goal = Goal { level: Level::O2, callers: Callers::Each, reassociate: false };

/// The stride between mutants that are tried.
const STRIDE: usize = 17;

#[test]
fn what_a_broken_pass_makes_is_refused() {
    let [mut refused, mut equal] = [0; 2];
    for level in [Level::O1, Level::O2] {
        let goal = Goal { level, ..EACH };
        for (source, refuses) in RIGHT {
            for nranks in (2..=3).filter(|n| !refuses(*n)) {
                let author = Proved::new(schedule(source, nranks)).expect("it is right");
                let made = optimize(&author, goal).expect("a pass that is right is let through");
                if made.level != level {
                    continue;
                }
                let mutants = CLASSES.iter().flat_map(|(_, mutate)| mutate(&made.schedule));
                for mutant in mutants.step_by(STRIDE) {
                    let breaks = |made: &mut Schedule| *made = mutant.clone();
                    if optimize_with(&author, goal, breaks).is_err() {
                        refused += 1;
                        continue;
                    }
                    equal += 1;
                    assert_eq!(legality::check(&mutant), Ok(()));
                    let opinion = judge(&mutant).expect("coarse cuts");
                    let any_mode = author.proof().one_mode.is_none();
                    let mixed = opinion.mixed.as_ref().filter(|_| any_mode);
                    let found = opinion.objections.first().or(mixed);
                    assert_eq!(found, None, "{}", text::print(&mutant));
                }
            }
        }
    }
    println!("{refused} refused, {equal} do no harm");
    assert!(refused > 300 && equal > 50, "{refused} refused, {equal} do no harm");
}

/// The ring with three ranks or more folds in an order that differs from piece to piece.
fn ring() -> Proved {
    Proved::new(schedule(RIGHT[0].0, 4)).expect("it is right")
}

/// A pass that folds contributions in another order than the author is refused, unless that was asked for.
#[test]
fn another_order_is_refused() {
    for callers in [Callers::One, Callers::Each] {
        let goal = Goal { callers, ..EACH };
        let turned = |made: &mut Schedule| {
            let folds = made.ops.iter().filter(|op| op.kind == OpKind::Move && op.srcs > 2);
            let last: Vec<usize> = folds.map(|op| (op.arg + u32::from(op.srcs)) as usize).collect();
            assert!(!last.is_empty(), "something is folded");
            for at in last {
                made.operands.swap(at - 1, at - 2);
            }
        };
        let refused = optimize_with(&ring(), goal, turned).expect_err("the bits would differ");
        let why = refused.to_string();
        assert!(why.contains("reduced in another order"), "{why}");
        let any = Goal { reassociate: true, ..goal };
        assert!(optimize_with(&ring(), any, turned).is_ok(), "it was asked for");
        // Two operands commute bit for bit.
        let swapped = |made: &mut Schedule| {
            let folds = made.ops.iter().filter(|op| op.kind == OpKind::Move && op.srcs > 1);
            let first: Vec<usize> = folds.map(|op| op.arg as usize).collect();
            for at in first {
                made.operands.swap(at, at + 1);
            }
        };
        assert!(optimize_with(&ring(), goal, swapped).is_ok());
    }
}

#[test]
fn another_promise_is_refused() {
    let promises = |made: &mut Schedule| made.out_of_place = true;
    let refused = optimize_with(&ring(), EACH, promises).expect_err("it had a form in place");
    assert!(refused.to_string().contains("promises something else"), "{refused}");
}

/// A schedule that computes another result in place is not fused: fusion knows one meaning of it.
#[test]
fn what_runs_in_one_mode_is_not_fused() {
    let author = Proved::new(schedule(ONE_MODE, 2)).expect("right in one mode");
    let made = optimize(&author, Goal { callers: Callers::One, ..EACH }).expect("nothing is made");
    assert_eq!(made.level, Level::O1);
    assert_eq!(made.proof.one_mode.is_some(), author.proof().one_mode.is_some());
    assert!(made.unfit.is_some());
}
