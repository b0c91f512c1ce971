//! Ranks that call by themselves, each from a thread of its own, as in MPI. A rank's thread runs the rank's streams and
//! no other's, so what orders the ranks is the schedule's signals and nothing else.
//!
//! Counters rise from run to run and are never set back: each run posts as often as it waits, so a signal of
//! one run cannot be taken for one of another, however far a rank is ahead.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use roundelay_core::diagnostics::Code as ErrorCode;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::{ChannelId, OpId, RankId, StreamId};
use roundelay_core::optimize::Callers;
use roundelay_core::schedule::Buffer;
use roundelay_core::verify::Proved;

use super::bases::Bases;
use super::bell::Bell;
use super::code::{Code, Kind};
use super::element::Element;
use super::error::{Error, Stuck};
use super::plan::Options;
use super::scratch::Scratch;
use super::shape::{Shape, extent};
use super::stuck::signal_name;
use super::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering, Padded};

/// The plan of ranks that each call by themselves.
pub struct Team {
    shape: Shape,
    /// The schedule that runs, which is the shape's after the optimizer.
    running: Arc<roundelay_core::schedule::Schedule>,
    code: Code,
    counters: Box<[Counter]>,
    ranks: Box<[Padded<Seat>]>,
    bases: Bases,
    /// Kept for the bases that point at it.
    _scratch: Scratch,
    /// Each rank's.
    partials: Scratch,
    deadline: Duration,
    /// Whether each rank's thread has a core for itself.
    spins: bool,
    /// One more than the rank that gave up first; then nobody comes in any more.
    failed: AtomicU32,
}

impl fmt::Debug for Team {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Team")
            .field("algorithm", &self.shape.schedule.algorithm)
            .field("nranks", &self.nranks())
            .field("count", &self.shape.count)
            .field("dtype", &self.shape.dtype)
            .field("op", &self.shape.op)
            .finish_non_exhaustive()
    }
}

/// A channel between two threads: each end has a line of its own.
struct Counter {
    posted: Padded<AtomicU64>,
    taken: Padded<AtomicU64>,
}

/// A rank's place.
struct Seat {
    /// A call of this rank is under way.
    taken: AtomicBool,
    bell: Bell,
    /// The rank's streams.
    first: u32,
    end: u32,
}

/// One rank of a team: what its thread calls.
#[derive(Clone, Copy, Debug)]
pub struct Member<'t> {
    team: &'t Team,
    rank: RankId,
}

impl Team {
    /// Lowers what was proved for `count` elements a unit; options say nothing of workers here.
    pub fn new(
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
        let optimized = proved.optimized(options.goal(Callers::Each))?;
        let code = Code::new(&optimized, count, dtype, op)?;
        let shape = Shape::new(proved, count, dtype, op);
        let nranks = shape.schedule.nranks;
        let cores = thread::available_parallelism().map_or(1, |n| n.get() as u32);
        let streams = &optimized.schedule.streams;
        let seat = |rank: RankId| Seat {
            taken: AtomicBool::new(false),
            bell: Bell::new(),
            first: streams.partition_point(|stream| stream.rank < rank) as u32,
            end: streams.partition_point(|stream| stream.rank <= rank) as u32,
        };
        let scratch =
            Scratch::new(code.buffers.scratch().map(|at| code.buffers.len[at] * dtype.size()))?;
        let partials = Scratch::new((0..nranks).map(|_| code.segments.partial_bytes()))?;
        let bases = Bases::new(code.buffers.len.len());
        for (at, block) in code.buffers.scratch().zip(scratch.addresses()) {
            bases.set(at as u32, block);
        }
        let counter =
            || Counter { posted: Padded(AtomicU64::new(0)), taken: Padded(AtomicU64::new(0)) };
        Ok(Self {
            counters: (0..code.channels).map(|_| counter()).collect(),
            ranks: (0..nranks).map(|rank| Padded(seat(RankId(rank)))).collect(),
            running: optimized.schedule.clone(),
            shape,
            code,
            bases,
            _scratch: scratch,
            partials,
            deadline: options.deadline,
            spins: nranks <= cores,
            failed: AtomicU32::new(0),
        })
    }

