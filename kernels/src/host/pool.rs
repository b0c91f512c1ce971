//! The threads of this process that help in runs, shared by all plans. A run never depends on them: the calling
//! thread is its first worker, and what helpers are late for it does itself.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use super::machine::Machine;

struct Pool {
    state: Mutex<State>,
    bell: Condvar,
}

struct State {
    tickets: VecDeque<Ticket>,
    threads: u32,
    idle: u32,
}

/// Worker `me` of a run is wanted.
struct Ticket {
    machine: Arc<Machine>,
    me: u32,
}

static POOL: Pool = Pool {
    state: Mutex::new(State { tickets: VecDeque::new(), threads: 0, idle: 0 }),
    bell: Condvar::new(),
};

fn state() -> MutexGuard<'static, State> {
    POOL.state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks for helpers; the pool grows to the largest number that any run ever asked for.
pub(super) fn offer(machine: &Arc<Machine>, wanted: Range<u32>) {
    if wanted.is_empty() {
        return;
    }
    let most = wanted.len() as u32;
    let mut state = state();
    state.tickets.extend(wanted.map(|me| Ticket { machine: Arc::clone(machine), me }));
    while state.threads < most && (state.idle as usize) < state.tickets.len() {
        let spawned = thread::Builder::new().name("roundelay".into()).spawn(help);
        if spawned.is_err() {
            // No more threads to be had: those that run, or the caller alone, do it.
            break;
        }
        state.threads += 1;
        state.idle += 1;
    }
    drop(state);
    if most == 1 { POOL.bell.notify_one() } else { POOL.bell.notify_all() }
}

/// Takes back what no helper has answered; after this no more helpers come in.
pub(super) fn revoke(machine: &Arc<Machine>) {
    state().tickets.retain(|ticket| !Arc::ptr_eq(&ticket.machine, machine));
}

fn help() {
    let mut state = state();
    loop {
        let Some(ticket) = state.tickets.pop_front() else {
            state = POOL.bell.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        // Under the lock: `revoke` finds either the ticket or the worker.
        ticket.machine.admit();
        state.idle -= 1;
        drop(state);
        ticket.machine.work(ticket.me);
        drop(ticket);
        state = self::state();
        state.idle += 1;
    }
}
