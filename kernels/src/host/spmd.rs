//! Ranks that call by themselves, each from a thread of its own, as in MPI. A rank's thread runs the rank's streams and
//! no other's, so what orders the ranks is the schedule's signals and nothing else.
//!
//! Counters are never set back: each call counts from its own number times what a run posts. So a signal of one
//! call cannot be taken for one of another, however far a rank is ahead, and whatever became of the calls between.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use roundelay_core::diagnostics::Code as ErrorCode;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::{ChannelId, OpId, RankId, StreamId};
use roundelay_core::schedule::{Buffer, Schedule};
use roundelay_core::verify::Callers;
use roundelay_core::verify::Proved;

use super::bases::Bases;
use super::calls::{Calls, Visit};
use super::code::{Code, Kind};
use super::error::Error;
use super::lower::lower;
use super::needs::{Needs, needs};
use super::options::Options;
use super::planned::PlannedCall;
use super::rank_plan::{RankCall, Runs, UserBuffers};
use super::scratch::Scratch;
use super::sync::{AtomicU64, Ordering, Padded, fence};
use crate::stuck::{Stuck, signal_name};

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
    call: PlannedCall,
    /// The schedule that runs, which is the call's after the optimizer.
    running: Arc<Schedule>,
    code: Code,
    /// What the ranks call beside this, or this alone.
    calls: Arc<Calls>,
    /// Which of those this is.
    number: u32,
    counters: Box<[Counter]>,
    ranks: Box<[RankStreams]>,
    bases: Bases,
    /// Kept for the bases that point at it.
    _scratch: Scratch,
    /// Each rank's.
    partials: Scratch,
}

impl fmt::Debug for SpmdPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpmdPlan")
            .field("algorithm", &self.call.schedule.algorithm)
            .field("nranks", &self.nranks())
            .field("count", &self.call.count)
            .field("dtype", &self.call.dtype)
            .field("op", &self.call.op)
            .finish_non_exhaustive()
    }
}

/// A channel between two threads: each end has a line of its own.
struct Counter {
    posted: Padded<AtomicU64>,
    taken: Padded<AtomicU64>,
    /// Posts of a run.
    a_run: u64,
}

/// The streams that the thread of a rank runs, and which ranks it needs for them.
struct RankStreams {
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
    /// A plan for a schedule that was proved for ranks that call by themselves, and for `count` elements a unit. Of
    /// `options` it takes the deadline, the level and [`Options::reassociate`].
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

