//! A faulty constructor: its form is broken before the check, and a form that passes all the same gives the author's
//! bits.

use fastrand::Rng;
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_core::layout::Algorithm as _;
use roundelay_core::messages::{Action, TwoSided};
use roundelay_core::schedule::Schedule;
use roundelay_core::verify::Proved;

use super::{admitted, library, of_library, of_text, same_bits};

const ANY: usize = usize::MAX;

/// Whether an action is one of a kind.
type Kind = fn(Action) -> bool;

/// Returns the reason why the form of `author` is refused when `breaks` changes it.
fn refused(author: &Proved, breaks: impl Fn(&mut Schedule, &mut [Vec<Action>])) -> String {
    let found = TwoSided::new_with(author, ANY, breaks).expect_err("it is broken");
    assert_eq!((found.len(), found[0].code), (1, Code::Unproved));
    assert_eq!(found[0].notes, ["this is a fault of the compiler, not of the program"]);
    found[0].title.clone()
}

fn assert_refused(author: &Proved, why: &str, breaks: impl Fn(&mut Schedule, &mut [Vec<Action>])) {
    let told = refused(author, breaks);
    assert!(told.contains(why), "{told}");
}

/// Takes the action at `from` to where `to` stood.
fn shift(actions: &mut Vec<Action>, from: usize, to: usize) {
    let action = actions.remove(from);
    actions.insert(to, action);
}

fn find(actions: &[Action], from: usize, is: Kind) -> usize {
    from + actions[from..].iter().position(|action| is(*action)).expect("there is one")
}

fn is_move(action: Action) -> bool {
    matches!(action, Action::Move(_))
}

fn is_send(action: Action) -> bool {
    matches!(action, Action::Send(_))
}

fn is_sent(action: Action) -> bool {
    matches!(action, Action::Sent(_))
}

fn is_received(action: Action) -> bool {
    matches!(action, Action::Received(_))
}

#[test]
fn a_send_before_its_data() {
    let ring = of_library("RingAllReduce", 4);
    // Over the fold that makes it, and over the receive that brings it.
    assert_refused(&ring, "writes what is under way: output", |_, actions| {
        let actions = &mut actions[1];
        let first = find(actions, 0, is_send);
        let second = find(actions, first + 1, is_send);
        let fold = (0..second).rev().find(|at| is_move(actions[*at])).expect("a fold");
        shift(actions, second, fold);
    });
    let gather = of_library("RingAllGather", 4);
    assert_refused(&gather, "reads what is not received yet: output", |_, actions| {
        let actions = &mut actions[1];
        let received = find(actions, 0, is_received);
        let send = find(actions, received, is_send);
        shift(actions, send, received);
    });
}

#[test]
fn an_end_that_is_missing_double_or_late() {
    let ring = of_library("RingAllReduce", 4);
    let ends = "does not begin and end at both ends";
    let all: [(Kind, &str); 3] = [(is_send, "out of turn"), (is_sent, ends), (is_received, ends)];
    for (is, why) in all {
        assert_refused(&ring, why, |_, actions| {
            let at = find(&actions[1], 0, is);
            actions[1].remove(at);
        });
        assert_refused(&ring, "out of turn", |_, actions| {
            let at = find(&actions[1], 0, is);
            let action = actions[1][at];
            actions[1].push(action);
        });
        assert_refused(&ring, "out of turn", |_, actions| {
            let at = find(&actions[1], 0, is);
            let action = actions[1].remove(at);
            actions[2].push(action);
        });
    }
    // The end of a send that is overwritten.
    assert_refused(&ring, "writes what is under way: output", |_, actions| {
        let actions = &mut actions[1];
        let sent = find(actions, 0, is_sent);
        let Action::Sent(id) = actions[sent] else { unreachable!() };
        // All of one lane stay in order, and end with the last.
        let mut ends: Vec<Action> = actions.extract_if(.., |a| is_sent(*a)).collect();
        assert_eq!(ends[0], Action::Sent(id));
        actions.append(&mut ends);
    });
    // A receive that ends after its data is folded.
    assert_refused(&ring, "reads what is not received yet: received0", |_, actions| {
        let actions = &mut actions[1];
        let received = find(actions, 0, is_received);
        let fold = find(actions, received, is_move);
        shift(actions, received, fold);
    });
}

