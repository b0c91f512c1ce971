//! The workers' side of a plan: any worker takes any ready stream and runs it until it must wait.
//!
//! A stream that waits is parked in its signal, and belongs to the thread that posts the signal next. No lock is taken
//! and nothing is allocated from one op to the next; see `idle` for the locks beside that path.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use roundelay_core::ids::StreamId;

use super::idle::{Idle, Slept};
use super::pool::{self, Job};
use super::ready::Ready;
use super::signal::{Signal, Wait};
use crate::error::Error;
use crate::lowering::{Bases, Code, Effects, Instr, RecordedEffects, Scratch, Waiting, advance};
use crate::options::Options;
use crate::recorder::Recorder;
use crate::sync::{AtomicU32, AtomicU64, Mutex, Ordering, Padded, lock};

/// The number of looks for work before a worker sleeps, and of polls before a lone stream parks.
const SPINS: u32 = 200;

/// Runs a plan with signals by its streams, which wait for each other, one run at a time.
pub(super) struct StreamEngine {
    code: Arc<Code>,
    workers: u32,
    deadline: Duration,
    /// Whether helpers stay on cores of their own.
    pinned: bool,
    pub(super) signals: Box<[Signal]>,
    ready: Ready,
    /// The number of instructions that each stream has done.
    steps: Box<[AtomicU32]>,
    unfinished: AtomicU32,
    /// Ops and segments that each worker has completed.
    progress: Box<[Padded<AtomicU64>]>,
    idle: Idle,
    failure: Mutex<Option<Failure>>,
    /// The partials of each worker.
    partials: Scratch,
    bases: Bases,
    /// The record of the runs, where there is one.
    pub(super) recorder: OnceLock<Arc<Recorder>>,
}

/// The reason for which a run ended early. The engine explains it when all workers have left.
pub(super) enum Failure {
    /// This stream waits at this channel, and no worker is left that could post.
    Stalled {
        stream: u32,
        channel: u32,
    },
    /// Nothing happened for the time of the deadline, while this stream waited at this channel.
    TimedOut {
        stream: u32,
        channel: u32,
    },
    /// Two streams wait at this channel.
    Shared {
        channel: u32,
    },
    Panicked {
        message: String,
    },
}

impl StreamEngine {
    pub(super) fn new(code: Arc<Code>, workers: u32, options: Options) -> Result<Self, Error> {
        let streams = code.tasks.len() as u32;
        let bytes = code.segments.partial_bytes();
        Ok(Self {
            workers,
            deadline: options.deadline,
            pinned: options.pinned,
            signals: (0..code.channels).map(|_| Signal::new()).collect(),
            ready: Ready::new(workers, streams),
            steps: (0..streams).map(|_| AtomicU32::new(0)).collect(),
            unfinished: AtomicU32::new(0),
            progress: (0..workers).map(|_| Padded(AtomicU64::new(0))).collect(),
            idle: Idle::new(),
            failure: Mutex::new(None),
            partials: Scratch::new((0..workers).map(|_| bytes))?,
            bases: Bases::new(code.buffers.len.len()),
            recorder: OnceLock::new(),
            code,
        })
    }

    /// Runs the plan and returns when no worker can touch the buffers any more. `place` sets their addresses.
    ///
    /// # Safety
    /// Only one call at a time. `place` gives each buffer of the code an address that is valid for its length, aligned,
    /// initialized, writable unless it is an input, and lent for the call.
    pub(super) unsafe fn run(self: &Arc<Self>, place: impl FnOnce(&Bases)) -> Option<Failure> {
        place(&self.bases);
        self.signals.iter().for_each(Signal::reset);
        self.steps.iter().for_each(|step| step.store(0, Ordering::Relaxed));
        self.unfinished.store(self.code.tasks.len() as u32, Ordering::Relaxed);
        self.ready.deal(self.workers);
        self.idle.reset();
        if !self.code.tasks.is_empty() {
            self.idle.enter();
            // The pool's lock makes these stores visible to the helpers.
            let job: Arc<dyn Job> = self.clone();
            pool::offer(&job, 1..self.workers, self.pinned);
            self.work(0);
            pool::revoke(&job);
            self.idle.wait_until_empty();
        }
        lock(&self.failure).take()
    }

    /// Returns the number of ops that a parked stream has done; only when all workers have left.
    pub(super) fn step(&self, stream: StreamId) -> u32 {
        let task = self.code.tasks[stream.index()];
        let at = task.first + self.steps[stream.index()].load(Ordering::Relaxed);
        self.code.instrs[at as usize].step
    }

    fn fail(&self, failure: Failure) {
        lock(&self.failure).get_or_insert(failure);
        self.idle.stop();
    }