    /// One of several plans that share `calls`: the ranks call all of them, each rank in the same order, and a call
    /// in which ranks differ is refused for all (E0414).
    ///
    /// # Errors
    /// E0401 where `calls` has another number of ranks than the schedule; else those of [`Self::new`].
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
        let call = PlannedCall::new(proved, count, dtype, op);
        let nranks = call.schedule.nranks;
        if nranks != calls.nranks() {
            let (given, nranks) = (nranks as usize, calls.nranks());
            return Err(Error::WrongBufferCount { what: "ranks of the schedule", given, nranks });
        }
        // `Calls` is what announces.
        let optimized = proved.optimized(options.goal(Callers::Announced))?;
        let code = lower(&optimized, count, dtype, op)?;
        let running = optimized.schedule.clone();
        let streams = &running.streams;
        let streams = |(rank, needs)| RankStreams {
            needs,
            first: streams.partition_point(|stream| stream.rank < rank) as u32,
            end: streams.partition_point(|stream| stream.rank <= rank) as u32,
        };
        let ranks = (0..).map(RankId).zip(needs(&running)).map(streams).collect();
        let scratch =
            Scratch::new(code.buffers.scratch().map(|at| code.buffers.len[at] * dtype.size()))?;
        let partials = Scratch::new((0..nranks).map(|_| code.segments.partial_bytes()))?;
        let bases = Bases::new(code.buffers.len.len());
        for (at, block) in code.buffers.scratch().zip(scratch.addresses()) {
            bases.set(at as u32, block);
        }
        let mut posts = vec![0; code.channels];
        for instr in code.instrs.iter().filter(|instr| instr.kind == Kind::Post) {
            posts[instr.arg as usize] += 1;
        }
        let counter = |a_run| Counter {
            posted: Padded(AtomicU64::new(0)),
            taken: Padded(AtomicU64::new(0)),
            a_run,
        };
        Ok(Self {
            calls: calls.clone(),
            number: calls.add_shape(call.name())?,
            counters: posts.into_iter().map(counter).collect(),
            ranks,
            running,
            call,
            code,
            bases,
            _scratch: scratch,
            partials,
        })
    }

    /// The part of rank `rank`, counted from 0, for the thread that calls for it.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`] (E0411) for a rank beyond the last one.
    pub fn rank(&self, rank: impl Into<RankId>) -> Result<RankPlan<'_>, Error> {
        Self::part(self, rank.into())
    }

    /// The part of a rank as [`Self::rank`] gives it, which keeps the plan.
    ///
    /// # Errors
    /// Those of [`Self::rank`].
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

    /// The number of ranks.
    pub fn nranks(&self) -> u32 {
        self.call.schedule.nranks
    }

    /// The reduce op, which has no meaning for collectives that only copy.
    pub fn op(&self) -> ReduceOp {
        self.call.op
    }

    /// Whether a rank may still come to a call of this plan that another has made, and so needs it and no other of
    /// its kind. For whoever keeps plans, while no rank can make a call of this one.
    pub fn awaited(&self) -> bool {
        self.calls.awaits(self.number)
    }

    /// Runs one rank's part.
    ///
    /// # Safety
    /// Both addresses are good for the rank's buffers, aligned and initialized, the output's writable, and lent for
    /// the call.
    unsafe fn run(&self, rank: RankId, input: *mut u8, output: *mut u8) -> Result<(), Error> {
        let streams = &self.ranks[rank.index()];
        let visit = self.calls.enter(rank, self.number, &streams.needs, || {
            self.bases.set(self.code.buffers.index(Buffer::Input, rank), input);
            self.bases.set(self.code.buffers.index(Buffer::Output, rank), output);
        })?;
        // SAFETY: the caller's promise; other ranks' threads made theirs before they published the call, and all whose
        // buffers this rank touches have.
        let done = unsafe { self.run_streams(&visit, streams) };
        visit.end(done)
    }

    /// Runs a rank's streams until all have ended.
    ///
    /// # Safety
    /// The rank's buffers are at the bases, as [`Self::run`] demands.
    unsafe fn run_streams(&self, visit: &Visit<'_>, streams: &RankStreams) -> Result<(), Error> {
        // Most ranks have one stream: then nothing is kept of where it stands.
        if streams.end - streams.first == 1 {
            let mut at = self.code.tasks[streams.first as usize].first;
            // SAFETY: the caller's promise.
            while let Some(channel) = unsafe { self.advance(visit, streams.first, &mut at)? } {
                self.wait(visit, &[(streams.first, at, channel)])?;
            }
            return Ok(());
        }
        let mut open: Vec<(u32, u32)> = (streams.first..streams.end)
            .map(|stream| (stream, self.code.tasks[stream as usize].first))
            .collect();
        while !open.is_empty() {
            let mut blocked = Vec::with_capacity(open.len());
            let mut moved = false;
            for (stream, mut at) in std::mem::take(&mut open) {
                let before = at;
                // SAFETY: the caller's promise.
                let channel = unsafe { self.advance(visit, stream, &mut at)? };
                moved |= at != before || channel.is_none();
                if let Some(channel) = channel {
                    blocked.push((stream, at, channel));
                }
            }
            if !moved {
                self.wait(visit, &blocked)?;
            }
            open.extend(blocked.iter().map(|(stream, at, _)| (*stream, *at)));
        }
        Ok(())
    }

    /// Runs a stream until it ends, or up to a wait that is not met: then that channel.
    ///
    /// # Safety
    /// As for [`Self::streams`].
    unsafe fn advance(
        &self,
        visit: &Visit<'_>,
        stream: u32,
        at: &mut u32,
    ) -> Result<Option<u32>, Error> {
        let task = self.code.tasks[stream as usize];
        let instrs = &self.code.instrs[..(task.first + task.len) as usize];
        while let Some(instr) = instrs.get(*at as usize) {
            match instr.kind {
                Kind::Data => {
                    let segment = self.code.segments.all[instr.arg as usize];
                    let partials = self.partials.address(visit.rank.index());
                    // SAFETY: the buffers of all ranks that the segment touches are lent, as these have entered the
                    // call and the proof has them not left; it orders the segment after and before all that others
                    // do to the same memory; each rank has partials of its own.
                    let whole = unsafe {
                        self.code.segments.run(
                            segment,
                            0..segment.elements,
                            &self.bases,
                            partials,
                            || visit.ends(),
                        )
                    };
                    if !whole {
                        self.calls.goes_on(visit.rank, visit.number)?;
                    }
                }
                Kind::Post => {
                    // All in a row, and then those who hear of it.
                    let rest = instrs[*at as usize..].iter();
                    let row = rest.take_while(|instr| instr.kind == Kind::Post);
                    let len = row.clone().count() as u32;
                    for instr in row.clone() {
                        let counter = &self.counters[instr.arg as usize];
                        // One thread posts here: no exchange is needed.
                        let posted = counter.so_far(&counter.posted, visit.number);
                        counter.posted.0.store(posted + 1, Ordering::Release);
                    }
                    fence(Ordering::SeqCst);
                    for instr in row {
                        let to = self.running.channels[instr.arg as usize].to;
                        if to != visit.rank {
                            self.calls.wake(to);
                        }
                    }
                    *at += len;
                    continue;
                }
                Kind::Wait => {
                    if !self.met(visit, instr.arg) {
                        return Ok(Some(instr.arg));
                    }
                    let counter = &self.counters[instr.arg as usize];
                    let taken = counter.so_far(&counter.taken, visit.number);
                    counter.taken.0.store(taken + 1, Ordering::Relaxed);
                }
                Kind::Panic => panic!("an injected fault"),
                Kind::Sleep => thread::sleep(Duration::from_millis(instr.arg.into())),
            }
            *at += 1;
        }
        Ok(None)
    }

    /// Whether a channel's next post is there.
    fn met(&self, visit: &Visit<'_>, channel: u32) -> bool {
        let counter = &self.counters[channel as usize];
        counter.posted.0.load(Ordering::Acquire) > counter.so_far(&counter.taken, visit.number)
    }

    /// Returns when one of these waits, each of a stream at an instruction, is met.
    fn wait(&self, visit: &Visit<'_>, waits: &[(u32, u32, u32)]) -> Result<(), Error> {
        let (rank, number) = (visit.rank, visit.number);
        let met = || waits.iter().any(|(_, _, channel)| self.met(visit, *channel));
        let heard = self.calls.listen(rank, || met() || visit.ends());
        self.calls.goes_on(rank, number)?;
        if heard {
            return Ok(());
        }
        // Several may come to their deadlines at once: one of them tells why.
        let stuck = || self.stuck(visit, waits[0]);
        let why = || self.calls.late(rank, number).unwrap_or_else(stuck);
        Err(self.calls.give_up(rank, why))
    }

    fn stuck(&self, visit: &Visit<'_>, (stream, at, channel): (u32, u32, u32)) -> Error {
        let counter = &self.counters[channel as usize];
        let before = counter.before(visit.number);
        let step = self.code.instrs[at as usize].step;
        let first = self.running.streams[stream as usize].first;
        Error::Timeout(Box::new(Stuck {
            rank: visit.rank,
            stream: StreamId(stream),
            step,
            waiting_on: signal_name(&self.running, ChannelId(channel)),
            expected: counter.so_far(&counter.taken, visit.number) + 1 - before,
            seen: counter.posted.0.load(Ordering::Relaxed).saturating_sub(before),
            file: self.running.file.clone(),
            line: self.running.location(self.running.op(OpId(first.0 + step)).at).line,
            after: Some(self.calls.deadline),
        }))
    }
}

impl Drop for SpmdPlan {
    fn drop(&mut self) {
        self.calls.remove_shape(self.number);
    }
}

impl Counter {
    /// Where counting begins in that call.
    fn before(&self, call: u64) -> u64 {
        call * self.a_run
    }

    /// How far one end has come. What a call left that was void is no more than where the next one begins.
    fn so_far(&self, end: &Padded<AtomicU64>, call: u64) -> u64 {
        end.0.load(Ordering::Relaxed).max(self.before(call))
    }
}

impl<P: Deref<Target = SpmdPlan> + fmt::Debug + Send + Sync> RankCall for ThreadRank<P> {
    fn planned(&self) -> &PlannedCall {
        &self.plan.call
    }

    fn rank(&self) -> RankId {
        self.rank
    }

    unsafe fn make(&self, UserBuffers { input, output }: UserBuffers) -> Result<(), Error> {
        // SAFETY: the caller's promise; lowering refuses to write an input.
        unsafe { self.plan.run(self.rank, input.cast_mut(), output) }
    }
}
