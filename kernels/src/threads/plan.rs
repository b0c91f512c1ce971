//! The interface of the engine to callers: a plan, made once, run on slices as often as wanted.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::Instant;

use roundelay_core::certificate::Certificate;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::{RankId, StreamId};
use roundelay_core::optimize::{Level, Optimized, Unproved};
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_core::trace::TraceText;
use roundelay_core::verify::Callers;
use roundelay_core::verify::{Proof, Proved};

use super::engine::{Engine, Stats};
use crate::element::Element;
use crate::error::Error;
use crate::lowering::first_call::KnownBuffers;
use crate::lowering::plan_call::{PlannedCall, extent};
use crate::lowering::{Instr, InstrKind, Memory, UserBuffers};
use crate::options::{Check, Options};

/// A fault to inject in a test.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    Panic,
    SleepMillis(u32),
}

/// A proved schedule, lowered for one count, element type and reduce op, that one thread runs for all ranks.
///
/// A plan is made once and runs as often as wanted, on slices that it borrows for a run and never copies. It is `Sync`:
/// runs from several threads follow one another. The crate `roundelay` makes plans of algorithms by its trait `ToPlan`,
/// which has examples.
///
/// # Lengths
///
/// The *count* of a plan is NCCL's: the elements of one unit of the collective.
/// [`Collective`](roundelay_core::collective::Collective) gives the units of a rank's input and output for each
/// collective; [`Self::input_len`], [`Self::output_len`] and [`Self::in_place_len`] give the lengths of a rank's slices
/// in elements. For an `AllReduce` all of these lengths are the count.
///
/// # Errors
///
/// Every run checks its buffers before it moves anything, and refuses
///
/// * E0401: another number of inputs, outputs or buffers than there are ranks,
/// * E0402: a slice of the wrong length,
/// * E0403: a slice of another element type than the plan's,
/// * E0404: a byte slice that is not aligned for the element type,
/// * E0408: a run in place of a collective or an algorithm without an in-place form.
///
/// The first run may check itself before ([`Check`]), and is not made where the check finds wrong data (E0433).
///
/// A run that fails on its way returns E0405 (nothing happened for as long as the deadline while a rank waited) or
/// E0410 (a worker panicked). The outputs are undefined then, and the plan can run again.
pub struct Plan {
    call: PlannedCall,
    /// The proved schedule for the optimizer; `None` where the proof was only assumed to be right.
    proved: Option<Proved>,
    options: Options,
    /// The engine, or the error for which there is none.
    engine: Result<Engine, Error>,
    /// Held during a run: the counters and the scratch serve one run at a time.
    gate: Mutex<()>,
    /// Whether no check comes before the next run.
    checked: AtomicBool,
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = f.debug_struct("Plan");
        self.call.describe(&mut all);
        all.field("nranks", &self.call.schedule.nranks)
            .field("level", &self.level())
            .field("workers", &self.workers())
            .finish_non_exhaustive()
    }
}

impl Plan {
    /// Makes a plan for a schedule that was proved, and for `count` elements a unit, with the default [`Options`].
    ///
    /// # Errors
    /// E0407 for buffers larger than this machine can hold; E0425 for a fault of the optimizer; E0431 where the dtype
    /// does not have the op.
    pub fn new(proved: &Proved, count: u64, dtype: DType, op: ReduceOp) -> Result<Self, Error> {
        Self::for_options(proved, count, dtype, op, Options::default())
    }

    /// Makes a plan for a schedule that was proved, and for `count` elements a unit, that runs as `options` say.
    ///
    /// # Errors
    /// E0406 for options that no run can have; else the errors of [`Self::new`].
    pub fn for_options(
        proved: &Proved,
        count: u64,
        dtype: DType,
        op: ReduceOp,
        options: Options,
    ) -> Result<Self, Error> {
        let call = PlannedCall::new(proved, count, dtype, op);
        Self { proved: Some(proved.clone()), options, ..Self::empty(call) }.built()
    }

    /// Makes a plan for a schedule that only claims to be proved, for tests of wrong schedules. The plan runs as
    /// written, at level O0.
    ///
    /// # Safety
    /// No two accesses of the schedule to the same memory may race, even if the proof is wrong otherwise.
    #[doc(hidden)]
    pub unsafe fn assume_proved(
        schedule: Arc<Schedule>,
        proof: Arc<Proof>,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<Self, Error> {
        Self::empty(PlannedCall { schedule, proof, count, dtype, op, even: None }).built()
    }

    fn empty(call: PlannedCall) -> Self {
        let (engine, gate) = (Err(Error::NoRanks { nranks: 0 }), Mutex::new(()));
        let (options, checked) = (Options::default(), AtomicBool::new(true));
        Self { call, proved: None, options, engine, gate, checked }
    }

    fn built(mut self) -> Result<Self, Error> {
        self.engine = self.build();
        self.engine.as_ref().map_err(Error::clone)?;
        Ok(self)
    }

    fn build(&mut self) -> Result<Engine, Error> {
        self.options.check()?;
        self.checked = AtomicBool::new(self.options.checks()? == Check::Never);
        let PlannedCall { count, dtype, op, .. } = self.call;
        Engine::new(&*self.optimized()?, count, dtype, op, self.options)
    }

    fn optimized(&self) -> Result<Arc<Optimized>, Unproved> {
        match &self.proved {
            Some(proved) => proved.optimize(self.options.goal(Callers::One)),
            None => Ok(Arc::new(Optimized {
                schedule: self.call.schedule.clone(),
                proof: self.call.proof.clone(),
                level: Level::O0,
                unfit: None,
            })),
        }
    }

    /// Rebuilds the plan for other options. If no run can have them, or they need scratch that is too large for this
    /// machine, each run returns E0406 or E0407.
    #[must_use]
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self.engine = self.build();
        self
    }

