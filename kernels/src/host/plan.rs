//! What callers see of the engine: a plan, made once, run on slices as often as wanted.

use std::fmt;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use roundelay_core::collective::Alias;
use roundelay_core::diagnostics::Code as ErrorCode;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::{ChannelId, OpId, RankId, StreamId};
use roundelay_core::schedule::{Buffer, Schedule, SignalKind};
use roundelay_core::verify::{Proof, Proved};

use super::code::{Code, Instr, Kind};
use super::element::Element;
use super::error::{Error, Stuck};
use super::machine::{Failure, Machine};
use super::scratch::Scratch;

/// Bytes of moves for which one more worker pays, unless the number of workers is given.
const BYTES_PER_WORKER: u64 = 64 << 10;

/// How to run a plan.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    workers: Option<NonZeroU32>,
    deadline: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { workers: None, deadline: Duration::from_secs(60) }
    }
}

impl Options {
    /// As many workers as the machine has cores and the data is worth; a deadline of a minute.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of worker threads, the calling thread among them; 0 means to choose.
    #[must_use]
    pub fn workers(mut self, workers: u32) -> Self {
        self.workers = NonZeroU32::new(workers);
        self
    }

    /// For how long nothing may happen in a run while a rank waits, before the run is given up with
    /// [`Error::Timeout`]. A move of any size that is under way counts as progress.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }
}

/// What a run did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// From the call to the last worker's leaving.
    pub elapsed: Duration,
    /// Ops of all ranks.
    pub ops: u64,
    /// Bytes written by all moves.
    pub bytes: u64,
    /// Threads that were asked to work on it, the calling one among them.
    pub workers: u32,
}

/// Something to go wrong in a test.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    Panic,
    SleepMillis(u32),
}

/// A proved schedule, lowered for one count, dtype and reduce op.
pub struct Plan {
    schedule: Arc<Schedule>,
    proof: Arc<Proof>,
    count: u64,
    dtype: DType,
    op: ReduceOp,
    options: Options,
    code: Arc<Code>,
    scratch: Scratch,
    machine: Arc<Machine>,
    workers: u32,
    /// Held for a run: the counters and the scratch are one run's at a time.
    gate: Mutex<()>,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("algorithm", &self.schedule.algorithm)
            .field("nranks", &self.schedule.nranks)
            .field("count", &self.count)
            .field("dtype", &self.dtype)
            .field("op", &self.op)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

/// A caller's buffer: address, and length in elements or bytes.
type Lent = (*mut u8, usize);

impl Plan {
    /// Lowers what was proved for `count` elements a unit (see [`roundelay_core::collective`]).
    pub fn new(proved: &Proved, count: u64, dtype: DType, op: ReduceOp) -> Result<Self, Error> {
        let (schedule, proof) = (proved.schedule().clone(), proved.proof().clone());
        // SAFETY: only a proof makes a `Proved`, and it is of this schedule.
        unsafe { Self::assume_proved(schedule, proof, count, dtype, op) }
    }

    /// As [`Self::new`], for tests of what happens to a schedule that is not right.
    ///
    /// # Safety
    /// No two accesses of the schedule to the same memory may race, whatever the proof says otherwise.
    #[doc(hidden)]
    pub unsafe fn assume_proved(
        schedule: Arc<Schedule>,
        proof: Arc<Proof>,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<Self, Error> {
        let code = Arc::new(Code::new(&schedule, &proof, count, dtype, op)?);
        let sizes = code.buffers.scratch().map(|at| code.buffers.len[at] * dtype.size());
        let scratch = Scratch::new(sizes)?;
        let options = Options::default();
        let (machine, workers) = assemble(&code, options);
        let gate = Mutex::new(());
        Ok(Self {
            schedule,
            proof,
            count,
            dtype,
            op,
            options,
            code,
            scratch,
            machine,
            workers,
            gate,
        })
    }

    /// The same plan, run otherwise.
    #[must_use]
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        (self.machine, self.workers) = assemble(&self.code, options);
        self
    }

    /// The same plan with op `step` of a stream replaced by a fault.
    ///
    /// # Safety
    /// A wait may be replaced only where nothing relies on the order that it makes.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn with_fault(mut self, stream: StreamId, step: u32, fault: Fault) -> Self {
        let mut code = Code::clone(&self.code);
        let (kind, arg) = match fault {
            Fault::Panic => (Kind::Panic, 0),
            Fault::SleepMillis(millis) => (Kind::Sleep, millis),
        };
        let at = code.tasks[stream.index()].first + step;
        code.instrs[at as usize] = Instr { kind, srcs: 0, dsts: 0, arg, len: 0 };
        self.code = Arc::new(code);
        let options = self.options;
        self.with_options(options)
    }

    /// The schedule that it runs.
    pub fn schedule(&self) -> &Arc<Schedule> {
        &self.schedule
    }

