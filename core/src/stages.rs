//! The stages of a proof: their times, how far they are, and their end before the last stage. Only a recorded proof is
//! timed, and the functions of the pipeline need not know whether a caller records, watches or stops them.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A stage of the pipeline and its time, over all calls.
pub type Spent = (&'static str, Duration);

/// The function that gets the name of the running stage, the parts of it that are done, and all its parts; it returns
/// whether the work goes on.
type Watcher = Rc<dyn Fn(&'static str, usize, usize) -> bool>;

/// The payload of the unwinding that ends work that does not go on.
struct WorkStopped;

thread_local! {
    static RECORD: RefCell<Option<Vec<Spent>>> = const { RefCell::new(None) };
    static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
    static GOES_ON: Cell<&'static str> = const { Cell::new("") };
}

/// Runs `work` and returns its result. When a stage begins on this thread, and now and then in a long stage, `watcher`
/// gets its name, the parts of it that are done, and all its parts, which are ops of the schedule in long stages.
pub fn watch<T>(
    watcher: impl Fn(&'static str, usize, usize) + 'static,
    work: impl FnOnce() -> T,
) -> T {
    watched(
        move |name, parts, of| {
            watcher(name, parts, of);
            true
        },
        work,
    )
}

/// Runs `work` and returns its result; `None` where `stop` holds when a stage begins on this thread, or now and then in
/// a long stage: then the work ends there.
pub fn until<T>(stop: impl Fn() -> bool + 'static, work: impl FnOnce() -> T) -> Option<T> {
    // A caller that watches goes on watching.
    let outer = WATCHER.with_borrow(Clone::clone);
    let go_on = move |name, parts, of| {
        outer.as_ref().is_none_or(|watcher| watcher(name, parts, of)) && !stop()
    };
    match catch_unwind(AssertUnwindSafe(|| watched(go_on, work))) {
        Ok(done) => Some(done),
        Err(payload) if payload.is::<WorkStopped>() => None,
        Err(payload) => resume_unwind(payload),
    }
}

fn watched<T>(
    watcher: impl Fn(&'static str, usize, usize) -> bool + 'static,
    work: impl FnOnce() -> T,
) -> T {
    /// Restores the earlier watcher, also where the work is stopped.
    struct Back(Option<Watcher>);
    impl Drop for Back {
        fn drop(&mut self) {
            WATCHER.set(self.0.take());
        }
    }
    let _back = Back(WATCHER.replace(Some(Rc::new(watcher))));
    work()
}

/// Reports that `parts` of the `of` parts of the running stage are done; called for every part.
pub(crate) fn done(parts: usize, of: usize) {
    /// The number of parts between two reports.
    const TOLD: usize = 1 << 12;
    if parts.is_multiple_of(TOLD)
        && let Some(watcher) = WATCHER.with_borrow(Clone::clone)
        && !watcher(GOES_ON.get(), parts, of)
    {
        resume_unwind(Box::new(WorkStopped));
    }
}

/// Runs `work` and returns its result, and the time of each stage on this thread, in the order in which they began.
pub fn record<T>(work: impl FnOnce() -> T) -> (T, Vec<Spent>) {
    let outer = RECORD.replace(Some(Vec::new()));
    let done = work();
    (done, RECORD.replace(outer).unwrap_or_default())
}

/// Runs `work` as one stage; a stage has no others within.
pub fn stage<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
    GOES_ON.set(name);
    done(0, 0);
    if RECORD.with_borrow(Option::is_none) {
        return work();
    }
    let start = Instant::now();
    let done = work();
    let took = start.elapsed();
    RECORD.with_borrow_mut(|record| {
        let stages = record.get_or_insert_default();
        match stages.iter_mut().find(|(known, _)| *known == name) {
            Some((_, spent)) => *spent += took,
            None => stages.push((name, took)),
        }
    });
    done
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;
    use std::time::Duration;

    use super::{done, record, stage, until, watch};

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
            let all = |of: usize| stage("a", || (0..of).for_each(|part| done(part, of)));
            let keep = told.clone();
            let stopped = until(move || *keep.borrow() > 5000, || all(10_000));
            assert_eq!((stopped, *told.borrow()), (None, 8192));
            assert_eq!(until(|| true, || 7), Some(7), "no stage begins");
            until(|| false, || all(10_000))
        });
        assert_eq!(outcome, Some(()));
        stage("b", || done(4096, 4096));
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
                stage("b", || (1..=10_000).for_each(|part| done(part, 10_000)));
                7
            },
        );
        stage("c", || done(4096, 4096));
        assert_eq!(value, 7);
        assert_eq!(*told.borrow(), [("a", 0), ("b", 0), ("b", 4096), ("b", 8192)]);
    }
}
