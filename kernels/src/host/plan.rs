//! What callers see of the engine: a plan, made once, run on slices as often as wanted.

use std::fmt;
use std::num::NonZeroU32;
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use roundelay_core::collective::Alias;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::{RankId, StreamId};
use roundelay_core::optimize::{Callers, Goal, Level, Optimized};
use roundelay_core::schedule::{Buffer, Schedule};
use roundelay_core::verify::{Proof, Proved};

use super::code::{Instr, Kind};
use super::element::Element;
use super::engine::Engine;
use super::error::Error;

/// How to run a plan.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub(super) workers: Option<NonZeroU32>,
    pub(super) deadline: Duration,
    level: Level,
    reassociate: bool,
}

impl Default for Options {
    fn default() -> Self {
        let deadline = Duration::from_secs(60);
        Self { workers: None, deadline, level: Level::default(), reassociate: false }
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

    /// How much of the schedule may be written otherwise; results have the same bits at every level.
    #[must_use]
    pub fn level(mut self, level: Level) -> Self {
        self.level = level;
        self
    }

    /// Lets reductions nest otherwise than the author says, so that all ranks' results are made once; results of
    /// floats may differ in their last bits.
    #[must_use]
    pub fn reassociate(mut self, reassociate: bool) -> Self {
        self.reassociate = reassociate;
        self
    }

    /// What is wanted of the optimizer.
    pub(super) fn goal(&self, callers: Callers) -> Goal {
        Goal { level: self.level, callers, reassociate: self.reassociate }
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
    /// What can be optimized; nothing of what was only assumed to be right.
    proved: Option<Proved>,
    count: u64,
    dtype: DType,
    op: ReduceOp,
    options: Options,
    /// What runs, or why it cannot be had.
    engine: Result<Engine, Error>,
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
            .field("level", &self.level())
            .field("workers", &self.workers())
            .finish_non_exhaustive()
    }
}

impl Plan {
    /// Lowers what was proved for `count` elements a unit (see [`roundelay_core::collective`]).
    pub fn new(proved: &Proved, count: u64, dtype: DType, op: ReduceOp) -> Result<Self, Error> {
        Self::with(proved, count, dtype, op, Options::default())
    }

    /// The same, to be run so.
    pub fn with(
        proved: &Proved,
        count: u64,
        dtype: DType,
        op: ReduceOp,
        options: Options,
    ) -> Result<Self, Error> {
        let (schedule, proof) = (proved.schedule().clone(), proved.proof().clone());
        let proved = Some(proved.clone());
        Self { proved, ..Self::empty(schedule, proof, count, dtype, op, options) }.built()
    }

    /// As [`Self::new`], for tests of what happens to a schedule that is not right; it runs as written.
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
        Self::empty(schedule, proof, count, dtype, op, Options::default()).built()
    }

    fn empty(
        schedule: Arc<Schedule>,
        proof: Arc<Proof>,
        count: u64,
        dtype: DType,
        op: ReduceOp,
        options: Options,
    ) -> Self {
        let (engine, gate) = (Err(Error::NoRanks), Mutex::new(()));
        Self { schedule, proof, proved: None, count, dtype, op, options, engine, gate }
    }

    fn built(mut self) -> Result<Self, Error> {
        self.engine = self.build();
        self.engine.as_ref().map_err(Error::clone)?;
        Ok(self)
    }

    fn build(&self) -> Result<Engine, Error> {
        Engine::new(&self.optimized(), self.count, self.dtype, self.op, self.options)
    }

    fn optimized(&self) -> Arc<Optimized> {
        match &self.proved {
            Some(proved) => proved.optimized(self.options.goal(Callers::One)),
            None => Arc::new(Optimized {
                schedule: self.schedule.clone(),
                proof: self.proof.clone(),
                level: Level::O0,
                unfit: None,
            }),
        }
    }

