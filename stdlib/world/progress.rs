//! Calls that another thread makes for a rank, in the order in which they were asked for.

use std::any::Any;
use std::fmt;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use roundelay_kernels::shared_memory::{at_site, current_site};

use crate::Error;

/// The order of a rank's nonblocking calls, which several threads may make.
#[derive(Default)]
pub(super) struct Turns {
    /// Whether there ever was one.
    any: AtomicBool,
    order: Mutex<Order>,
    turned: Condvar,
}

#[derive(Default)]
struct Order {
    asked: u64,
    done: u64,
    /// The error of a call whose handle was dropped.
    lost: Option<Error>,
}

impl Turns {
    fn order(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn until(&self, ready: impl Fn(&Order) -> bool) -> MutexGuard<'_, Order> {
        let order = self.order();
        self.turned.wait_while(order, |order| !ready(order)).unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when no call is under way.
    pub(super) fn idle(&self) {
        if self.any.load(Ordering::Acquire) {
            drop(self.until(|order| order.done == order.asked));
        }
    }

    /// Returns when no call is under way.
    ///
    /// # Errors
    /// The error of a call whose handle was dropped, once.
    pub(super) fn settle(&self) -> Result<(), Error> {
        if !self.any.load(Ordering::Acquire) {
            return Ok(());
        }
        let mut order = self.until(|order| order.done == order.asked);
        order.lost.take().map_or(Ok(()), Err)
    }

    /// Keeps an error for the next call. The first error is the cause of the later ones.
    fn lose(&self, error: Error) {
        self.order().lost.get_or_insert(error);
        self.any.store(true, Ordering::Release);
    }
}

impl fmt::Debug for Turns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = self.order();
        f.debug_struct("Turns").field("under_way", &(order.asked - order.done)).finish()
    }
}

type QueuedCall<'env> = Box<dyn FnOnce() + Send + 'env>;

/// The sending end of the queue of calls that one thread makes.
pub(super) struct Queue<'env> {
    turns: Arc<Turns>,
    jobs: Sender<(u64, QueuedCall<'env>)>,
}

/// The receiving end of the queue.
pub(super) struct Work<'env> {
    turns: Arc<Turns>,
    jobs: Receiver<(u64, QueuedCall<'env>)>,
}

pub(super) fn queue<'env>(turns: &Arc<Turns>) -> (Queue<'env>, Work<'env>) {
    let (sender, receiver) = channel();
    (Queue { turns: turns.clone(), jobs: sender }, Work { turns: turns.clone(), jobs: receiver })
}

impl Work<'_> {
    /// Makes all calls, and returns when the queue is gone.
    pub(super) fn run(self) {
        for (turn, job) in self.jobs {
            drop(self.turns.until(|order| order.done == turn));
            // A panic in a call is its outcome; this catches a panic of its buffers when they are dropped.
            _ = catch_unwind(AssertUnwindSafe(job));
            self.turns.order().done += 1;
            self.turns.turned.notify_all();
        }
    }
}

impl<'env> Queue<'env> {
    /// Has `job` done when all before it are.
    pub(super) fn call<R: Send + 'env>(
        &self,
        job: impl FnOnce() -> Result<R, Error> + Send + 'env,
    ) -> Pending<R> {
        let pending = Pending::new(&self.turns, CallState::UnderWay);
        let (outcome, turns) = (pending.outcome.clone(), self.turns.clone());
        let site = current_site();
        let job = move || at_site(site, job);
        let job = Box::new(move || {
            // The lost error is returned in place of this call, which is then not made.
            let lost = turns.order().lost.take();
            let made = lost.map_or_else(
                || catch_unwind(AssertUnwindSafe(job)).unwrap_or_else(|what| Err(panicked(&*what))),
                Err,
            );
            outcome.put(made, &turns);
        });
        let mut order = self.turns.order();
        self.turns.any.store(true, Ordering::Release);
        // Sent under the lock of `order`, so that no other thread takes a turn in between.
        let sent = self.jobs.send((order.asked, job));
        order.asked += u64::from(sent.is_ok());
        drop(order);
        if sent.is_err() {
            pending.outcome.put(Err(panicked(&"it is gone")), &self.turns);
        }
        pending
    }
}

/// Makes an error of the payload of a thread's panic.
fn panicked(what: &(dyn Any + Send)) -> Error {
    let text = what.downcast_ref::<&str>().copied().map(str::to_owned);
    let text = text.or_else(|| what.downcast_ref::<String>().cloned());
    let message = text.unwrap_or_else(|| "a panic without a text".to_owned());
    roundelay_kernels::Error::WorkerPanicked { message }.into()
}

/// The thread that makes the calls of a world.
pub(super) struct Progress {
    /// `None` only while the `Progress` is dropped.
    queue: Option<Queue<'static>>,
    thread: Option<JoinHandle<()>>,
    /// The process in which the thread runs: a forked child does not have it.
    process: u32,
}

