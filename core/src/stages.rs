//! The time of a proof, stage by stage. Only a recorded proof is timed, and the functions of the pipeline need not know
//! whether a caller records or watches them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

/// A stage of the pipeline and its time, over all calls.
pub type Spent = (&'static str, Duration);

/// The function that gets the name of the running stage, and the hundredths of it that are done.
type Watcher = Rc<dyn Fn(&'static str, u32)>;

thread_local! {
    static RECORD: RefCell<Option<Vec<Spent>>> = const { RefCell::new(None) };
    static WATCHER: RefCell<Option<Watcher>> = const { RefCell::new(None) };
    static GOES_ON: Cell<&'static str> = const { Cell::new("") };
}

/// Runs `work` and returns its result. When a stage begins on this thread, and now and then in a long stage, `watcher`
/// gets its name, and the hundredths of it that are done.
pub fn watch<T>(watcher: impl Fn(&'static str, u32) + 'static, work: impl FnOnce() -> T) -> T {
    let outer = WATCHER.replace(Some(Rc::new(watcher)));
    let done = work();
    WATCHER.replace(outer);
    done
}

/// Reports that `parts` of the `of` parts of the running stage are done; called for every part.
pub(crate) fn done(parts: usize, of: usize) {
    /// The number of parts between two reports.
    const TOLD: usize = 1 << 12;
    if parts.is_multiple_of(TOLD)
        && let Some(watcher) = WATCHER.with_borrow(Clone::clone)
    {
        watcher(GOES_ON.get(), (100 * parts / of.max(1)) as u32);
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

    use super::{done, record, stage, watch};

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
    fn who_watches_is_told_how_far_a_stage_is() {
        let told = Rc::new(RefCell::new(Vec::new()));
        let keep = told.clone();
        let value = watch(
            move |name, hundredths| keep.borrow_mut().push((name, hundredths)),
            || {
                stage("a", || ());
                stage("b", || (1..=10_000).for_each(|part| done(part, 10_000)));
                7
            },
        );
        stage("c", || done(4096, 4096));
        assert_eq!(value, 7);
        assert_eq!(*told.borrow(), [("a", 0), ("b", 0), ("b", 40), ("b", 81)]);
    }
}