#[test]
fn messages_that_cross_each_other() {
    let gather = of_library("RingAllGather", 4);
    assert_refused(&gather, "from rank 0 to rank 1 cross each other", |_, actions| {
        let begins: Vec<usize> = (0..actions[1].len())
            .filter(|at| matches!(actions[1][*at], Action::Receive(_)))
            .collect();
        actions[1].swap(begins[0], begins[1]);
    });
}

/// A send that ends before its receive is waited for ends never where all do so.
#[test]
fn sends_that_wait_for_each_other() {
    assert_refused(&of_library("RingAllReduce", 4), "[E0301]", |_, actions| {
        for actions in actions {
            let ends: Vec<Action> = actions.extract_if(.., |a| is_sent(*a)).collect();
            for end in ends {
                let Action::Sent(id) = end else { unreachable!() };
                let send = actions.iter().position(|action| *action == Action::Send(id));
                actions.insert(send.expect("it begins") + 1, end);
            }
        }
    });
}

#[test]
fn another_order_and_other_memory() {
    let (fold, _) = of_text(
        "schedule Some Reduce nranks 3 root 0 out_of_place
rank 0 stream 0
  wait ack 1->0 @0
  wait ack 2->0 @0
  fold 0.input[0..1], 1.input[0..1], 2.input[0..1] -> 0.output[0..1] @0
  post data 0->1 @0
  post data 0->2 @0
rank 1 stream 0
  post ack 1->0 @0
  wait data 0->1 @0
rank 2 stream 0
  post ack 2->0 @0
  wait data 0->2 @0
",
    );
    let of_fold = |form: &Schedule| form.operands.len() - 4;
    assert_refused(&fold, "is reduced in another order", |form, _| {
        let first = of_fold(form);
        form.operands.swap(first + 1, first + 2);
    });
    // Two operands commute bit for bit.
    let swapped = |form: &mut Schedule, _: &mut [Vec<Action>]| {
        let first = of_fold(form);
        form.operands.swap(first, first + 1);
    };
    assert!(TwoSided::new_with(&fold, ANY, swapped).is_ok());
    assert_refused(&fold, "and its schedule does not", |form, _| {
        let first = of_fold(form);
        form.operands[first + 1].rank = RankId(1);
    });
    assert_refused(&fold, "[E0304]", |form, _| {
        let first = of_fold(form);
        form.operands[first + 1] = form.operands[first + 2];
    });
    assert_refused(&fold, "[E03", |_, actions| {
        let at = find(&actions[0], 0, is_move);
        actions[0].remove(at);
    });
}

/// Any action at any other place of its rank: a form that passes is as good.
#[test]
fn actions_out_of_place() {
    let [mut wrong, mut right] = [0; 2];
    let mut random = Rng::with_seed(3);
    for algorithm in library() {
        for nranks in [2, 3, 4] {
            let Some(author) = admitted(&algorithm, nranks) else { continue };
            for _ in 0..6 {
                let [rank, from, by] = [random.u64(..), random.u64(..), random.u64(..)];
                let breaks = |_: &mut Schedule, actions: &mut [Vec<Action>]| {
                    let actions = &mut actions[rank as usize % nranks as usize];
                    let len = actions.len();
                    if len > 1 {
                        let from = from as usize % len;
                        shift(actions, from, (from + 1 + by as usize % 4) % len);
                    }
                };
                match TwoSided::new_with(&author, ANY, breaks) {
                    Err(found) => {
                        assert_eq!(found[0].code, Code::Unproved, "{found:#?}");
                        wrong += 1;
                    }
                    Ok(form) => {
                        same_bits(&author, &form, &mut random, algorithm.name());
                        right += 1;
                    }
                }
            }
        }
    }
    println!("{wrong} refused, {right} do no harm");
    assert!(wrong > 200 && right > 100, "{wrong} refused, {right} do no harm");
}
