//! The threads of this process that help in runs, shared by all plans. A run never depends on them: the calling thread
//! is its first worker, and does the work that no helper takes in time.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::pin::Affinity;
use crate::sync::spin;

/// A run that helpers can join.
pub(super) trait Job: Send + Sync {
    /// Lets a worker in, which must call [`Self::work`] next.
    fn admit(&self);

    /// Does the work of an admitted worker in the run.
    fn work(&self, me: u32);
}

struct Pool {
    state: Mutex<PoolState>,
    wakeup: Condvar,
    /// The number of offers so far: an idle helper watches it for a while before it sleeps.
    offers: AtomicU64,
}

struct PoolState {
    tickets: VecDeque<Ticket>,
    threads: u32,
    idle: u32,
    asleep: u32,
}

/// A wanted helper: worker `me` of a run.
struct Ticket {
    job: Arc<dyn Job>,
    me: u32,
    /// Whether the helper runs on a core of its own.
    pinned: bool,
}

static POOL: Pool = Pool {
    state: Mutex::new(PoolState { tickets: VecDeque::new(), threads: 0, idle: 0, asleep: 0 }),
    wakeup: Condvar::new(),
    offers: AtomicU64::new(0),
};

fn state() -> MutexGuard<'static, PoolState> {
    POOL.state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks for helpers; the pool grows to the largest number that any run ever asked for.
pub(super) fn offer(job: &Arc<dyn Job>, wanted: Range<u32>, pinned: bool) {
    if wanted.is_empty() {
        return;
    }
    let most = wanted.len() as u32;
    let mut state = state();
    state.tickets.extend(wanted.map(|me| Ticket { job: Arc::clone(job), me, pinned }));
    while state.threads < most && (state.idle as usize) < state.tickets.len() {
        let spawned = thread::Builder::new().name("roundelay".into()).spawn(help);
        if spawned.is_err() {
            // The system gives no more threads: the threads that run, or the caller alone, do the work.
            break;
        }
        state.threads += 1;
        state.idle += 1;
    }
    POOL.offers.fetch_add(1, Ordering::Relaxed);
    let asleep = state.asleep;
    drop(state);
    match (asleep, most) {
        (0, _) => {}
        (_, 1) => POOL.wakeup.notify_one(),
        _ => POOL.wakeup.notify_all(),
    }
}

/// Takes back the tickets of a run that no helper has taken; after this no more helpers come in.
pub(super) fn revoke(job: &Arc<dyn Job>) {
    state().tickets.retain(|ticket| !Arc::ptr_eq(&ticket.job, job));
}

fn help() {
    let mut affinity = Affinity::default();
    let mut state = state();
    loop {
        let Some(ticket) = state.tickets.pop_front() else {
            // Runs come in a row: the next run often starts before a sleeper could be woken.
            let seen = POOL.offers.load(Ordering::Relaxed);
            drop(state);
            let came = spin(|| POOL.offers.load(Ordering::Relaxed) != seen);
            state = self::state();
            if !came && state.tickets.is_empty() {
                state.asleep += 1;
                state = POOL.wakeup.wait(state).unwrap_or_else(PoisonError::into_inner);
                state.asleep -= 1;
            }
            continue;
        };
        // Under the lock: `revoke` finds either the ticket or the worker.
        ticket.job.admit();
        state.idle -= 1;
        drop(state);
        affinity.go(ticket.pinned.then_some(ticket.me));
        ticket.job.work(ticket.me);
        drop(ticket);
        state = self::state();
        state.idle += 1;
    }
}
