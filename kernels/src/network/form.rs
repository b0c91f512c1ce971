//! What a rank does in calls of one shape, lowered from the two-sided form of a proved schedule.

use std::fmt;
use std::sync::Arc;

use roundelay_core::diagnostics::Code as ErrorCode;
use roundelay_core::dtype::{DType, ReduceOp};
use roundelay_core::ids::{OpId, RankId, RegionId, SpanId};
use roundelay_core::messages::{Action, Message, MessageId, TwoSided};
use roundelay_core::optimize::{Level, Optimized};
use roundelay_core::schedule::hash::content;
use roundelay_core::schedule::{Buffer, Schedule, Stream};
use roundelay_core::verify::{Proof, Proved};

use super::place::Hosts;
use crate::Error;
use crate::lowered::{Bases, Code, PlannedCall, Runs, Scratch, Segments, bad, lower};
use crate::shared_memory::check;

/// The plan of a rank in a world of several hosts, for calls of one shape.
pub type HostsPlan = Runs<HostsRank>;

/// What a rank in a world of several hosts does in calls of one shape.
pub struct HostsRank {
    pub(super) call: PlannedCall,
    pub(super) hosts: Arc<Hosts>,
    /// A number that ranks have in common which run the same schedule.
    pub(super) identity: u64,
    pub(super) steps: Box<[Step]>,
    pub(super) legs: Box<[Leg]>,
    /// How many ways it has to ranks of other hosts, and from them.
    pub(super) ways: usize,
    pub(super) data: Segments,
    pub(super) bases: Bases,
    /// This rank's input and output among the bases.
    pub(super) outside: [u32; 2],
    /// What the bases of its scratch point at.
    _scratch: Scratch,
    pub(super) partials: Scratch,
    /// Elements of this rank's input and output.
    pub(super) lens: [usize; 2],
    /// Where both begin in the one buffer of a call in place, in bytes.
    pub(super) within: [usize; 2],
}

impl fmt::Debug for HostsRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostsPlan")
            .field("algorithm", &self.call.schedule.algorithm)
            .field("rank", &self.hosts.rank())
            .field("count", &self.call.count)
            .field("dtype", &self.call.dtype)
            .field("op", &self.call.op)
            .finish_non_exhaustive()
    }
}

/// What a rank does, one after another.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// A message begins, which has that number among the rank's own.
    Begin(u32),
    /// It waits for the end of that message.
    End(u32),
    /// It does a move of that number, for the statement.
    Move(u32, SpanId),
}

/// Where the other end of a message is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// On this host, and which of its ranks that is.
    Nearby(usize),
    /// On another one. A rank's ways are numbered: there is one to each rank that it sends to, and one from each that it
    /// receives from.
    Far(usize),
}

/// A message of a rank, at its end of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    /// Its number among all messages.
    pub(super) number: u32,
    /// Whether it is sent, and to whom or from whom.
    pub(super) sends: bool,
    pub(super) peer: u32,
    pub(super) place: Place,
    /// Where it lies: a base, and bytes from there.
    pub(super) buffer: u32,
    pub(super) offset: usize,
    pub(super) bytes: usize,
    pub(super) at: SpanId,
}