    /// Takes a ready stream, and sleeps until there is one. Returns `None` when the run is over.
    fn next(&self, me: u32) -> Option<u32> {
        let mut quiet: Option<(Instant, u64)> = None;
        loop {
            for _ in 0..SPINS {
                if self.idle.stopped() {
                    return None;
                }
                if let Some(stream) = self.ready.take(me) {
                    return Some(stream);
                }
                std::hint::spin_loop();
            }
            let done = self.progress.iter().map(|p| p.0.load(Ordering::Relaxed)).sum();
            let since = match quiet {
                Some((since, before)) if before == done => since,
                _ => quiet.insert((Instant::now(), done)).0,
            };
            let left = self.deadline.saturating_sub(since.elapsed());
            if left.is_zero() {
                match self.some_wait() {
                    Some((stream, channel)) => self.fail(Failure::TimedOut { stream, channel }),
                    // No stream waits: a move takes long.
                    None => quiet = None,
                }
            } else if self.idle.sleep(|| self.ready.any(), left) == Slept::Stalled {
                let (stream, channel) = self.some_wait().expect("a stream that is not done waits");
                self.fail(Failure::Stalled { stream, channel });
            }
        }
    }

    fn some_wait(&self) -> Option<(u32, u32)> {
        let mut channels = self.signals.iter().zip(0..);
        channels.find_map(|(signal, channel)| Some((signal.parked()?, channel)))
    }

    /// Runs a stream that this worker owns until it ends or parks.
    fn advance(&self, me: u32, stream: u32) {
        let task = self.code.tasks[stream as usize];
        let step = &self.steps[stream as usize];
        let mut at = task.first + step.load(Ordering::Relaxed);
        let mut effects = WorkerEffects { engine: self, me };
        // SAFETY: this worker owns the stream, and the buffers of all ranks are lent for the run.
        let waiting = unsafe {
            match self.recorder.get() {
                None => advance(&self.code, stream, &mut at, &mut effects),
                Some(recorder) => {
                    let (effects, code, call) = (&mut effects, &*self.code, recorder.current());
                    let mut recorded = RecordedEffects { effects, code, recorder, call, first: 0 };
                    advance(&self.code, stream, &mut at, &mut recorded)
                }
            }
        };
        if let Ok(None) = waiting {
            step.store(task.len, Ordering::Relaxed);
            if self.unfinished.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.idle.stop();
            }
        }
    }

    /// Waits at a channel, and returns whether the wait was met; if not, this worker no longer owns the stream.
    fn wait(&self, me: u32, channel: u32, stream: u32) -> bool {
        let signal = &self.signals[channel as usize];
        for _ in 0..SPINS {
            if signal.poll() {
                return true;
            }
            // Polling is a waste where no other worker can post, or this worker has another ready stream.
            if self.workers == 1 || self.ready.has(me) {
                break;
            }
            std::hint::spin_loop();
        }
        match signal.wait(stream) {
            Wait::Met => true,
            Wait::Parked => false,
            Wait::Shared => {
                self.fail(Failure::Shared { channel });
                false
            }
        }
    }

    fn tick(&self, me: u32) {
        let progress = &self.progress[me as usize].0;
        progress.store(progress.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// The reason for which a worker stops: the run was stopped.
struct Stopped;

/// The memory and signals of a run, for one worker.
struct WorkerEffects<'e> {
    engine: &'e StreamEngine,
    me: u32,
}

impl WorkerEffects<'_> {
    fn goes_on(&self) -> Result<(), Stopped> {
        self.engine.tick(self.me);
        if self.engine.idle.stopped() { Err(Stopped) } else { Ok(()) }
    }
}

impl Effects for WorkerEffects<'_> {
    type Stop = Stopped;

    unsafe fn data(&mut self, _: u32, instr: Instr) -> Result<(), Stopped> {
        let engine = self.engine;
        let segments = &engine.code.segments;
        let segment = segments.all[instr.arg as usize];
        let partials = engine.partials.address(self.me as usize);
        let stopped = || self.goes_on().is_err();
        let elements = 0..segment.elements;
        // SAFETY: the buffers are lent for the run; the proof orders this segment after and before all accesses of
        // other streams to the same memory; each worker has partials of its own.
        unsafe { segments.run(segment, elements, &engine.bases, partials, stopped) };
        Ok(())
    }

    fn post(&mut self, _: u32, row: &[Instr]) -> Result<(), Stopped> {
        for instr in row {
            if let Some(woken) = self.engine.signals[instr.arg as usize].post() {
                self.engine.ready.push(self.me, woken);
                self.engine.idle.wake_one();
            }
        }
        Ok(())
    }

    /// Takes the signal, or parks the stream, which then belongs to another worker.
    fn take(&mut self, Waiting { stream, at, channel }: Waiting) -> Result<bool, Stopped> {
        // Before parking: a parked stream belongs to another worker.
        let step = at - self.engine.code.tasks[stream as usize].first;
        self.engine.steps[stream as usize].store(step, Ordering::Relaxed);
        Ok(self.engine.wait(self.me, channel, stream))
    }

    fn moved(&mut self) -> Result<(), Stopped> {
        self.goes_on()
    }
}

impl Job for StreamEngine {
    fn admit(&self) {
        self.idle.enter();
    }

    fn work(&self, me: u32) {
        let worked = catch_unwind(AssertUnwindSafe(|| {
            while let Some(stream) = self.next(me) {
                self.advance(me, stream);
            }
        }));
        if let Err(panic) = worked {
            self.fail(Failure::Panicked { message: message(panic.as_ref()) });
        }
        self.idle.leave();
    }
}

/// Returns the message of a panic.
pub(super) fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
