//! Work on many items at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, available_parallelism, scope};

use crate::progress;

/// Returns the number of cores of this process.
pub(crate) fn cores() -> u32 {
    available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX))
}

/// Returns the results of `work` on all items, in their order; the progress tells how many of the items, of which `what`
/// is the name, are done. The items are begun in order too, on as many threads as
/// there are cores: on this one alone where the system has no others.
pub(crate) fn side_by_side<T: Sync, R: Send>(
    what: &str,
    items: &[T],
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(items.len())));
    let worker = || {
        while let Some((at, item)) = {
            let at = next.fetch_add(1, Ordering::Relaxed);
            items.get(at).map(|item| (at, item))
        } {
            let result = work(item);
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((at, result));
            progress::about(format!("{} of {} {what}", done.len(), items.len()));
        }
    };
    scope(|threads| {
        for _ in 1..items.len().min(cores() as usize) {
            // A thread that does not start leaves its work to the others.
            _ = Builder::new().spawn_scoped(threads, worker);
        }
        worker();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}
