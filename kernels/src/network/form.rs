//! The steps of a rank in calls of one shape, lowered from the two-sided form of a proved schedule.

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
use crate::lowering::first_call::{WORD, WORDS, exchange};
use crate::lowering::{
    AnyRankPlan, Code, CodeMemory, PlannedCall, RankPart, Runs, Segments, bad, lower,
};
use crate::shared_memory::check;

/// The plan of a rank in a world of several hosts, for calls of one shape.
pub type HostsPlan = Runs<HostsRank>;

/// The part of a rank in calls of one shape, in a world of several hosts.
pub struct HostsRank {
    pub(super) part: RankPart,
    pub(super) hosts: Arc<Hosts>,
    /// A number that follows from the schedule, equal for all ranks that run it.
    pub(super) identity: u64,
    pub(super) steps: Box<[HostsStep]>,
    pub(super) transfers: Box<[Transfer]>,
    /// The number of routes to ranks of other hosts, and from them.
    pub(super) routes: usize,
    pub(super) data: Segments,
    pub(super) memory: CodeMemory,
    /// The bases of this rank's input and output, by number.
    pub(super) outside: [u32; 2],
}

/// A step of a rank, which does its steps one after another.
#[derive(Clone, Copy, Debug)]
pub(super) enum HostsStep {
    /// Begins the message of this number among the rank's transfers.
    Begin(u32),
    /// Waits for the end of the message of this number.
    End(u32),
    /// Runs the segment of this number, for the statement at this span.
    Move(u32, SpanId),
}

/// The location of the other end of a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum PeerLocation {
    /// On this host, with this number in the host's world.
    Nearby(usize),
    /// On another host, by the route of this number. A rank has a route to each rank that it sends to, and a route from
    /// each rank that it receives from.
    Far(usize),
}

/// A message of a rank, seen from its end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    /// Its number among all messages.
    pub(super) number: u32,
    /// Whether the rank sends it to `peer`; else the rank receives it from there.
    pub(super) sends: bool,
    pub(super) peer: u32,
    pub(super) place: PeerLocation,
    /// The place of its bytes: a base, and the offset from there.
    pub(super) buffer: u32,
    pub(super) offset: usize,
    pub(super) bytes: usize,
    pub(super) at: SpanId,
}

impl HostsPlan {
    /// Makes the plan of this process in calls of a schedule that was proved for ranks that call by themselves, for
    /// `count` elements a unit.
    ///
    /// # Errors
    /// E0401 for a schedule of another number of ranks; E0407 for buffers that are too large; E0424 where ranks could
    /// not choose by themselves whether they run in place; E0426 where the schedule cannot be brought to sends and
    /// receives; E0425 for a fault of the pass that does so; E0431 where the dtype does not have the op; E0306 for a
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
        let form = match proved.even() {
            None => TwoSided::for_author(proved),
            Some((even, counts)) => {
                TwoSided::for_author(even).and_then(|form| form.for_counts(counts)).map(Arc::new)
            }
        };
        let form = form.map_err(|found| not_two_sided(&found))?;
        let rank = RankId(hosts.rank());
        let own = own(&form, rank)?;
        let code = lower(&own, count, dtype, op)?;
        let call = PlannedCall::new(form.schedule_with_proof(), count, dtype, op);
        let size = dtype.size();
        let lowering =
            RankLowering { hosts, form: &form, code: &code, rank, count, size, routes: Vec::new() };
        let RankProgram { steps, transfers, routes } = lowering.program()?;
        let mine = code.buffers.of_rank(rank);
        let outside = [mine.start, mine.start + 1];
        let memory = CodeMemory::new(&code, size, mine.skip(2), 1)?;
        let digest = content(proved.schedule());
        let identity = u64::from_le_bytes(digest.bytes()[..8].try_into().expect("8 of 32 bytes"));
        Ok(Runs(HostsRank {
            part: RankPart::new(Arc::new(call), (nranks, rank), &hosts.options())?,
            hosts: hosts.clone(),
            identity,
            steps,
            transfers,
            routes,
            data: code.segments,
            memory,
            outside,
        }))
    }

    /// Makes this plan a part of another call: its messages meet no messages of other calls.
    #[must_use]
    pub(super) fn within(mut self, call: &PlannedCall) -> Self {
        self.0.identity ^= call.count.rotate_left(32);
        self
    }
}

