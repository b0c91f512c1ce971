//! A plan's code on the engine that suits it, with the plan's scratch memory.

use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use roundelay_core::diagnostics::Code as ErrorCode;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::{ChannelId, OpId, RankId, StreamId};
use roundelay_core::optimize::Optimized;
use roundelay_core::schedule::{Buffer, Schedule};

use super::chunks::ChunkEngine;
use super::streams::{Failure, StreamEngine};
use crate::error::Error;
use crate::lowering::{Bases, Code, Instr, PlannedCall, Scratch, lower};
use crate::options::Options;
use crate::recorder::{RecordRows, Recorded, Recorder};
use crate::stuck::{Stuck, signal_name, to_blame};

/// The written bytes per further worker, unless the number of workers is given.
const BYTES_PER_WORKER: u64 = 64 << 10;

/// The work of one run of a [`Plan`](super::Plan), and the time that it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// The time of the run: from its start to the last worker's leaving.
    pub elapsed: Duration,
    /// The time that the call waited before the run, while other threads ran the same plan.
    pub waited: Duration,
    /// Ops that ran, of all ranks together.
    pub ops: u64,
    /// Bytes that all moves wrote, to outputs and to scratch.
    pub bytes: u64,
    /// Threads that were asked to work on the run, the calling thread among them.
    pub workers: u32,
}

/// The engine of a plan, with its code and its memory.
pub(super) struct Engine {
    schedule: Arc<Schedule>,
    code: Arc<Code>,
    scratch: Scratch,
    workers: u32,
    options: Options,
    how: How,
    /// The record of the runs, where there is one.
    recorder: OnceLock<Arc<Recorder>>,
}

/// The units of work that workers take.
enum How {
    /// No signals are left: workers take chunks of segments.
    Chunks(Arc<ChunkEngine>),
    /// Streams wait for each other: workers take the ready streams.
    Streams(Arc<StreamEngine>),
}

impl Engine {
    pub(super) fn new(
        optimized: &Optimized,
        count: u64,
        dtype: DType,
        op: ReduceOp,
        options: Options,
    ) -> Result<Self, Error> {
        let code = lower(optimized, count, dtype, op)?;
        let sizes = code.buffers.scratch().map(|at| code.buffers.len[at as usize] * dtype.size());
        let scratch = Scratch::new(sizes)?;
        Self::of(optimized.schedule.clone(), Arc::new(code), scratch, options)
    }

    fn of(
        schedule: Arc<Schedule>,
        code: Arc<Code>,
        scratch: Scratch,
        options: Options,
    ) -> Result<Self, Error> {
        let chosen = || {
            let cores = thread::available_parallelism().map_or(1, |n| n.get() as u64);
            NonZeroU32::new((1 + code.bytes / BYTES_PER_WORKER).min(cores) as u32)
        };
        let wanted = options.workers.or_else(chosen).map_or(1, NonZeroU32::get);
        let most = if code.independent { u32::MAX } else { code.tasks.len() as u32 };
        let workers = wanted.min(most).max(1);
        let how = if code.independent {
            How::Chunks(Arc::new(ChunkEngine::new(code.clone(), workers, options.pinned)?))
        } else {
            How::Streams(Arc::new(StreamEngine::new(code.clone(), workers, options)?))
        };
        let recorder = OnceLock::new();
        Ok(Self { schedule, code, scratch, workers, options, how, recorder })
    }

    /// Replaces the op at step `instr.step` of `stream` by `instr`; only for code as its author wrote it.
    pub(super) fn with_op(self, stream: StreamId, instr: Instr) -> Result<Self, Error> {
        let mut code = Code::clone(&self.code);
        let task = code.tasks[stream.index()];
        let mut instrs = code.instrs[task.first as usize..][..task.len as usize].iter_mut();
        if let Some(found) = instrs.find(|known| known.step == instr.step) {
            *found = instr;
        }
        code.independent = false;
        Self::of(self.schedule, Arc::new(code), self.scratch, self.options)
    }

    pub(super) fn workers(&self) -> u32 {
        self.workers
    }

    pub(super) fn stats(&self, elapsed: Duration, waited: Duration) -> Stats {
        Stats { elapsed, waited, ops: self.code.ops, bytes: self.code.bytes, workers: self.workers }
    }

