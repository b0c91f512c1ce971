//! Ranks that call by themselves, each from a thread of its own, as in MPI. A rank's thread runs the streams of that
//! rank alone, so only the schedule's signals order the ranks.
//!
//! Counters are never set back: each call counts from its own number times the posts of a run. So a signal of one call
//! cannot be taken for a signal of another call, however far a rank is ahead, and however the calls between ended.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use roundelay_core::certificate::Certificate;
use roundelay_core::diagnostics::Code as ErrorCode;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::{ChannelId, OpId, RankId, StreamId};
use roundelay_core::schedule::{Buffer, Schedule};
use roundelay_core::syntax::Source;
use roundelay_core::trace::TraceText;
use roundelay_core::verify::Callers;
use roundelay_core::verify::Proved;

use super::calls::{ActiveCall, Calls};
use super::needs::{Needs, needs};
use crate::error::Error;
use crate::lowering::first_call::{WORD, WORDS, exchange};
use crate::lowering::{
    AnyRankPlan, Code, CodeMemory, Effects, Instr, InstrKind, PlannedCall, RankCall, RankPart,
    RecordedEffects, Runs, UserBuffers, Waiting, Waits, check_name, lower, run_streams,
};
use crate::options::{Check, Options};
use crate::recorder::{RecordRows, Recorded, RecordedCall, Recorder, now};
use crate::stuck::{Stuck, signal_name};
use crate::sync::{AtomicU64, Ordering, Padded, fence};

/// A proved schedule, lowered for one count, element type and reduce op, whose ranks each call from a thread of their
/// own.
///
/// The name stands for *single program, multiple data*: the ranks are called as the processes of an MPI program are.
/// The thread of a rank takes [`Self::rank`] and calls [`RankPlan::run`], which returns when that rank is done; the
/// work of a rank is done by its own thread alone. The crate `roundelay` makes such plans of algorithms by its trait
/// `ToPlan`, which has an example.
///
/// The count is NCCL's, elements of one unit of the collective, and lengths follow from it as for a
/// [`Plan`](super::Plan). Errors of calls are listed at [`Runs`].
pub struct SpmdPlan {
    call: Arc<PlannedCall>,
    /// The schedule that runs: the call's schedule after the optimizer.
    running: Arc<Schedule>,
    code: Code,
    /// The calls of the ranks, which other plans may share.
    calls: Arc<Calls>,
    /// The number of this plan's shape in `calls`.
    number: u32,
    counters: Box<[Counter]>,
    ranks: Box<[RankStreams]>,
    /// The memory of the code, with partials of each rank.
    memory: CodeMemory,
    options: Options,
    /// The record of the calls, where there is one.
    recorder: OnceLock<Recorder>,
    /// Made when it is first needed.
    check: OnceLock<Result<SpmdCheck, Error>>,
}

/// The checks of a plan's first calls.
struct SpmdCheck {
    /// The number of their shape, as checks are other calls.
    number: u32,
    /// The plan by which ranks tell each other what they found; an exchange has none of its own.
    exchange: Option<Arc<SpmdPlan>>,
}

impl fmt::Debug for SpmdPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = f.debug_struct("SpmdPlan");
        self.call.describe(&mut all);
        all.field("nranks", &self.nranks()).finish_non_exhaustive()
    }
}

/// A channel between two threads: each end has a cache line of its own.
struct Counter {
    posted: Padded<AtomicU64>,
    taken: Padded<AtomicU64>,
    /// The number of posts in a run.
    a_run: u64,
}

/// The part of a rank: the streams that its thread runs, and the ranks that it must meet before.
struct RankStreams {
    part: RankPart,
    needs: Needs,
    first: u32,
    end: u32,
}

/// The plan of one rank of an [`SpmdPlan`], for the thread that calls for it.
pub type RankPlan<'t> = Runs<ThreadRank<&'t SpmdPlan>>;

/// A rank of an [`SpmdPlan`], which it borrows or shares.
#[derive(Clone, Copy, Debug)]
pub struct ThreadRank<P> {
    plan: P,
    rank: RankId,
}