impl HostsPlan {
    /// What the rank of `hosts` does in calls of a schedule that was proved for ranks that call by themselves, for
    /// `count` elements a unit.
    ///
    /// # Errors
    /// E0401 for a schedule of another number of ranks; E0407 for buffers that are too large; E0424 where ranks could
    /// not choose by themselves whether they run in place; E0426 where the schedule cannot be brought to sends and
    /// receives; E0425 for a fault of what brings it there; E0431 where the dtype does not have the op; E0306 for a
    /// schedule that was proved for one caller of all ranks.
    pub fn new(
        hosts: &Arc<Hosts>,
        proved: &Proved,
        count: u64,
        dtype: DType,
        op: ReduceOp,
    ) -> Result<Self, Error> {
        check(proved)?;
        let nranks = proved.schedule().nranks;
        if nranks != hosts.nranks() {
            let (given, nranks) = (nranks as usize, hosts.nranks());
            return Err(Error::WrongBufferCount { what: "ranks of the schedule", given, nranks });
        }
        let form = TwoSided::of(proved).map_err(|found| not_two_sided(&found))?;
        let rank = RankId(hosts.rank());
        let own = own(&form, rank)?;
        let code = lower(&own, count, dtype, op)?;
        let call = PlannedCall::new(form.proved(), count, dtype, op);
        let schedule = &*call.schedule;
        let size = dtype.size();
        let legs = Legs { hosts, form: &form, code: &code, rank, count, size, ways: Vec::new() };
        let Doing { steps, legs, ways } = legs.of()?;
        let elements = schedule.scratch.iter().map(|scratch| scratch.elements(count));
        let scratch = Scratch::new(elements.map(|elements| elements as usize * dtype.size()))?;
        let bases = Bases::new(code.buffers.len.len());
        let first = code.buffers.of_rank(rank).start;
        for (buffer, address) in (first + 2..).zip(scratch.addresses()) {
            bases.set(buffer, address);
        }
        let digest = content(proved.schedule());
        let identity = u64::from_le_bytes(digest.bytes()[..8].try_into().expect("8 of 32 bytes"));
        Ok(Runs(HostsRank {
            lens: [call.input_len(rank), call.output_len(rank)],
            within: <[usize; 2]>::from(call.in_place(rank)),
            hosts: hosts.clone(),
            identity,
            steps,
            legs,
            ways,
            partials: Scratch::new([code.segments.partial_bytes()].into_iter())?,
            data: code.segments,
            bases,
            outside: [first, first + 1],
            _scratch: scratch,
            call,
        }))
    }

    /// The same as a part of another call: its messages meet those of no other.
    #[must_use]
    pub(super) fn within(mut self, call: &PlannedCall) -> Self {
        self.0.identity ^= call.count.rotate_left(32);
        self
    }
}

/// Why there are no sends and receives.
fn not_two_sided(found: &[roundelay_core::diagnostics::Finding]) -> Error {
    let first = found.first();
    let code = first.map_or(ErrorCode::NoTwoSidedForm, |found| found.code);
    let what = first.map_or_else(String::new, |found| found.title.clone());
    Error::NotTwoSided { code, what }
}

/// The moves that a rank does by itself, as a schedule of their own.
fn own(form: &TwoSided, rank: RankId) -> Result<Optimized, Error> {
    let moves = form.actions(rank).iter().filter_map(|action| match action {
        Action::Move(id) => Some(*id),
        _ => None,
    });
    let ids: Vec<OpId> = moves.collect();
    let (whole, proof) = (&**form.schedule(), &**form.proof());
    let finish: Vec<OpId> = (0..)
        .map(OpId)
        .zip(&ids)
        .filter(|(_, id)| proof.finish.binary_search(id).is_ok())
        .map(|(at, _)| at)
        .collect();
    // Whatever is completed is completed by a move of its own: a message carries what it finds.
    let ops = whole.streams.iter().filter(|stream| stream.rank == rank);
    let finished = ops.flat_map(|stream| stream.first.0..stream.first.0 + stream.len);
    let finished = finished.filter(|id| proof.finish.binary_search(&OpId(*id)).is_ok()).count();
    if finished != finish.len() {
        let what = format!("two-sided form of {}: a message completes a sum", whole.algorithm);
        return Err(bad(ErrorCode::Unproved, what));
    }
    let schedule = Schedule {
        ops: ids.iter().map(|id| *whole.op(*id)).collect(),
        streams: vec![Stream { rank, index: 0, first: OpId(0), len: ids.len() as u32 }],
        channels: Vec::new(),
        ..whole.clone()
    };
    let proof = Proof { finish, ..proof.clone() };
    let (schedule, proof) = (Arc::new(schedule), Arc::new(proof));
    Ok(Optimized { schedule, proof, level: Level::O0, unfit: None })
}