    /// Rank `rank`, for the thread that calls for it.
    ///
    /// # Errors
    /// [`Error::NoSuchRank`] beyond the last one.
    pub fn rank(&self, rank: RankId) -> Result<Member<'_>, Error> {
        let nranks = self.shape.schedule.nranks;
        if rank.0 < nranks {
            Ok(Member { team: self, rank })
        } else {
            Err(Error::NoSuchRank { rank, nranks })
        }
    }

    /// Number of ranks.
    pub fn nranks(&self) -> u32 {
        self.shape.schedule.nranks
    }

    /// The reduce op.
    pub fn op(&self) -> ReduceOp {
        self.shape.op
    }

    fn gone(&self) -> Option<RankId> {
        self.failed.load(Ordering::SeqCst).checked_sub(1).map(RankId)
    }

    /// Ends the team for all ranks, unless another has: then that one.
    fn give_up(&self, rank: RankId) -> Result<(), RankId> {
        let order = Ordering::SeqCst;
        let first = self.failed.compare_exchange(0, rank.0 + 1, order, order);
        first.map(drop).map_err(|by| RankId(by - 1))
    }

    /// One rank's run.
    ///
    /// # Safety
    /// Both addresses are good for the rank's buffers, aligned and initialised, the output's writable, and lent for
    /// the call.
    unsafe fn run(&self, rank: RankId, input: *mut u8, output: *mut u8) -> Result<(), Error> {
        let seat = &self.ranks[rank.index()].0;
        if seat.taken.swap(true, Ordering::SeqCst) {
            return Err(Error::RankBusy { rank });
        }
        // Leaves also when a panic does.
        let visit = Visit { team: self, rank, done: Cell::new(false) };
        if let Some(by) = self.gone() {
            return Err(Error::Abandoned { rank, by });
        }
        self.bases.set(self.code.buffers.index(Buffer::Input, rank), input);
        self.bases.set(self.code.buffers.index(Buffer::Output, rank), output);
        // SAFETY: the caller's promise; other ranks' threads made theirs before they posted what we wait for.
        let done = unsafe { self.streams(rank, seat) };
        visit.done.set(done.is_ok());
        done
    }

    /// Runs a rank's streams until all have ended.
    ///
    /// # Safety
    /// The rank's buffers are at the bases, as [`Self::run`] demands.
    unsafe fn streams(&self, rank: RankId, seat: &Seat) -> Result<(), Error> {
        // Most ranks have one stream: then nothing is kept of where it stands.
        if seat.end - seat.first == 1 {
            let mut at = self.code.tasks[seat.first as usize].first;
            // SAFETY: the caller's promise.
            while let Some(channel) = unsafe { self.advance(rank, seat.first, &mut at)? } {
                self.wait(rank, &[(seat.first, at, channel)])?;
            }
            return Ok(());
        }
        let mut open: Vec<(u32, u32)> = (seat.first..seat.end)
            .map(|stream| (stream, self.code.tasks[stream as usize].first))
            .collect();
        while !open.is_empty() {
            let mut blocked = Vec::with_capacity(open.len());
            let mut moved = false;
            for (stream, mut at) in std::mem::take(&mut open) {
                let before = at;
                // SAFETY: the caller's promise.
                let channel = unsafe { self.advance(rank, stream, &mut at)? };
                moved |= at != before || channel.is_none();
                if let Some(channel) = channel {
                    blocked.push((stream, at, channel));
                }
            }
            if !moved {
                self.wait(rank, &blocked)?;
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
        rank: RankId,
        stream: u32,
        at: &mut u32,
    ) -> Result<Option<u32>, Error> {
        let task = self.code.tasks[stream as usize];
        let end = task.first + task.len;
        while *at < end {
            let instr = self.code.instrs[*at as usize];
            match instr.kind {
                Kind::Data => {
                    let segment = self.code.segments.all[instr.arg as usize];
                    let stopped = || self.failed.load(Ordering::Relaxed) != 0;
                    let partials = self.partials.address(rank.index());
                    // SAFETY: the buffers of all ranks that the segment touches are lent, as the proof has them
                    // entered and not left; it orders the segment after and before all that others do to the
                    // same memory; each rank has partials of its own.
                    let whole = unsafe {
                        self.code.segments.run(
                            segment,
                            0..segment.elements,
                            &self.bases,
                            partials,
                            stopped,
                        )
                    };
                    if !whole {
                        let by = self.gone().unwrap_or(rank);
                        return Err(Error::Abandoned { rank, by });
                    }
                }
                Kind::Post => {
                    let posted = &self.counters[instr.arg as usize].posted.0;
                    // One thread posts here: no exchange is needed.
                    posted.store(posted.load(Ordering::Relaxed) + 1, Ordering::Release);
                    let to = self.running.channels[instr.arg as usize].to;
                    if to != rank {
                        self.ranks[to.index()].0.bell.ring();
                    }
                }
                Kind::Wait => {
                    if !self.met(instr.arg) {
                        return Ok(Some(instr.arg));
                    }
                    let taken = &self.counters[instr.arg as usize].taken.0;
                    taken.store(taken.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                }
                Kind::Panic => panic!("an injected fault"),
                Kind::Sleep => thread::sleep(Duration::from_millis(instr.arg.into())),
            }
            *at += 1;
        }
        Ok(None)
    }

    /// Whether a channel's next post is there.
    fn met(&self, channel: u32) -> bool {
        let counter = &self.counters[channel as usize];
        counter.posted.0.load(Ordering::Acquire) > counter.taken.0.load(Ordering::Relaxed)
    }

    /// Returns when one of these waits, each of a stream at an instruction, is met.
    fn wait(&self, rank: RankId, waits: &[(u32, u32, u32)]) -> Result<(), Error> {
        let ready = || {
            self.failed.load(Ordering::Relaxed) != 0
                || waits.iter().any(|(_, _, channel)| self.met(*channel))
        };
        let met = self.ranks[rank.index()].0.bell.wait(ready, self.spins, self.deadline);
        // Several may come to their deadlines at once: one of them tells why.
        let gone = if met { self.gone().map_or(Ok(()), Err) } else { self.give_up(rank) };
        match gone {
            Err(by) => Err(Error::Abandoned { rank, by }),
            Ok(()) if met => Ok(()),
            Ok(()) => Err(self.stuck(rank, waits[0])),
        }
    }

    fn stuck(&self, rank: RankId, (stream, at, channel): (u32, u32, u32)) -> Error {
        let counter = &self.counters[channel as usize];
        let step = self.code.instrs[at as usize].step;
        let first = self.running.streams[stream as usize].first;
        let line = self.running.location(self.running.op(OpId(first.0 + step)).at).line;
        Error::Timeout(Box::new(Stuck {
            rank,
            stream: StreamId(stream),
            step,
            waiting_on: signal_name(&self.running, ChannelId(channel)),
            expected: counter.taken.0.load(Ordering::Relaxed) + 1,
            seen: counter.posted.0.load(Ordering::Relaxed),
            line,
            after: Some(self.deadline),
        }))
    }
}

/// A rank's presence in a run. It ends when nobody can touch the rank's buffers any more: after a run that came
/// to its end the proof says so; else all others must have left too.
struct Visit<'t> {
    team: &'t Team,
    rank: RankId,
    done: Cell<bool>,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let Self { team, rank, .. } = *self;
        let seat = &team.ranks[rank.index()].0;
        if self.done.get() {
            seat.taken.store(false, Ordering::Release);
            return;
        }
        // Also after a panic; who failed first is the one to name.
        _ = team.give_up(rank);
        seat.taken.store(false, Ordering::SeqCst);
        for other in &team.ranks {
            other.0.bell.ring();
        }
        // Whoever comes in now sees the failure and leaves; who is in hears of it at its next tile or wait.
        while team.ranks.iter().any(|other| other.0.taken.load(Ordering::SeqCst)) {
            thread::sleep(Duration::from_micros(50));
        }
    }
}