    /// What was proved of it.
    pub fn proof(&self) -> &Arc<Proof> {
        &self.proof
    }

    /// Elements a unit.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The reduce op.
    pub fn op(&self) -> ReduceOp {
        self.op
    }

    /// Elements of the input of `rank`; 0 where it has none.
    pub fn input_len(&self, rank: RankId) -> usize {
        self.code.buffers.len(Buffer::Input, rank)
    }

    /// Elements of the output of `rank`; 0 where it has none.
    pub fn output_len(&self, rank: RankId) -> usize {
        self.code.buffers.len(Buffer::Output, rank)
    }

    /// Elements of the one buffer of `rank` in place: the larger of the two; the other lies in it as
    /// [`roundelay_core::collective::Collective::alias`] says.
    pub fn in_place_len(&self, rank: RankId) -> usize {
        self.input_len(rank).max(self.output_len(rank))
    }

    /// Runs on a slice per rank, empty where a rank lacks the buffer. After an error the outputs are undefined.
    pub fn run<T: Element>(
        &self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
    ) -> Result<Stats, Error> {
        self.check_dtype(T::DTYPE)?;
        let inputs: Vec<Lent> =
            inputs.iter().map(|s| (s.as_ptr().cast_mut().cast(), s.len())).collect();
        self.run_apart(&inputs, &lend(outputs), 1)
    }

    /// Runs on one slice per rank, as long as [`Self::in_place_len`]. After an error the slices are undefined.
    pub fn run_in_place<T: Element>(&self, buffers: &mut [&mut [T]]) -> Result<Stats, Error> {
        self.check_dtype(T::DTYPE)?;
        self.run_aliased(&lend(buffers), 1)
    }

