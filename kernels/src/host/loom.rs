//! The protocols of parking and waking, in every interleaving of two or three threads:
//! `RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p roundelay-kernels --lib --release`.
//! loom's clocks stand still: a sleeper that nobody wakes is a deadlock, which loom reports.

use std::time::Duration;

use loom::cell::UnsafeCell;
use loom::model::Builder;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;

use super::idle::{Idle, Slept};
use super::ready::Ready;
use super::signal::{Signal, Wait};

/// Memory that two threads must not touch at once; loom sees to it.
struct Memory(UnsafeCell<u32>);

// SAFETY: loom reports every access that is not ordered with a write.
unsafe impl Sync for Memory {}
// SAFETY: as above.
unsafe impl Send for Memory {}

impl Memory {
    fn new() -> Self {
        Self(UnsafeCell::new(0))
    }
    fn raise(&self) {
        // SAFETY: loom checks it.
        self.0.with_mut(|at| unsafe { *at += 1 });
    }
    fn get(&self) -> u32 {
        // SAFETY: loom checks it.
        self.0.with(|at| unsafe { *at })
    }
}

/// More preemptions than any known lost wake-up needs; without a bound the larger models take minutes.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A run in small: stream 0 writes and posts, stream 1 waits, reads and ends the run.
struct Run {
    signal: Signal,
    ready: Ready,
    idle: Idle,
    data: Memory,
    /// The waiting stream's own state: it moves with the stream.
    step: Memory,
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
            data: Memory::new(),
            step: Memory::new(),
        })
    }

    /// What the machine's workers do; whether this one found that nobody can go on.
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

    /// Two workers until the end; whether one of them found a stall.
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
        // Present but not asleep, so that neither of the two may call it a stall.
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
        let shared = Arc::new((Signal::new(), Memory::new(), AtomicU32::new(0)));
        /// Waits twice in all; whoever owns the stream goes on with it.
        fn wait((signal, steps, met): &(Signal, Memory, AtomicU32)) {
            while steps.get() < 2 {
                // The step is taken before the wait: after parking the stream is another's.
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
    // A worker takes what it pushed itself, so a run survives this going wrong, but slowly: here it does not.
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
        let shared = Arc::new((Ready::new(1, 2), [Memory::new(), Memory::new()]));
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
        let shared = Arc::new((Ready::new(2, 2), [Memory::new(), Memory::new()]));
        shared.0.push(0, 0);
        shared.0.push(0, 1);
        let turns = |(ready, owned): &(Ready, [Memory; 2]), me: u32, turns: u32| {
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
