//! The protocols of parking and waking, in every interleaving of two or three threads:
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p roundelay-kernels --lib --release`.
//! loom's clocks stand still: a sleeper that no thread wakes is a deadlock, which loom reports. It takes `SeqCst`
//! accesses for weaker accesses than they are, so the protocols that it checks have fences, or one word in place of two.

mod call_model;

use std::time::Duration;

use loom::sync::atomic::{AtomicU32, Ordering, fence};
use loom::sync::{Arc, Mutex};
use loom::thread;

use super::idle::{Idle, Slept};
use super::ready::Ready;
use super::signal::{Signal, Wait};
use super::wakeup::Wakeup;
use super::worker_group::WorkerGroup;
use crate::model_memory::{ModelledMemory, check};

/// A small run: stream 0 writes and posts, stream 1 waits, reads and ends the run.
struct Run {
    signal: Signal,
    ready: Ready,
    idle: Idle,
    data: ModelledMemory,
    /// The waiting stream's own state: it moves with the stream.
    step: ModelledMemory,
}

impl Run {
    fn new(streams: &[u32]) -> Arc<Self> {
        let (ready, idle) = (Ready::new(2, 2), Idle::new());
        for &stream in streams {
            ready.push(stream, stream);
        }
        (0..2).for_each(|_| idle.enter());
        Arc::new(Self {
            signal: Signal::new(),
            ready,
            idle,
            data: ModelledMemory::new(),
            step: ModelledMemory::new(),
        })
    }

    /// Works as the engine's workers do; returns whether this worker found that no stream can go on.
    fn work(&self, me: u32) -> bool {
        let mut stalled = false;
        while !self.idle.stopped() {
            match self.ready.take(me) {
                Some(0) => {
                    self.data.raise();
                    if let Some(woken) = self.signal.post() {
                        self.ready.push(me, woken);
                        self.idle.wake_one();
                    }
                }
                Some(stream) => {
                    self.step.raise();
                    match self.signal.wait(stream) {
                        Wait::Met => {
                            assert_eq!(
                                self.data.get(),
                                1,
                                "written before the post, seen after the wait"
                            );
                            self.idle.stop();
                        }
                        Wait::Parked => {}
                        Wait::Shared => panic!("only one stream waits"),
                    }
                }
                None => {
                    if self.idle.sleep(|| self.ready.any(), Duration::MAX) == Slept::Stalled {
                        stalled = true;
                        self.idle.stop();
                    }
                }
            }
        }
        self.idle.leave();
        stalled
    }

    /// Runs two workers until the end; returns whether one of them found a stall.
    fn both(run: &Arc<Self>) -> bool {
        let other = Arc::clone(run);
        let other = thread::spawn(move || other.work(1));
        let stalled = run.work(0);
        run.idle.wait_until_empty();
        other.join().unwrap() || stalled
    }
}

#[test]
fn no_wake_up_is_lost_and_no_stall_is_imagined() {
    check(|| assert!(!Run::both(&Run::new(&[0, 1]))));
}

#[test]
fn when_nobody_can_post_one_worker_says_so_and_all_leave() {
    check(|| assert!(Run::both(&Run::new(&[1]))));
}

#[test]
fn a_stop_wakes_everybody() {
    check(|| {
        let run = Run::new(&[]);
        // A third worker, present but not asleep, so that neither of the two may find a stall.
        run.idle.enter();
        let workers = [0, 1].map(|me| {
            let run = Arc::clone(&run);
            thread::spawn(move || run.work(me))
        });
        run.idle.stop();
        run.idle.leave();
        run.idle.wait_until_empty();
        assert!(!workers.map(|w| w.join().unwrap()).contains(&true));
    });
}

#[test]
fn every_post_meets_one_wait() {
    check(|| {
        let shared = Arc::new((Signal::new(), ModelledMemory::new(), AtomicU32::new(0)));
        /// Waits twice in all; the thread that owns the stream goes on with it.
        fn wait((signal, steps, met): &(Signal, ModelledMemory, AtomicU32)) {
            while steps.get() < 2 {
                // The step is read before the wait: a parked stream belongs to another thread.
                match signal.wait(1) {
                    Wait::Met => steps.raise(),
                    Wait::Parked => return,
                    Wait::Shared => panic!("only one stream waits"),
                }
                met.fetch_add(1, Ordering::Relaxed);
            }
        }
        let poster = Arc::clone(&shared);
        let poster = thread::spawn(move || {
            for _ in 0..2 {
                if let Some(woken) = poster.0.post() {
                    assert_eq!(woken, 1);
                    wait(&poster);
                }
            }
        });
        wait(&shared);
        poster.join().unwrap();
        assert_eq!(shared.2.load(Ordering::Relaxed), 2);
        assert_eq!(shared.0.counts(), (2, 2));
    });
}

#[test]
fn what_another_made_ready_wakes_a_sleeper() {
    // A worker takes the streams that it pushed itself, so a run survives a lost wakeup, but slowly: here the worker
    // sleeps for ever.
    check(|| {
        let run = Run::new(&[]);
        let worker = Arc::clone(&run);
        let worker = thread::spawn(move || {
            while worker.ready.take(0).is_none() {
                assert_eq!(worker.idle.sleep(|| worker.ready.any(), Duration::MAX), Slept::Woken);
            }
        });
        run.ready.push(1, 0);
        run.idle.wake_one();
        worker.join().unwrap();
    });
}

#[test]
fn a_head_that_came_back_is_not_the_same() {
    check(|| {
        let shared = Arc::new((Ready::new(1, 2), [ModelledMemory::new(), ModelledMemory::new()]));
        shared.0.push(0, 0);
        shared.0.push(0, 1);
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || {
            let (ready, owned) = &*other;
            if let Some(stream) = ready.take(0) {
                owned[stream as usize].raise();
            }
        });
        let (ready, owned) = &*shared;
        let (first, second) = (ready.take(0), ready.take(0));
        if let Some(first) = first {
            ready.push(0, first);
        }
        if let Some(second) = second {
            owned[second as usize].raise();
        }
        other.join().unwrap();
        while let Some(stream) = ready.take(0) {
            owned[stream as usize].raise();
        }
        assert_eq!([owned[0].get(), owned[1].get()], [1, 1]);
    });
}

#[test]
fn a_stream_is_taken_by_one_worker_at_a_time() {
    check(|| {
        let shared = Arc::new((Ready::new(2, 2), [ModelledMemory::new(), ModelledMemory::new()]));
        shared.0.push(0, 0);
        shared.0.push(0, 1);
        let turns = |(ready, owned): &(Ready, [ModelledMemory; 2]), me: u32, turns: u32| {
            for _ in 0..turns {
                if let Some(stream) = ready.take(me) {
                    owned[stream as usize].raise();
                    ready.push(0, stream);
                }
            }
        };
        let other = Arc::clone(&shared);
        let other = thread::spawn(move || turns(&other, 1, 2));
        turns(&shared, 0, 2);
        other.join().unwrap();
        let mut left = [shared.0.take(0), shared.0.take(1)];
        left.sort_unstable();
        assert_eq!((left, shared.0.take(0)), ([Some(0), Some(1)], None));
    });
}

/// A small run of independent chunks: helpers come in by a ticket, under the pool's lock, and write their own memory;
/// the caller has left when it takes back the tickets that are left, and then waits.
struct Offer {
    group: WorkerGroup,
    /// For each helper, whether it may still come in.
    tickets: Mutex<[bool; 2]>,
    written: [ModelledMemory; 2],
}

impl Offer {
    fn new() -> Arc<Self> {
        let (group, tickets) = (WorkerGroup::new(), Mutex::new([false; 2]));
        Arc::new(Self { group, tickets, written: [ModelledMemory::new(), ModelledMemory::new()] })
    }

    /// Helps as a helper that hears of a run does; returns whether it came in.
    fn help(&self, me: usize) -> bool {
        let mut tickets = self.tickets.lock().unwrap();
        if !std::mem::take(&mut tickets[me]) {
            return false;
        }
        self.group.enter();
        drop(tickets);
        self.written[me].raise();
        self.group.leave();
        true
    }

    /// Runs as the caller does; returns how often each helper's memory was written when all have left.
    fn run(&self) -> [u32; 2] {
        self.group.enter();
        *self.tickets.lock().unwrap() = [true; 2];
        self.group.leave();
        *self.tickets.lock().unwrap() = [false; 2];
        self.group.wait_until_empty();
        // loom reports it if a helper could still write.
        [self.written[0].get(), self.written[1].get()]
    }
}

#[test]
fn a_caller_returns_when_all_have_left() {
    check(|| {
        let offer = Offer::new();
        let helpers = [0, 1].map(|me| {
            let offer = Arc::clone(&offer);
            thread::spawn(move || offer.help(me))
        });
        let seen = offer.run();
        let came = helpers.map(|helper| u32::from(helper.join().unwrap()));
        assert_eq!(seen, came, "each helper that came in has written, and no other");
    });
}

#[test]
fn who_is_late_to_go_from_one_run_does_not_end_the_wait_of_the_next() {
    check(|| {
        let offer = Offer::new();
        let helper = |me: usize| {
            offer.group.enter();
            let offer = Arc::clone(&offer);
            thread::spawn(move || {
                offer.written[me].raise();
                offer.group.leave();
            })
        };
        let first = helper(0);
        offer.group.wait_until_empty();
        assert_eq!(offer.written[0].get(), 1);
        // The first helper may not have returned from `leave` yet.
        let second = helper(1);
        offer.group.wait_until_empty();
        assert_eq!(offer.written[1].get(), 1);
        first.join().unwrap();
        second.join().unwrap();
    });
}

/// A small rank that calls by itself: a wakeup, and the posts of other ranks to it.
struct Listener {
    wakeup: Wakeup,
    posted: [AtomicU32; 2],
    data: [ModelledMemory; 2],
}

impl Listener {
    fn new() -> Self {
        let posted = [AtomicU32::new(0), AtomicU32::new(0)];
        Self { wakeup: Wakeup::new(), posted, data: [ModelledMemory::new(), ModelledMemory::new()] }
    }

    /// Posts as the ranks of an `SpmdPlan` do: one thread for each counter.
    fn post(&self, channel: usize) {
        self.data[channel].raise();
        let posted = &self.posted[channel];
        posted.store(posted.load(Ordering::Relaxed) + 1, Ordering::Release);
        fence(Ordering::SeqCst);
        self.wakeup.wake();
    }

    /// Waits as they do; then the data written before the posts is there.
    fn wait(&self, channel: usize, posts: u32) {
        let ready = || self.posted[channel].load(Ordering::Acquire) >= posts;
        assert!(self.wakeup.wait(ready, None, true, Duration::MAX), "loom's clocks stand still");
        assert_eq!(self.data[channel].get(), posts);
    }
}

#[test]
fn who_waits_for_two_hears_both() {
    check(|| {
        let listener = Arc::new(Listener::new());
        let posters = [0, 1].map(|channel| {
            let listener = Arc::clone(&listener);
            thread::spawn(move || listener.post(channel))
        });
        listener.wait(0, 1);
        listener.wait(1, 1);
        for poster in posters {
            poster.join().unwrap();
        }
    });
}

#[test]
fn two_ranks_answer_each_other() {
    check(|| {
        let ranks = Arc::new([Listener::new(), Listener::new()]);
        let other = Arc::clone(&ranks);
        let other = thread::spawn(move || {
            for posts in 1..=2 {
                other[1].wait(0, posts);
                other[0].post(0);
            }
        });
        for posts in 1..=2 {
            ranks[1].post(0);
            ranks[0].wait(0, posts);
        }
        other.join().unwrap();
    });
}

#[test]
fn what_a_rank_says_before_it_listens_is_not_lost() {
    // Both ranks post, then both wait, as at the start of most schedules.
    check(|| {
        let ranks = Arc::new([Listener::new(), Listener::new()]);
        let greet = |ranks: &[Listener; 2], me: usize| {
            ranks[1 - me].post(me);
            ranks[me].wait(1 - me, 1);
        };
        let other = Arc::clone(&ranks);
        let other = thread::spawn(move || greet(&other, 1));
        greet(&ranks, 0);
        other.join().unwrap();
    });
}