impl SpmdPlan {
    /// Makes a plan for a schedule that was proved for ranks that call by themselves, and for `count` elements a unit.
    /// Of `options` it takes the deadline, the level and [`Options::reassociate`].
    ///
    /// # Errors
    /// E0406 for options that no run can have; E0407 for buffers larger than this machine can hold; E0424 where ranks
    /// could not choose by themselves whether they run in place; E0425 for a fault of the optimizer; E0431 where the
    /// dtype does not have the op; E0306 for a schedule that was proved for one caller of all ranks.
    pub fn new(
        proved: &Proved,
        count: u64,
        dtype: DType,
        op: ReduceOp,
        options: Options,
    ) -> Result<Self, Error> {
        Self::among(
            &Calls::new(proved.schedule().nranks, options)?,
            proved,
            count,
            dtype,
            op,
            options,
        )
    }

    /// Makes one of several plans that share `calls`: the ranks call all of these plans, each rank in the same order,
    /// and a call in which ranks differ is refused for all ranks (E0414).
    ///
    /// # Errors
    /// E0401 where `calls` has another number of ranks than the schedule; else the errors of [`Self::new`].
    pub fn among(
        calls: &Arc<Calls>,
        proved: &Proved,
        count: u64,
        dtype: DType,
        op: ReduceOp,
        options: Options,
    ) -> Result<Self, Error> {
        if proved.callers() != Callers::Each {
            let what = "the schedule was proved for one caller of all ranks".to_owned();
            return Err(Error::BadSchedule { code: ErrorCode::RaceWithCaller, what });
        }
        if let Some(found) = &proved.proof().one_mode {
            let place = found.notes.join("; ");
            return Err(Error::OneMode { what: format!("{} ({place})", found.title) });
        }
        options.check()?;
        let call = Arc::new(PlannedCall::new(proved, count, dtype, op));
        let nranks = call.schedule.nranks;
        if nranks != calls.nranks() {
            let (given, nranks) = (nranks as usize, calls.nranks());
            return Err(Error::WrongBufferCount { what: "ranks of the schedule", given, nranks });
        }
        // `Calls` announces each call.
        let optimized = proved.optimize(options.goal(Callers::Announced))?;
        let code = lower(&optimized, count, dtype, op)?;
        let running = optimized.schedule.clone();
        let streams = &running.streams;
        let streams = |(rank, needs)| {
            Ok::<_, Error>(RankStreams {
                part: RankPart::new(call.clone(), (nranks, rank), &options)?,
                needs,
                first: streams.partition_point(|stream| stream.rank < rank) as u32,
                end: streams.partition_point(|stream| stream.rank <= rank) as u32,
            })
        };
        let ranks = (0..).map(RankId).zip(needs(&running)).map(streams);
        let ranks = ranks.collect::<Result<_, _>>()?;
        let memory = CodeMemory::new(&code, dtype.size(), code.buffers.scratch(), nranks)?;
        let mut posts = vec![0; code.channels];
        for instr in code.instrs.iter().filter(|instr| instr.kind == InstrKind::Post) {
            posts[instr.arg as usize] += 1;
        }
        let counter = |a_run| Counter {
            posted: Padded(AtomicU64::new(0)),
            taken: Padded(AtomicU64::new(0)),
            a_run,
        };
        Ok(Self {
            options,
            recorder: OnceLock::new(),
            check: OnceLock::new(),
            calls: calls.clone(),
            number: calls.add_shape(call.name())?,
            counters: posts.into_iter().map(counter).collect(),
            ranks,
            running,
            call,
            code,
            memory,
        })
    }

