//! Where the time of a proof goes, stage by stage. Only what is recorded is timed, and by nobody else's
//! leave: the pipeline's functions need not know whether anyone asks.

use std::cell::RefCell;
use std::time::{Duration, Instant};

/// A stage of the pipeline and how long it took, all calls together.
pub type Spent = (&'static str, Duration);

thread_local! {
    static RECORD: RefCell<Option<Vec<Spent>>> = const { RefCell::new(None) };
}

/// What `work` gives, and how long each stage of it took on this thread, in the order in which they began.
pub fn record<T>(work: impl FnOnce() -> T) -> (T, Vec<Spent>) {
    let outer = RECORD.replace(Some(Vec::new()));
    let done = work();
    (done, RECORD.replace(outer).unwrap_or_default())
}

/// One stage; a stage has no others within.
pub(crate) fn stage<T>(name: &'static str, work: impl FnOnce() -> T) -> T {
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
    use std::time::Duration;

    use super::{record, stage};

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
        assert_eq!(stage("c", || 8), 8, "and nobody asked");
    }
}
