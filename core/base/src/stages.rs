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
pub fn report(parts: usize, of: usize) {
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
    report(0, 0);
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
