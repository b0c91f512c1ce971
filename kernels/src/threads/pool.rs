//! The threads of this process that help in runs, shared by all plans. A run never depends on them: the calling
//! thread is its first worker, and what helpers are late for it does itself.

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

    /// The life of an admitted worker in the run.
    fn work(&self, me: u32);
}

struct Pool {
    state: Mutex<State>,
    bell: Condvar,
    /// Offers so far: an idle helper watches this for a while before it sleeps.
    offers: AtomicU64,
}

struct State {
    tickets: VecDeque<Ticket>,
    threads: u32,
    idle: u32,
    asleep: u32,
}

/// Worker `me` of a run is wanted.
struct Ticket {
    job: Arc<dyn Job>,
    me: u32,
    /// On a core of its own.
    pinned: bool,
}

static POOL: Pool = Pool {
    state: Mutex::new(State { tickets: VecDeque::new(), threads: 0, idle: 0, asleep: 0 }),
    bell: Condvar::new(),
    offers: AtomicU64::new(0),
};

fn state() -> MutexGuard<'static, State> {
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
            // No more threads to be had: those that run, or the caller alone, do it.
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
        (_, 1) => POOL.bell.notify_one(),
        _ => POOL.bell.notify_all(),
    }
}

/// Takes back what no helper has answered; after this no more helpers come in.
pub(super) fn revoke(job: &Arc<dyn Job>) {
    state().tickets.retain(|ticket| !Arc::ptr_eq(&ticket.job, job));
}

fn help() {
    let mut affinity = Affinity::default();
    let mut state = state();
    loop {
        let Some(ticket) = state.tickets.pop_front() else {
            // Runs come in a row: the next one is often there before a sleeper could be woken.
            let seen = POOL.offers.load(Ordering::Relaxed);
            drop(state);
            let came = spin(|| POOL.offers.load(Ordering::Relaxed) != seen);
            state = self::state();
            if !came && state.tickets.is_empty() {
                state.asleep += 1;
                state = POOL.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
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