    /// The same plan, run otherwise. What cannot be had, such as scratch that is too large for this machine, is
    /// an error of the next run.
    #[must_use]
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self.engine = self.build();
        self
    }

    /// The same plan as written, with op `step` of a stream replaced by a fault.
    ///
    /// # Safety
    /// A wait may be replaced only where nothing relies on the order that it makes.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn with_fault(mut self, stream: StreamId, step: u32, fault: Fault) -> Self {
        if self.level() != Level::O0 {
            let options = self.options.level(Level::O0);
            self = self.with_options(options);
        }
        let (kind, arg) = match fault {
            Fault::Panic => (Kind::Panic, 0),
            Fault::SleepMillis(millis) => (Kind::Sleep, millis),
        };
        let replace = |engine: Engine| engine.with_op(stream, Instr { kind, arg, step });
        self.engine = self.engine.and_then(replace);
        self
    }

    /// What the optimizer reached, and why that is less than was wanted, where it is.
    pub fn optimization(&self) -> (Level, Option<String>) {
        let optimized = self.optimized();
        (optimized.level, optimized.unfit.as_ref().map(|unfit| unfit.0.clone()))
    }

    fn level(&self) -> Level {
        self.optimized().level
    }

    fn workers(&self) -> u32 {
        self.engine.as_ref().map_or(0, Engine::workers)
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
        self.schedule.elements(Buffer::Input, rank, self.count) as usize
    }

    /// Elements of the output of `rank`; 0 where it has none.
    pub fn output_len(&self, rank: RankId) -> usize {
        self.schedule.elements(Buffer::Output, rank, self.count) as usize
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
        self.run_apart(inputs, outputs, 1)
    }

    /// Runs on one slice per rank, as long as [`Self::in_place_len`]. After an error the slices are undefined.
    pub fn run_in_place<T: Element>(&self, buffers: &mut [&mut [T]]) -> Result<Stats, Error> {
        self.check_dtype(T::DTYPE)?;
        self.run_aliased(buffers, 1)
    }

    /// [`Self::run`] on bytes, aligned for the dtype.
    pub fn run_bytes(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<Stats, Error> {
        self.run_apart(inputs, outputs, self.dtype.size())
    }

    /// [`Self::run_in_place`] on bytes, aligned for the dtype.
    pub fn run_bytes_in_place(&self, buffers: &mut [&mut [u8]]) -> Result<Stats, Error> {
        self.run_aliased(buffers, self.dtype.size())
    }

    fn check_dtype(&self, given: DType) -> Result<(), Error> {
        let expected = self.dtype;
        if given == expected { Ok(()) } else { Err(Error::WrongDType { given, expected }) }
    }

    fn ranks(&self) -> impl Iterator<Item = RankId> {
        (0..self.schedule.nranks).map(RankId)
    }

    /// `per_element` is 1 for typed slices, and the element's size for bytes.
    fn check<T>(
        &self,
        (one, all): (&'static str, &'static str),
        buffers: impl ExactSizeIterator<Item = *const [T]>,
        per_element: usize,
        expected: impl Fn(RankId) -> usize,
    ) -> Result<(), Error> {
        let nranks = self.schedule.nranks;
        if buffers.len() != nranks as usize {
            return Err(Error::WrongBufferCount { what: all, given: buffers.len(), nranks });
        }
        for (rank, buffer) in self.ranks().zip(buffers) {
            let expected = expected(rank) * per_element;
            if buffer.len() != expected {
                return Err(Error::WrongBufferLength {
                    what: one,
                    rank,
                    given: buffer.len() as u64,
                    expected: expected as u64,
                    unit: if per_element == 1 { "elements" } else { "bytes" },
                });
            }
            if expected != 0 && !buffer.addr().is_multiple_of(self.dtype.size()) {
                return Err(Error::MisalignedBuffer { what: one, rank, dtype: self.dtype });
            }
        }
        Ok(())
    }

    fn run_apart<T>(
        &self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
        per_element: usize,
    ) -> Result<Stats, Error> {
        let given = inputs.iter().map(|s| ptr::from_ref(*s));
        self.check(("input", "inputs"), given, per_element, |rank| self.input_len(rank))?;
        let given = outputs.iter().map(|s| ptr::from_ref(&**s));
        self.check(("output", "outputs"), given, per_element, |rank| self.output_len(rank))?;
        let outputs = outputs.iter_mut().map(|s| s.as_mut_ptr().cast());
        self.launch(inputs.iter().map(|s| s.as_ptr().cast_mut().cast()).zip(outputs))
    }

    fn run_aliased<T>(&self, buffers: &mut [&mut [T]], per_element: usize) -> Result<Stats, Error> {
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
        let given = buffers.iter().map(|s| ptr::from_ref(&**s));
        self.check(("buffer", "buffers"), given, per_element, |rank| self.in_place_len(rank))?;
        let unit = self.count as usize * self.dtype.size();
        self.launch(self.ranks().zip(buffers).map(|(rank, buffer)| {
            let whole: *mut u8 = buffer.as_mut_ptr().cast();
            // A unit of a buffer that was just found long enough; `wrapping` for buffers of no elements.
            let part = |units: u32| whole.wrapping_add(units as usize * unit);
            match collective.alias(rank, self.schedule.root) {
                Alias::Apart => (whole, whole),
                Alias::InputInOutput(units) => (part(units), whole),
                Alias::OutputInInput(units) => (whole, part(units)),
            }
        }))
    }

    /// Runs with the input and output of each rank, which were checked.
    fn launch(&self, io: impl Iterator<Item = (*mut u8, *mut u8)>) -> Result<Stats, Error> {
        let started = Instant::now();
        let engine = self.engine.as_ref().map_err(Error::clone)?;
        let _gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the gate keeps other calls out. Inputs and outputs were checked for length and alignment, and
        // the callers' slices are borrowed until we return; lowering refuses to write an input.
        unsafe { engine.run(io) }?;
        Ok(engine.stats(started.elapsed()))
    }
}