    /// Returns the part of rank `rank`, counted from 0, for the thread that calls for it.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`] (E0411) for a rank beyond the last one.
    pub fn rank(&self, rank: impl Into<RankId>) -> Result<RankPlan<'_>, Error> {
        Self::part(self, rank.into())
    }

    /// Returns the part of a rank as [`Self::rank`] does; the part keeps the plan.
    ///
    /// # Errors
    /// The errors of [`Self::rank`].
    pub fn into_rank(self: Arc<Self>, rank: RankId) -> Result<Runs<ThreadRank<Arc<Self>>>, Error> {
        Self::part(self, rank)
    }

    fn part<P: Deref<Target = Self>>(plan: P, rank: RankId) -> Result<Runs<ThreadRank<P>>, Error> {
        let nranks = plan.call.schedule.nranks;
        if rank.0 < nranks {
            Ok(Runs(ThreadRank { plan, rank }))
        } else {
            Err(Error::NoSuchRank { rank, nranks })
        }
    }

    /// Returns the number of ranks.
    pub fn nranks(&self) -> u32 {
        self.call.schedule.nranks
    }

    /// Returns the certificate of the algorithm, as [`Plan::certificate`](super::Plan::certificate) does.
    pub fn certificate(&self) -> Certificate {
        self.call.certificate()
    }

    /// Returns the reduce op, which has no meaning for collectives that only copy.
    pub fn op(&self) -> ReduceOp {
        self.call.op
    }

    /// Whether another rank has made a call of this plan that a slower rank may still come to, and so needs this plan
    /// and no other of its kind. For a cache of plans, while no rank can make a call of this plan.
    pub fn is_awaited(&self) -> bool {
        let check = self.check.get().and_then(|check| check.as_ref().ok());
        let exchanges =
            |check: &SpmdCheck| check.exchange.as_ref().is_some_and(|all| all.is_awaited());
        let checks = |check: &SpmdCheck| self.calls.awaits(check.number) || exchanges(check);
        self.calls.awaits(self.number) || check.is_some_and(checks)
    }

    /// Returns what the checks of this plan's calls have.
    fn check(&self, exchanges: bool) -> Result<&SpmdCheck, Error> {
        let new = || {
            let exchange = exchanges.then(|| {
                let options = self.options.check_calls(Check::Never);
                let exchange = exchange(self.nranks())?;
                Self::among(&self.calls, &exchange, WORDS, WORD, ReduceOp::Sum, options)
            });
            let exchange = exchange.transpose()?.map(Arc::new);
            let number = self.calls.add_shape(check_name(&self.call.name()))?;
            Ok(SpmdCheck { number, exchange })
        };
        self.check.get_or_init(new).as_ref().map_err(Clone::clone)
    }

    /// Records the calls from now on, for [`Self::trace`].
    #[doc(hidden)]
    pub fn record(&self) {
        self.recorder.get_or_init(|| {
            let (calls, streams) = (self.ranks.len(), self.code.tasks.len());
            let recorder = Recorder::new(RecordRows::Streams, calls, streams);
            recorder.shape([0; 3], || self.call.recorded(&self.running));
            recorder
        });
    }

    /// Moves the recorded calls to a trace, with statements where the source is there.
    #[doc(hidden)]
    pub fn trace(&self, text: &mut TraceText, source: Option<&Source>) {
        if let Some(recorder) = self.recorder.get() {
            recorder.write(text, source, RankId(0));
        }
    }

    /// Runs the part of one rank.
    ///
    /// # Safety
    /// Both addresses are valid for the rank's buffers, aligned and initialized, the output's writable, and lent for
    /// the call.
    unsafe fn run(&self, rank: RankId, buffers: UserBuffers) -> Result<(), Error> {
        let streams = &self.ranks[rank.index()];
        let begin = self.recorder.get().map_or(0, |_| now());
        let shape = if buffers.check { self.check(false)?.number } else { self.number };
        let active = self.calls.enter(rank, shape, &streams.needs, || {
            // Lowering refuses to write an input.
            let input = buffers.input.cast_mut();
            self.memory.bases.set(self.code.buffers.index(Buffer::Input, rank), input);
            let output = self.code.buffers.index(Buffer::Output, rank);
            self.memory.bases.set(output, buffers.output);
        })?;
        let mut effects = RankEffects { plan: self, active: &active };
        let (code, all) = (&self.code, streams.first..streams.end);
        let Some(recorder) = self.recorder.get() else {
            // SAFETY: the caller's promise; the callers of other ranks made the same promise before these published the
            // call, and all ranks whose buffers this rank touches have entered it.
            let done = unsafe { run_streams(code, all, &mut effects) };
            return active.end(done);
        };
        let call = RecordedCall { number: active.number, shape: 0, begin };
        let mut recorded =
            RecordedEffects { effects: &mut effects, code, recorder, call, first: 0 };
        // SAFETY: the caller's promise, and that of the other callers, as without a record.
        let done = unsafe { run_streams(code, all, &mut recorded) };
        let done = active.end(done);
        recorder.in_call(rank.index(), call, begin, Recorded::Call { failed: done.is_err() });
        done
    }

    fn stuck(&self, active: &ActiveCall<'_>, Waiting { stream, at, channel }: Waiting) -> Error {
        let counter = &self.counters[channel as usize];
        let before = counter.before(active.number);
        let step = self.code.instrs[at as usize].step;
        let first = self.running.streams[stream as usize].first;
        Error::Timeout(Box::new(Stuck {
            rank: active.rank,
            stream: StreamId(stream),
            step,
            waiting_on: signal_name(&self.running, ChannelId(channel)),
            expected: counter.so_far(&counter.taken, active.number) + 1 - before,
            seen: counter.posted.0.load(Ordering::Relaxed).saturating_sub(before),
            file: self.running.file.clone(),
            line: self.running.location(self.running.op(OpId(first.0 + step)).at).line,
            after: Some(self.calls.deadline),
        }))
    }
}