    /// Rebuilds the plan at level O0 with op `step` of a stream replaced by a fault, for tests.
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
            Fault::Panic => (InstrKind::Panic, 0),
            Fault::SleepMillis(millis) => (InstrKind::Sleep, millis),
        };
        let replace = |engine: Engine| engine.with_op(stream, Instr { kind, arg, step });
        self.engine = self.engine.and_then(replace);
        self
    }

    /// Records the runs from now on, for [`Self::trace`].
    #[doc(hidden)]
    pub fn record(&self) {
        if let Ok(engine) = &self.engine {
            engine.record(&self.call);
        }
    }

    /// Moves the recorded runs to a trace, with statements where the source is there.
    #[doc(hidden)]
    pub fn trace(&self, text: &mut TraceText, source: Option<&Source>) {
        if let Some(recorder) = self.engine.as_ref().ok().and_then(Engine::recorder) {
            recorder.write(text, source, RankId(0));
        }
    }

    /// Returns the level that the optimizer reached, and the reason where that is lower than the options asked for.
    pub fn optimization(&self) -> (Level, Option<String>) {
        match self.optimized() {
            Ok(made) => (made.level, made.unfit.as_ref().map(|unfit| unfit.0.clone())),
            // In this case there is no engine, and no run.
            Err(unproved) => (Level::O0, Some(unproved.to_string())),
        }
    }

    fn level(&self) -> Level {
        self.optimization().0
    }

    fn workers(&self) -> u32 {
        self.engine.as_ref().map_or(0, Engine::workers)
    }

    /// Returns the schedule as its author wrote it, before the optimizer.
    pub fn schedule(&self) -> &Arc<Schedule> {
        &self.call.schedule
    }

    /// Returns the proof of [`Self::schedule`].
    pub fn proof(&self) -> &Arc<Proof> {
        &self.call.proof
    }

    /// Returns the certificate of [`Self::schedule`], as `roundelay check` prints it; with a count for each block, that of
    /// the proof for equal counts. It is made anew by each call, in a time that grows with the ops.
    pub fn certificate(&self) -> Certificate {
        self.call.certificate()
    }

    /// Returns the plan's count: elements of one unit of the collective, as NCCL counts.
    pub fn count(&self) -> u64 {
        self.call.count
    }

    /// Returns the element type of all buffers.
    pub fn dtype(&self) -> DType {
        self.call.dtype
    }

    /// Returns the reduce op, which has no meaning for collectives that only copy.
    pub fn op(&self) -> ReduceOp {
        self.call.op
    }

    /// Returns the length of the input of `rank` in elements; 0 where the rank has no input. A rank that does not exist
    /// panics.
    pub fn input_len(&self, rank: impl Into<RankId>) -> usize {
        self.call.input_len(rank.into())
    }

    /// Returns the length of the output of `rank` in elements; 0 where the rank has no output.
    pub fn output_len(&self, rank: impl Into<RankId>) -> usize {
        self.call.output_len(rank.into())
    }

    /// Returns the length in elements of the one buffer that `rank` has in place: the length of the larger of its two
    /// buffers. The smaller buffer lies in it as [`roundelay_core::collective::Collective::alias`] says.
    pub fn in_place_len(&self, rank: impl Into<RankId>) -> usize {
        self.call.in_place_len(rank.into())
    }

    /// Runs the collective: `inputs` and `outputs` have one slice for each rank, in rank order, as long as
    /// [`Self::input_len`] and [`Self::output_len`] say, and empty where a rank has no such buffer.
    ///
    /// # Errors
    /// E0401, E0402 and E0403 before anything moves; E0405 and E0410 on the way, after which the outputs are
    /// undefined; E0406 and E0407 where [`Self::with_options`] gave options that cannot be had.
    pub fn run<T: Element>(
        &self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
    ) -> Result<Stats, Error> {
        self.call.check_dtype(T::DTYPE)?;
        self.run_apart(inputs, outputs, 1)
    }

    /// Runs the collective in place: `buffers` has one slice for each rank, as long as [`Self::in_place_len`] says,
    /// which holds the input before and the output after.
    ///
    /// # Errors
    /// E0408 where there is no in-place form; else the errors of [`Self::run`], after which the slices are undefined.
    pub fn run_in_place<T: Element>(&self, buffers: &mut [&mut [T]]) -> Result<Stats, Error> {
        self.call.check_dtype(T::DTYPE)?;
        self.run_aliased(buffers, 1)
    }

    /// Runs the collective on bytes. Lengths are those of [`Self::run`] times the size of an element, and each slice
    /// that is not empty begins at a multiple of that size.
    ///
    /// # Errors
    /// E0404 for a slice that is not aligned; else the errors of [`Self::run`].
    pub fn run_bytes(&self, inputs: &[&[u8]], outputs: &mut [&mut [u8]]) -> Result<Stats, Error> {
        self.run_apart(inputs, outputs, self.call.dtype.size())
    }

    /// Runs the collective in place on bytes. Lengths are those of [`Self::run_in_place`] times the size of an
    /// element, and each slice that is not empty begins at a multiple of that size.
    ///
    /// # Errors
    /// E0404 for a slice that is not aligned; else the errors of [`Self::run_in_place`].
    pub fn run_bytes_in_place(&self, buffers: &mut [&mut [u8]]) -> Result<Stats, Error> {
        self.run_aliased(buffers, self.call.dtype.size())
    }

    fn run_apart<T>(
        &self,
        inputs: &[&[T]],
        outputs: &mut [&mut [T]],
        per_element: usize,
    ) -> Result<Stats, Error> {
        let call = &self.call;
        call.check_count("inputs", inputs.len())?;
        call.check_count("outputs", outputs.len())?;
        for (rank, input) in call.ranks().zip(inputs) {
            call.check_buffer("input", rank, extent(input), per_element, call.input_len(rank))?;
        }
        for (rank, output) in call.ranks().zip(&*outputs) {
            call.check_buffer("output", rank, extent(output), per_element, call.output_len(rank))?;
        }
        let outputs = outputs.iter_mut().map(|s| s.as_mut_ptr().cast());
        self.launch(inputs.iter().map(|s| s.as_ptr().cast_mut().cast()).zip(outputs))
    }

    fn run_aliased<T>(&self, buffers: &mut [&mut [T]], per_element: usize) -> Result<Stats, Error> {
        let call = &self.call;
        call.check_in_place()?;
        call.check_count("buffers", buffers.len())?;
        for (rank, buffer) in call.ranks().zip(&*buffers) {
            call.check_buffer(
                "buffer",
                rank,
                extent(buffer),
                per_element,
                call.in_place_len(rank),
            )?;
        }
        let whole = call.ranks().zip(buffers);
        self.launch(whole.map(|(rank, buffer)| call.split(rank, buffer.as_mut_ptr().cast())))
    }

    /// Runs on the addresses of each rank's input and output, which were checked, after the check if it is the first
    /// run.
    fn launch(&self, io: impl Iterator<Item = (*mut u8, *mut u8)>) -> Result<Stats, Error> {
        if self.checked.load(Ordering::Acquire) {
            return self.launch_on(io);
        }
        let io: Vec<(*mut u8, *mut u8)> = io.collect();
        self.check(&io)?;
        self.launch_on(io.into_iter())
    }

    /// Runs on known data, in buffers that lie as the callers' do.
    #[cold]
    fn check(&self, io: &[(*mut u8, *mut u8)]) -> Result<(), Error> {
        let call = &self.call;
        let mut all = Vec::with_capacity(io.len());
        for (rank, (input, output)) in call.ranks().zip(io) {
            let known = call.known(call.schedule.nranks, rank);
            let like = UserBuffers::new(*input, *output);
            let buffers = KnownBuffers::new(&known, like, |_, words| Memory::own(words))?;
            all.push((known, buffers));
        }
        let addresses: Vec<(*mut u8, *mut u8)> = all
            .iter_mut()
            .map(|(_, buffers)| buffers.buffers())
            .map(|buffers| (buffers.input.cast_mut(), buffers.output))
            .collect();
        self.launch_on(addresses.into_iter())?;
        for (known, buffers) in &all {
            if let Some(wrong) = buffers.wrong(known) {
                return Err(Error::WrongData(Box::new(call.wrong_data(known.rank, wrong))));
            }
        }
        self.checked.store(true, Ordering::Release);
        Ok(())
    }

    fn launch_on(&self, io: impl Iterator<Item = (*mut u8, *mut u8)>) -> Result<Stats, Error> {
        let called = Instant::now();
        let engine = self.engine.as_ref().map_err(Error::clone)?;
        let (_gate, started) = match self.gate.try_lock() {
            Ok(gate) => (gate, called),
            Err(TryLockError::Poisoned(poisoned)) => (poisoned.into_inner(), called),
            Err(TryLockError::WouldBlock) => {
                let gate = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
                (gate, Instant::now())
            }
        };
        // SAFETY: the gate keeps other calls out. Inputs and outputs were checked for length and alignment, and
        // the callers' slices are borrowed until we return; lowering refuses to write an input.
        unsafe { engine.run(io) }?;
        Ok(engine.stats(started.elapsed(), started - called))
    }
}