    /// Records the runs from now on; `call` is in words what they do.
    pub(super) fn record(&self, call: &PlannedCall) {
        let streams = self.code.tasks.len();
        let recorder = Arc::new(match self.how {
            How::Chunks(_) => Recorder::new(RecordRows::Workers, 1, self.workers as usize),
            How::Streams(_) => Recorder::new(RecordRows::Streams, 1, streams),
        });
        recorder.shape([0; 3], || call.recorded(&self.schedule));
        if self.recorder.set(recorder.clone()).is_ok() {
            match &self.how {
                How::Chunks(engine) => engine.record(recorder),
                How::Streams(engine) => _ = engine.recorder.set(recorder),
            }
        }
    }

    pub(super) fn recorder(&self) -> Option<&Recorder> {
        self.recorder.get().map(|recorder| &**recorder)
    }

    /// Runs the plan on the input and output of each rank.
    ///
    /// # Safety
    /// Only one call at a time. Each input and output is valid for its length, aligned, initialized, an output
    /// writable, and lent for the call.
    pub(super) unsafe fn run(
        &self,
        io: impl Iterator<Item = (*mut u8, *mut u8)>,
    ) -> Result<(), Error> {
        let call = self.recorder.get().map(|recorder| recorder.begin_next());
        let buffers = &self.code.buffers;
        let place = |bases: &Bases| {
            for (rank, (input, output)) in (0..).map(RankId).zip(io) {
                bases.set(buffers.index(Buffer::Input, rank), input);
                bases.set(buffers.index(Buffer::Output, rank), output);
            }
            for (at, block) in buffers.scratch().zip(self.scratch.addresses()) {
                bases.set(at, block);
            }
        };
        // SAFETY: the caller's promise; scratch was made for this code and lives as long as this engine.
        let failure = unsafe {
            match &self.how {
                How::Chunks(engine) => engine.run(place),
                How::Streams(engine) => engine.run(place),
            }
        };
        if let Some((recorder, call)) = self.recorder.get().zip(call) {
            let failed = failure.is_some();
            recorder.in_call(0, call, call.begin, Recorded::Call { failed });
        }
        failure.map_or(Ok(()), |failure| Err(self.explain(failure)))
    }

    fn explain(&self, failure: Failure) -> Error {
        match failure {
            Failure::Stalled { stream, channel } => self.stuck(stream, channel, None),
            Failure::TimedOut { stream, channel } => {
                self.stuck(stream, channel, Some(self.options.deadline))
            }
            Failure::Panicked { message } => Error::WorkerPanicked { message },
            Failure::Shared { channel } => Error::BadSchedule {
                code: ErrorCode::SharedSignal,
                what: format!(
                    "two streams wait at the same time for {}",
                    signal_name(&self.schedule, ChannelId(channel))
                ),
            },
        }
    }

    fn stuck(&self, stream: u32, channel: u32, after: Option<Duration>) -> Error {
        let How::Streams(engine) = &self.how else { unreachable!("only streams wait") };
        let streams = &self.schedule.streams;
        let mut waits = vec![None; self.schedule.nranks as usize];
        for (at, signal) in engine.signals.iter().enumerate().rev() {
            if let Some(stream) = signal.parked() {
                let wait = (StreamId(stream), ChannelId(at as u32));
                waits[streams[stream as usize].rank.index()] = Some(wait);
            }
        }
        let first = (StreamId(stream), ChannelId(channel));
        let (stream, channel) = to_blame(&self.schedule, waits, first, |at| engine.step(at));
        let owner = &streams[stream.index()];
        let step = engine.step(stream);
        let op = self.schedule.op(OpId(owner.first.0 + step));
        let (seen, met) = engine.signals[channel.index()].counts();
        Error::Timeout(Box::new(Stuck {
            rank: owner.rank,
            stream,
            step,
            waiting_on: signal_name(&self.schedule, channel),
            expected: u64::from(met) + 1,
            seen: u64::from(seen),
            file: self.schedule.file.clone(),
            line: self.schedule.location(op.at).line,
            after,
        }))
    }
}