impl Hosts {
    /// Returns this rank's plan of the exchange by which ranks tell each other what a check found.
    pub(super) fn exchange(self: &Arc<Self>) -> Result<Box<AnyRankPlan>, Error> {
        let exchange = exchange(self.nranks())?;
        Ok(Box::new(HostsPlan::new(self, &exchange, WORDS, WORD, ReduceOp::Sum)?))
    }
}

/// Returns the error of a schedule that has no form of sends and receives.
fn not_two_sided(found: &[roundelay_core::diagnostics::Finding]) -> Error {
    let first = found.first();
    let code = first.map_or(ErrorCode::NoTwoSidedForm, |found| found.code);
    let what = first.map_or_else(String::new, |found| found.title.clone());
    Error::NotTwoSided { code, what }
}

/// Returns the moves that a rank does by itself, as a schedule of their own.
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
    // Each sum that is completed must be completed by a move: a message carries the data as it finds them.
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

/// The steps of a rank, its messages, and the number of its routes.
struct RankProgram {
    steps: Box<[HostsStep]>,
    transfers: Box<[Transfer]>,
    routes: usize,
}

/// The lowering of a rank's actions to steps and messages.
struct RankLowering<'a> {
    hosts: &'a Hosts,
    form: &'a TwoSided,
    code: &'a Code,
    rank: RankId,
    count: u64,
    size: usize,
    /// The ranks of other hosts that messages go to (`true`) or come from, by the number of the route.
    routes: Vec<(bool, u32)>,
}

impl RankLowering<'_> {
    /// Returns the rank's steps and messages, without the messages that are empty at this count.
    fn program(mut self) -> Result<RankProgram, Error> {
        let mut numbers = vec![None; self.form.messages().len()];
        let (mut steps, mut transfers) = (Vec::new(), Vec::new());
        let mut next = 0;
        for action in self.form.actions(self.rank) {
            match action {
                Action::Send(id) | Action::Receive(id) => {
                    let transfer = self.transfer(*id)?;
                    if transfer.bytes > 0 {
                        numbers[id.index()] = Some(transfers.len() as u32);
                        steps.push(HostsStep::Begin(transfers.len() as u32));
                        transfers.push(transfer);
                    }
                }
                Action::Sent(id) | Action::Received(id) => {
                    steps.extend(numbers[id.index()].map(HostsStep::End));
                }
                Action::Move(id) => {
                    steps.push(HostsStep::Move(next, self.form.schedule().op(*id).at));
                    next += 1;
                }
            }
        }
        // The moves that divide a whole output come last.
        let rest = next..self.code.segments.all.len() as u32;
        steps.extend(rest.map(|segment| HostsStep::Move(segment, SpanId(0))));
        let (steps, transfers) = (steps.into(), transfers.into());
        Ok(RankProgram { steps, transfers, routes: self.routes.len() })
    }

    fn transfer(&mut self, id: MessageId) -> Result<Transfer, Error> {
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
        let place = nearby.map_or_else(|| self.route(sends, peer), PeerLocation::Nearby);
        Ok(Transfer { number: id.0, sends, peer, place, buffer, offset, bytes, at })
    }

    /// Returns the route to a rank of another host, or from it.
    fn route(&mut self, sends: bool, peer: u32) -> PeerLocation {
        let known = self.routes.iter().position(|route| *route == (sends, peer));
        PeerLocation::Far(known.unwrap_or_else(|| {
            self.routes.push((sends, peer));
            self.routes.len() - 1
        }))
    }

    /// Returns the base of a region, its offset from there, and its bytes.
    fn place(&self, rank: RankId, region: RegionId) -> Result<(u32, usize, usize), Error> {
        let schedule = self.form.schedule();
        let region = &schedule.regions[region.index()];
        let (first, len) = schedule.extent(region, self.count);
        let wide = schedule.is_wide_buffer(region.buffer);
        let width = if wide { self.code.segments.kernel.width() } else { 1 };
        let (first, len) = (first * width as u64, len * width as u64);
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