    /// [`Self::run`] on bytes, aligned for the dtype.
    pub fn run_bytes(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<Stats, Error> {
        let inputs: Vec<Lent> = inputs.iter().map(|s| (s.as_ptr().cast_mut(), s.len())).collect();
        self.run_apart(&inputs, &lend(outputs), self.dtype.size())
    }

    /// [`Self::run_in_place`] on bytes, aligned for the dtype.
    pub fn run_bytes_in_place(&self, buffers: &mut [&mut [u8]]) -> Result<Stats, Error> {
        self.run_aliased(&lend(buffers), self.dtype.size())
    }

    fn check_dtype(&self, given: DType) -> Result<(), Error> {
        let expected = self.dtype;
        if given == expected { Ok(()) } else { Err(Error::WrongDType { given, expected }) }
    }

    fn ranks(&self) -> impl Iterator<Item = RankId> {
        (0..self.schedule.nranks).map(RankId)
    }

    /// `per_element` is 1 for typed slices, and the element's size for bytes.
    fn check(
        &self,
        (one, all): (&'static str, &'static str),
        buffers: &[Lent],
        per_element: usize,
        expected: impl Fn(RankId) -> usize,
    ) -> Result<(), Error> {
        let nranks = self.schedule.nranks;
        if buffers.len() != nranks as usize {
            return Err(Error::WrongBufferCount { what: all, given: buffers.len(), nranks });
        }
        for (rank, &(at, len)) in self.ranks().zip(buffers) {
            let expected = expected(rank) * per_element;
            if len != expected {
                return Err(Error::WrongBufferLength {
                    what: one,
                    rank,
                    given: len as u64,
                    expected: expected as u64,
                    unit: if per_element == 1 { "elements" } else { "bytes" },
                });
            }
            if len != 0 && !at.addr().is_multiple_of(self.dtype.size()) {
                return Err(Error::MisalignedBuffer { what: one, rank, dtype: self.dtype });
            }
        }
        Ok(())
    }

    fn run_apart(
        &self,
        inputs: &[Lent],
        outputs: &[Lent],
        per_element: usize,
    ) -> Result<Stats, Error> {
        self.check(("input", "inputs"), inputs, per_element, |rank| self.input_len(rank))?;
        self.check(("output", "outputs"), outputs, per_element, |rank| self.output_len(rank))?;
        self.launch(|rank| (inputs[rank.index()].0, outputs[rank.index()].0))
    }

    fn run_aliased(&self, buffers: &[Lent], per_element: usize) -> Result<Stats, Error> {
        let collective = self.schedule.collective;
        let why = match () {
            () if !collective.has_in_place() => Some("AllToAll has no in-place form"),
            () if self.schedule.out_of_place => Some("the algorithm is marked `out_of_place`"),
            () if !self.proof.in_place => Some("the algorithm was not proved in place"),
            () => None,
        };
        if let Some(why) = why {
            return Err(Error::NoInPlace { why });
        }
        self.check(("buffer", "buffers"), buffers, per_element, |rank| self.in_place_len(rank))?;
        let unit = self.count as usize * self.dtype.size();
        self.launch(|rank| {
            let whole = buffers[rank.index()].0;
            // A unit of a buffer that was just found long enough; `wrapping` for buffers of no elements.
            let part = |units: u32| whole.wrapping_add(units as usize * unit);
            match collective.alias(rank, self.schedule.root) {
                Alias::Apart => (whole, whole),
                Alias::InputInOutput(units) => (part(units), whole),
                Alias::OutputInInput(units) => (whole, part(units)),
            }
        })
    }

    /// Runs with the input and output of each rank, which were checked.
    fn launch(&self, io: impl Fn(RankId) -> (*mut u8, *mut u8)) -> Result<Stats, Error> {
        let started = Instant::now();
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        let mut bases = vec![std::ptr::null_mut(); self.code.buffers.len.len()];
        for rank in self.ranks() {
            let (input, output) = io(rank);
            bases[self.code.buffers.index(Buffer::Input, rank) as usize] = input;
            bases[self.code.buffers.index(Buffer::Output, rank) as usize] = output;
        }
        for (at, block) in self.code.buffers.scratch().zip(self.scratch.addresses()) {
            bases[at] = block;
        }
        // SAFETY: the gate keeps other calls out. Inputs and outputs were checked for length and alignment,
        // and the callers' slices are borrowed until we return; lowering refuses to write an input; scratch
        // was made for this code and lives as long as the plan.
        match unsafe { self.machine.run(&bases) } {
            Some(failure) => Err(self.explain(failure)),
            None => Ok(Stats {
                elapsed: started.elapsed(),
                ops: self.code.instrs.len() as u64,
                bytes: self.code.bytes,
                workers: self.workers,
            }),
        }
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
                    self.signal_name(ChannelId(channel))
                ),
            },
        }
    }

    fn signal_name(&self, id: ChannelId) -> String {
        let channel = &self.schedule.channels[id.index()];
        let kind = match channel.kind {
            SignalKind::Ack => "TxAck",
            SignalKind::Data => "TxDataSignal",
            SignalKind::Head => "a free slot of the fifo",
            SignalKind::Tail => "a slot of the fifo with data",
            SignalKind::Fork => "the fork",
            SignalKind::Join => "the join",
        };
        match self.schedule.lanes.get(channel.lane.index()) {
            Some(lane) if !lane.is_empty() => {
                format!("{kind} from rank {} in lane {lane:?}", channel.from)
            }
            _ => format!("{kind} from rank {}", channel.from),
        }
    }

    /// The wait to blame: from a rank that waits, on to the rank it waits for, as long as that one waits too;
    /// in a cycle the one that came least far.
    fn stuck(&self, stream: u32, channel: u32, after: Option<Duration>) -> Error {
        let streams = &self.schedule.streams;
        let mut waits = vec![None; self.schedule.nranks as usize];
        for (at, signal) in self.machine.signals.iter().enumerate().rev() {
            if let Some(stream) = signal.parked() {
                let wait = (StreamId(stream), ChannelId(at as u32));
                waits[streams[stream as usize].rank.index()] = Some(wait);
            }
        }
        let first = (StreamId(stream), ChannelId(channel));
        let mut rank = streams[first.0.index()].rank;
        let mut path = Vec::new();
        // Taken: a rank is visited once.
        while let Some(wait) = waits[rank.index()].take() {
            path.push(wait);
            rank = self.schedule.channels[wait.1.index()].from;
        }
        let back = path.iter().position(|wait| streams[wait.0.index()].rank == rank);
        let suspects = &path[back.unwrap_or(path.len().saturating_sub(1))..];
        // None if a slow op ended, and met all waits, between the verdict and the stop.
        let (stream, channel) =
            suspects.iter().copied().min_by_key(|wait| self.machine.step(wait.0)).unwrap_or(first);
        let owner = &streams[stream.index()];
        let step = self.machine.step(stream);
        let op = self.schedule.op(OpId(owner.first.0 + step));
        let (seen, met) = self.machine.signals[channel.index()].counts();
        Error::Timeout(Box::new(Stuck {
            rank: owner.rank,
            stream,
            step,
            waiting_on: self.signal_name(channel),
            expected: u64::from(met) + 1,
            seen: u64::from(seen),
            line: self.schedule.location(op.at).line,
            after,
        }))
    }
}

fn lend<T>(buffers: &mut [&mut [T]]) -> Vec<Lent> {
    buffers.iter_mut().map(|s| (s.as_mut_ptr().cast(), s.len())).collect()
}

fn assemble(code: &Arc<Code>, options: Options) -> (Arc<Machine>, u32) {
    let chosen = || {
        let cores = thread::available_parallelism().map_or(1, |n| n.get() as u64);
        NonZeroU32::new((1 + code.bytes / BYTES_PER_WORKER).min(cores) as u32)
    };
    let wanted = options.workers.or_else(chosen).map_or(1, NonZeroU32::get);
    let workers = wanted.min(code.tasks.len() as u32).max(1);
    (Arc::new(Machine::new(Arc::clone(code), workers, options.deadline)), workers)
}