impl Progress {
    pub(super) fn new(turns: &Arc<Turns>) -> Result<Self, String> {
        let (queue, work) = queue(turns);
        let thread = thread::Builder::new().name("roundelay progress".to_owned());
        let thread = thread.spawn(|| work.run()).map_err(|error| error.to_string())?;
        Ok(Self { queue: Some(queue), thread: Some(thread), process: process::id() })
    }

    pub(super) fn queue(&self) -> &Queue<'static> {
        self.queue.as_ref().expect("the queue is set until this is dropped")
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.process != process::id() {
            // In a forked child the locks are as they were at the fork, and no thread unlocks them.
            mem::forget((self.queue.take(), self.thread.take()));
            return;
        }
        self.queue = None;
        if let Some(thread) = self.thread.take()
            // A buffer may hold the world, and be dropped there.
            && thread.thread().id() != thread::current().id()
        {
            // The thread catches all panics.
            _ = thread.join();
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Progress").finish_non_exhaustive()
    }
}

/// A call that does not block, until it is done: [`World::nonblocking`](crate::World::nonblocking) and
/// [`World::scope`](crate::World::scope) make it.
///
/// Dropping it does not cancel the call: the call is made all the same, and then its buffers are dropped. If it fails,
/// the next call of this rank returns its error, and is not made itself.
///
/// ```
/// use roundelay::{Pending, ReduceOp, UniqueId, World};
///
/// let world = World::join(&UniqueId::new()?, 1, 0)?;
/// let mut sum: Pending<Vec<f32>> = world.nonblocking().all_reduce(vec![1.0; 100], ReduceOp::Sum);
/// while !sum.test() {
///     // Something useful.
/// }
/// assert_eq!(sum.wait()?, [1.0; 100]);
/// # Ok::<(), roundelay::Error>(())
/// ```
pub struct Pending<B> {
    outcome: Arc<Outcome<B>>,
    turns: Arc<Turns>,
}

struct Outcome<B> {
    state: Mutex<CallState<B>>,
    made: Condvar,
}

enum CallState<B> {
    UnderWay,
    Made(Result<B, Error>),
    /// The handle was dropped, or `wait` took the outcome.
    Left,
}

impl<B> Outcome<B> {
    fn state(&self) -> MutexGuard<'_, CallState<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, made: Result<B, Error>, turns: &Turns) {
        let mut state = self.state();
        match (&*state, made) {
            (CallState::Left, Err(error)) => turns.lose(error),
            // The buffers go when the state is free.
            (CallState::Left, Ok(buffers)) => {
                drop(state);
                drop(buffers);
            }
            (_, made) => {
                *state = CallState::Made(made);
                self.made.notify_all();
            }
        }
    }
}

impl<B> Pending<B> {
    fn new(turns: &Arc<Turns>, state: CallState<B>) -> Self {
        let outcome = Arc::new(Outcome { state: Mutex::new(state), made: Condvar::new() });
        Self { outcome, turns: turns.clone() }
    }

    /// Makes the handle of a call that cannot be made.
    pub(super) fn failed(turns: &Arc<Turns>, error: Error) -> Self {
        Self::new(turns, CallState::Made(Err(error)))
    }

    /// Waits until the call is done, and returns its buffers.
    ///
    /// # Errors
    /// The errors of [`Rank`](crate::Rank)'s call; E0410 where the thread that makes calls panicked in it; E0429 where
    /// the system gives no such thread. The buffers are then gone, unless they were lent.
    pub fn wait(self) -> Result<B, Error> {
        let state = self.outcome.state();
        let mut state = self
            .outcome
            .made
            .wait_while(state, |state| matches!(state, CallState::UnderWay))
            .unwrap_or_else(PoisonError::into_inner);
        match mem::replace(&mut *state, CallState::Left) {
            CallState::Made(made) => made,
            CallState::UnderWay | CallState::Left => {
                unreachable!("the wait ended, and only this takes the outcome")
            }
        }
    }

    /// Waits for so long at most, and says whether the call is done, so that [`Self::wait`] returns at once.
    pub fn wait_timeout(&self, timeout: Duration) -> bool {
        let under_way = |state: &mut CallState<B>| matches!(state, CallState::UnderWay);
        let waited = self.outcome.made.wait_timeout_while(self.outcome.state(), timeout, under_way);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !matches!(&*state, CallState::UnderWay)
    }

    /// Whether the call is done, so that [`Self::wait`] returns at once.
    pub fn test(&mut self) -> bool {
        matches!(&*self.outcome.state(), CallState::Made(_))
    }
}

impl<B> Drop for Pending<B> {
    fn drop(&mut self) {
        let state = mem::replace(&mut *self.outcome.state(), CallState::Left);
        if let CallState::Made(Err(error)) = state {
            self.turns.lose(error);
        }
    }
}

impl<B> fmt::Debug for Pending<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let done = matches!(&*self.outcome.state(), CallState::Made(_));
        f.debug_struct("Pending").field("done", &done).finish_non_exhaustive()
    }
}