/// What a rank does, its messages, and the number of its ways.
struct Doing {
    steps: Box<[Step]>,
    legs: Box<[Leg]>,
    ways: usize,
}

/// What the messages of a rank are made of.
struct Legs<'a> {
    hosts: &'a Hosts,
    form: &'a TwoSided,
    code: &'a Code,
    rank: RankId,
    count: u64,
    size: usize,
    /// Whom messages go to on other hosts, and whom they come from, by the number of the way.
    ways: Vec<(bool, u32)>,
}

impl Legs<'_> {
    /// What the rank does, and its messages, but for those that are empty at this count.
    fn of(mut self) -> Result<Doing, Error> {
        let mut numbers = vec![None; self.form.messages().len()];
        let (mut steps, mut legs) = (Vec::new(), Vec::new());
        let mut next = 0;
        for action in self.form.actions(self.rank) {
            match action {
                Action::Send(id) | Action::Receive(id) => {
                    let leg = self.leg(*id)?;
                    if leg.bytes > 0 {
                        numbers[id.index()] = Some(legs.len() as u32);
                        steps.push(Step::Begin(legs.len() as u32));
                        legs.push(leg);
                    }
                }
                Action::Sent(id) | Action::Received(id) => {
                    steps.extend(numbers[id.index()].map(Step::End));
                }
                Action::Move(id) => {
                    steps.push(Step::Move(next, self.form.schedule().op(*id).at));
                    next += 1;
                }
            }
        }
        // What divides a whole output comes last.
        let rest = next..self.code.segments.all.len() as u32;
        steps.extend(rest.map(|segment| Step::Move(segment, SpanId(0))));
        Ok(Doing { steps: steps.into(), legs: legs.into(), ways: self.ways.len() })
    }

    fn leg(&mut self, id: MessageId) -> Result<Leg, Error> {
        let Message { from, to, source, target, at, .. } = *self.form.message(id);
        let sends = from == self.rank;
        let [(buffer, offset, bytes), (_, _, theirs)] = if sends {
            [self.place(from, source)?, self.place(to, target)?]
        } else {
            [self.place(to, target)?, self.place(from, source)?]
        };
        if bytes != theirs {
            let what = format!("a message of {bytes} bytes where {theirs} are received");
            return Err(bad(ErrorCode::LengthMismatch, what));
        }
        if !sends && self.form.schedule().regions[target.index()].buffer == Buffer::Input {
            let what = format!("a message goes to the input of rank {to}");
            return Err(bad(ErrorCode::InputWritten, what));
        }
        let peer = if sends { to.0 } else { from.0 };
        let nearby = self.hosts.nearby(peer);
        let peer = self.hosts.numbers[peer as usize];
        let place = nearby.map_or_else(|| self.way(sends, peer), Place::Nearby);
        Ok(Leg { number: id.0, sends, peer, place, buffer, offset, bytes, at })
    }

    /// The way to a rank of another host, or from there.
    fn way(&mut self, sends: bool, peer: u32) -> Place {
        let known = self.ways.iter().position(|way| *way == (sends, peer));
        Place::Far(known.unwrap_or_else(|| {
            self.ways.push((sends, peer));
            self.ways.len() - 1
        }))
    }

    /// The base of a region, where it begins from there, and its bytes.
    fn place(&self, rank: RankId, region: RegionId) -> Result<(u32, usize, usize), Error> {
        let schedule = self.form.schedule();
        let region = &schedule.regions[region.index()];
        let (first, len) = schedule.extent(region, self.count);
        let whole = self.code.buffers.len(region.buffer, rank) as u64;
        if first.checked_add(len).is_none_or(|end| end > whole) {
            let name = schedule.buffer_name(region.buffer);
            let what = format!("a message of {name} of rank {rank}, which has {whole} elements");
            return Err(bad(ErrorCode::OutOfBounds, what));
        }
        let (first, len) = (first as usize * self.size, len as usize * self.size);
        Ok((self.code.buffers.index(region.buffer, rank), first, len))
    }
}