/// The memory of a plan and its counters, for the streams of one rank in a call.
struct RankEffects<'c, 'p> {
    plan: &'p SpmdPlan,
    active: &'c ActiveCall<'p>,
}

impl RankEffects<'_, '_> {
    /// Whether the next post of a channel is there.
    fn met(&self, channel: u32) -> bool {
        let counter = &self.plan.counters[channel as usize];
        let taken = counter.so_far(&counter.taken, self.active.number);
        counter.posted.0.load(Ordering::Acquire) > taken
    }
}

impl Effects for RankEffects<'_, '_> {
    type Stop = Error;

    unsafe fn data(&mut self, _: u32, instr: Instr) -> Result<(), Error> {
        let Self { plan, active } = *self;
        let segments = &plan.code.segments;
        let segment = segments.all[instr.arg as usize];
        let CodeMemory { bases, .. } = &plan.memory;
        let partials = plan.memory.partials(active.rank.index());
        let elements = 0..segment.elements;
        // SAFETY: the buffers of all ranks that the segment touches are lent: these ranks have entered the call, and by
        // the proof have not left it; the proof orders the segment after and before all accesses of other ranks to the
        // same memory; each rank has partials of its own.
        let whole = unsafe { segments.run(segment, elements, bases, partials, || active.ends()) };
        if whole { Ok(()) } else { active.goes_on() }
    }

    fn post(&mut self, _: u32, row: &[Instr]) -> Result<(), Error> {
        let Self { plan, active } = *self;
        for instr in row {
            let counter = &plan.counters[instr.arg as usize];
            // Only one thread posts on this channel: no exchange is needed.
            let posted = counter.so_far(&counter.posted, active.number);
            counter.posted.0.store(posted + 1, Ordering::Release);
        }
        fence(Ordering::SeqCst);
        for instr in row {
            let to = plan.running.channels[instr.arg as usize].to;
            if to != active.rank {
                plan.calls.wake(to);
            }
        }
        Ok(())
    }

    fn take(&mut self, waiting: Waiting) -> Result<bool, Error> {
        let met = self.met(waiting.channel);
        if met {
            let counter = &self.plan.counters[waiting.channel as usize];
            let taken = counter.so_far(&counter.taken, self.active.number);
            counter.taken.0.store(taken + 1, Ordering::Relaxed);
        }
        Ok(met)
    }
}

impl Waits for RankEffects<'_, '_> {
    fn wait(&mut self, waits: &[Waiting]) -> Result<(), Error> {
        let Self { plan, active } = *self;
        let (calls, rank, number) = (&plan.calls, active.rank, active.number);
        let met = || waits.iter().any(|waiting| self.met(waiting.channel));
        let heard = calls.listen(rank, || met() || active.ends());
        active.goes_on()?;
        if heard {
            return Ok(());
        }
        // Several ranks may come to their deadlines at once: the first gives the reason.
        let stuck = || plan.stuck(active, waits[0]);
        let why = || calls.late(rank, number).unwrap_or_else(stuck);
        Err(calls.give_up(rank, why))
    }
}

impl Drop for SpmdPlan {
    fn drop(&mut self) {
        self.calls.remove_shape(self.number);
        if let Some(Ok(check)) = self.check.get() {
            self.calls.remove_shape(check.number);
        }
    }
}

impl Counter {
    /// Returns the count at the beginning of call `call`.
    fn before(&self, call: u64) -> u64 {
        call * self.a_run
    }

    /// Returns the count at one end. The count that a void call left is at most the count at the beginning of the next
    /// call.
    fn so_far(&self, end: &Padded<AtomicU64>, call: u64) -> u64 {
        end.0.load(Ordering::Relaxed).max(self.before(call))
    }
}

impl<P: Deref<Target = SpmdPlan> + Send + Sync> RankCall for ThreadRank<P> {
    fn part(&self) -> &RankPart {
        &self.plan.ranks[self.rank.index()].part
    }

    fn exchange(&self) -> Result<Box<AnyRankPlan>, Error> {
        let all = self.plan.check(true)?.exchange.clone();
        Ok(Box::new(all.expect("the plan of a call has it").into_rank(self.rank)?))
    }

    unsafe fn make(&self, buffers: UserBuffers) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        unsafe { self.plan.run(self.rank, buffers) }
    }
}
