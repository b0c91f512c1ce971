//! Proofs are kept by content, and dropped one by one; facts that a proof finds by the way are kept beside the schedule.

use std::sync::Arc;

use roundelay_core::certificate::Certificate;
use roundelay_core::schedule::{Schedule, text};
use roundelay_core::stages::record;
use roundelay_core::verify::{Proof, Proved, Signals};

/// A schedule with a content of its own.
fn named(name: &str) -> Schedule {
    let text = format!(
        "schedule {name} AllGather nranks 1 root 0\nrank 0 stream 0\n  copy 0.input[0..1] -> 0.output[0..1] @0\n"
    );
    text::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// More proofs than a process keeps are made: those of the last thousand are known all the time, and the first is dropped.
#[test]
fn proofs_are_dropped_one_by_one() {
    let prove = |nth: usize| -> Arc<Proof> {
        Proved::new(named(&format!("Kept{nth}"))).expect("it is right").proof().clone()
    };
    let mut proofs = Vec::new();
    for nth in 0..6000_usize {
        proofs.push(prove(nth));
        if let Some(before) = nth.checked_sub(1000) {
            assert!(Arc::ptr_eq(&proofs[before], &prove(before)), "{before} at {nth}");
        }
    }
    assert!(!Arc::ptr_eq(&proofs[0], &prove(0)), "as many are kept as were made");
}

/// The stages of a certificate.
fn stages(proved: &Proved) -> Vec<&'static str> {
    let (_, spent) = record(|| Certificate::of_proved(proved, Signals::default()));
    spent.into_iter().map(|(stage, _)| stage).collect()
}

#[test]
fn the_order_of_events_is_found_once() {
    let proved = Proved::new(named("Ordered")).expect("it is right");
    assert_eq!(stages(&proved), ["messages", "blocks"], "the proof found the order");
    assert_eq!(stages(&proved), ["messages"], "blocks are found once, too");
    assert!(Arc::ptr_eq(&proved.order(), &proved.clone().order()), "clones share it");
    let again = Proved::new(named("Ordered")).expect("it is right");
    assert!(Arc::ptr_eq(proved.proof(), again.proof()));
    assert_eq!(stages(&again), ["messages", "order", "blocks"], "a known proof has no order");
    assert_eq!(stages(&again), ["messages"]);
    assert_eq!(again.steps().expect("few cells"), [0]);
}
