//! The stages of a proof: their times, and who watches or stops them.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use roundelay_core::stages::{record, report, stage, until, watch};

#[test]
fn calls_of_a_stage_add_up() {
    let pause = || std::thread::sleep(Duration::from_millis(2));
    let (value, spent) = record(|| {
        stage("a", pause);
        stage("b", || ());
        stage("a", pause);
        7
    });
    assert_eq!(value, 7);
    let names: Vec<_> = spent.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(spent[0].1 >= Duration::from_millis(4));
    assert_eq!(stage("c", || 8), 8, "no caller records");
}

#[test]
fn work_is_stopped_in_a_stage_and_goes_on_elsewhere() {
    let told = Rc::new(RefCell::new(0));
    let seen = told.clone();
    let watcher = move |_, parts, _| *seen.borrow_mut() = parts;
    let outcome = watch(watcher, || {
        let all = |of: usize| stage("a", || (0..of).for_each(|part| report(part, of)));
        let keep = told.clone();
        let stopped = until(move || *keep.borrow() > 5000, || all(10_000));
        assert_eq!((stopped, *told.borrow()), (None, 8192));
        assert_eq!(until(|| true, || 7), Some(7), "no stage begins");
        until(|| false, || all(10_000))
    });
    assert_eq!(outcome, Some(()));
    stage("b", || report(4096, 4096));
    assert_eq!(*told.borrow(), 8192, "nobody watches any more");
    let other = std::panic::catch_unwind(|| until(|| false, || panic!("another reason")));
    assert!(other.is_err());
}

#[test]
fn who_watches_is_told_how_far_a_stage_is() {
    let told = Rc::new(RefCell::new(Vec::new()));
    let keep = told.clone();
    let value = watch(
        move |name, parts, _| keep.borrow_mut().push((name, parts)),
        || {
            stage("a", || ());
            stage("b", || (1..=10_000).for_each(|part| report(part, 10_000)));
            7
        },
    );
    stage("c", || report(4096, 4096));
    assert_eq!(value, 7);
    assert_eq!(*told.borrow(), [("a", 0), ("b", 0), ("b", 4096), ("b", 8192)]);
}