impl Member<'_> {
    /// Which rank it is.
    pub fn id(&self) -> RankId {
        self.rank
    }

    /// Runs this rank, while the others' threads run theirs; slices are empty where the rank lacks the buffer.
    ///
    /// # Errors
    /// Wrong buffers are found before anything runs, and the others wait for a right call. [`Error::Timeout`] if
    /// they do not come within the deadline: then the team is given up, and all calls fail.
    pub fn run<T: Element>(&self, input: &[T], output: &mut [T]) -> Result<(), Error> {
        self.team.shape.check_dtype(T::DTYPE)?;
        self.apart(input, output, 1)
    }

    /// [`Self::run`] on the rank's one buffer.
    pub fn run_in_place<T: Element>(&self, buffer: &mut [T]) -> Result<(), Error> {
        self.team.shape.check_dtype(T::DTYPE)?;
        self.aliased(buffer, 1)
    }

    /// [`Self::run`] on bytes, aligned for the dtype.
    pub fn run_bytes(&self, input: &[u8], output: &mut [u8]) -> Result<(), Error> {
        self.apart(input, output, self.team.shape.dtype.size())
    }

    /// [`Self::run_in_place`] on bytes, aligned for the dtype.
    pub fn run_bytes_in_place(&self, buffer: &mut [u8]) -> Result<(), Error> {
        self.aliased(buffer, self.team.shape.dtype.size())
    }

    fn apart<T>(&self, input: &[T], output: &mut [T], per_element: usize) -> Result<(), Error> {
        let Self { team: Team { shape, .. }, rank } = *self;
        shape.check_buffer("input", rank, extent(input), per_element, shape.input_len(rank))?;
        shape.check_buffer("output", rank, extent(output), per_element, shape.output_len(rank))?;
        // SAFETY: checked for length and alignment, and borrowed for the call; lowering refuses to write an input.
        unsafe { self.team.run(rank, input.as_ptr().cast_mut().cast(), output.as_mut_ptr().cast()) }
    }

    fn aliased<T>(&self, buffer: &mut [T], per_element: usize) -> Result<(), Error> {
        let Self { team: Team { shape, .. }, rank } = *self;
        shape.check_in_place()?;
        shape.check_buffer(
            "buffer",
            rank,
            extent(buffer),
            per_element,
            shape.in_place_len(rank),
        )?;
        let (input, output) = shape.split(rank, buffer.as_mut_ptr().cast());
        // SAFETY: as above; the buffer holds both, as the collective has them in place.
        unsafe { self.team.run(rank, input, output) }
    }
}
