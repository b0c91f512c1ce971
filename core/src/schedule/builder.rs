//! The schedule builder: what expanded Rust and the interpreter both call, statement by statement, once
//! for each rank. It checks what only a rank count can tell and records every problem at its statement.

use super::area::{Area, Pieces};
use super::arith::Fault;
use super::lengths::{self, Lengths};
use super::ring::Ring;
use super::tables::{Lane, Tables};
use super::value::{Flag, Int, List, Peer, Piece, Place, Seat, Split};
use super::{Buffer, Channel, Op, OpKind, Operand, Scratch, SignalKind};
use crate::diagnostics::{Code, Finding};
use crate::ids::{LaneId, RankId, ScratchId, SpanId};

/// Sources of one move; longer folds become several moves.
const MAX_SOURCES: usize = 8;
/// Destinations of one move.
const MAX_DESTINATIONS: usize = 8;

/// A rank's program cannot go on; why has been recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop;

/// One rank's part of a schedule in the making.
pub struct Builder<'t> {
    tables: &'t mut Tables,
    rank: RankId,
    streams: Vec<Vec<Op>>,
    /// `children[s][k]`: the stream that iteration k + 1 of a `parallel` on stream s runs on.
    children: Vec<Vec<usize>>,
    current: usize,
    lane: Lane,
    /// The shape last written to each slot of this rank, in program order.
    slots: Vec<Vec<Option<Area>>>,
    declared: usize,
}

/// The values of a loop variable.
pub struct Steps(std::ops::Range<i64>);

impl Iterator for Steps {
    type Item = Int;

    fn next(&mut self) -> Option<Int> {
        self.0.next().map(Int::from)
    }
}

/// Statements are numbered in source order; generated code passes the number.
pub type At = u32;

impl<'t> Builder<'t> {
    pub(crate) fn new(tables: &'t mut Tables, rank: RankId) -> Self {
        Self {
            tables,
            rank,
            streams: vec![Vec::new()],
            children: vec![Vec::new()],
            current: 0,
            lane: Lane::default(),
            slots: Vec::new(),
            declared: 0,
        }
    }

    pub(crate) fn into_streams(self) -> Vec<Vec<Op>> {
        self.streams
    }

    // ---- what the program may ask -----------------------------------------------------------

    /// This rank.
    pub fn rank(&self) -> Int {
        Int::from(self.rank.0)
    }

    /// The number of ranks.
    pub fn nranks(&self) -> Int {
        Int::from(self.tables.nranks)
    }

    /// This rank as a peer.
    pub fn local(&self) -> Peer {
        Peer(Ok(self.rank))
    }

    /// The built-in `peer(rank)`.
    pub fn peer(&self, rank: impl Into<Int>) -> Peer {
        Peer(rank.into().0.and_then(|rank| self.find_rank(rank)))
    }

    pub(crate) fn find_rank(&self, rank: i64) -> Result<RankId, Fault> {
        let nranks = self.tables.nranks;
        u32::try_from(rank)
            .ok()
            .filter(|r| *r < nranks)
            .map(RankId)
            .ok_or(Fault::Rank { rank, nranks })
    }

    /// The input buffer.
    pub fn input(&self) -> Piece {
        Piece(Ok(self.buffer(Buffer::Input)))
    }

    /// The output buffer.
    pub fn output(&self) -> Piece {
        Piece(Ok(self.buffer(Buffer::Output)))
    }

    pub(crate) fn buffer(&self, buffer: Buffer) -> Area {
        let Tables { collective, nranks, .. } = *self.tables;
        let units = match buffer {
            Buffer::Input => collective.max_input_units(nranks),
            _ => collective.max_output_units(nranks),
        };
        Area::whole(buffer, units)
    }

    /// This rank's seat in `ring`.
    pub fn ring(&mut self, at: At, ring: &Ring) -> Result<Seat, Stop> {
        match self.tables.seating(ring) {
            Ok(seating) => Ok(Seat {
                left: seating.left(self.rank),
                right: seating.right(self.rank, 1),
                position: seating.position[self.rank.index()],
            }),
            Err(why) => Err(self.fail(
                Finding::new(Code::BadParameter, SpanId(at), why)
                    .help("a ring names each rank of 0..nranks once, in ring order"),
            )),
        }
    }

    /// This rank's seat in the ring of these ranks, in ring order.
    pub fn ring_order(&mut self, at: At, ranks: &List) -> Result<Seat, Stop> {
        let ranks = self.settle(at, ranks.0.clone())?;
        self.ring(at, &Ring::order(ranks))
    }

    /// A parameter of type `Rank`; the one called `root` is the root of a rooted collective.
    pub fn rank_param(&mut self, at: At, value: Int, is_root: bool) -> Result<Int, Stop> {
        let rank = self.settle(at, value.0)?;
        let rank = self.settle(at, self.find_rank(rank))?;
        if is_root {
            self.tables.root = rank;
        }
        Ok(value)
    }

    // ---- control ----------------------------------------------------------------------------

    /// Goes on only where `condition` holds.
    pub fn require(&mut self, at: At, condition: Flag, why: &str) -> Result<(), Stop> {
        if self.settle(at, condition.0)? {
            return Ok(());
        }
        let title =
            format!("{} refuses nranks = {}: {why}", self.tables.algorithm, self.tables.nranks);
        Err(self.fail(
            Finding::new(Code::RankCountRefused, SpanId(at), title).label("this does not hold"),
        ))
    }

    /// The condition of an `if`.
    pub fn test(&mut self, at: At, condition: Flag) -> Result<bool, Stop> {
        self.settle(at, condition.0)
    }

    /// The values of `for x in lo..hi`; none when `hi <= lo`.
    pub fn range(&mut self, at: At, lo: impl Into<Int>, hi: impl Into<Int>) -> Result<Steps, Stop> {
        let (lo, hi) = (self.settle(at, lo.into().0)?, self.settle(at, hi.into().0)?);
        self.spend(at, lo, hi)?;
        Ok(Steps(lo..hi))
    }

    /// The values of `for x in list`.
    pub fn each(&mut self, at: At, list: &List) -> Result<impl Iterator<Item = Int> + use<>, Stop> {
        let list = self.settle(at, list.0.clone())?;
        self.spend(at, 0, list.len() as i64)?;
        Ok(list.into_iter().map(Int::from))
    }

    /// Enters a `step`.
    pub fn step(&mut self, at: At) -> Result<(), Stop> {
        self.spend(at, 0, 1)
    }

    /// Takes the steps of a loop from the budget before the first of them runs.
    pub(crate) fn spend(&mut self, at: At, lo: i64, hi: i64) -> Result<(), Stop> {
        let steps = hi.saturating_sub(lo).max(0) as u64;
        if self.tables.spend(steps) {
            return Ok(());
        }
        let limit = self.tables.limits().steps;
        let title =
            format!("this loop of {steps} iterations goes beyond the step limit of {limit}");
        Err(self.fail(
            Finding::new(Code::StepLimit, SpanId(at), title)
                .note("the limit counts the iterations of all loops on all ranks")
                .help("use fewer, larger pieces"),
        ))
    }

    /// `parallel x in lo..hi`: the first iteration on this stream, the others on streams of their own,
    /// forked before and joined after.
    pub fn parallel(
        &mut self,
        at: At,
        lo: impl Into<Int>,
        hi: impl Into<Int>,
        mut body: impl FnMut(&mut Self, Int) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let (lo, hi) = (self.settle(at, lo.into().0)?, self.settle(at, hi.into().0)?);
        self.spend(at, lo, hi)?;
        let parent = self.current;
        let others = usize::try_from(hi.saturating_sub(lo) - 1).unwrap_or(0);
        let children: Vec<usize> =
            (0..others).map(|k| self.child(at, parent, k)).collect::<Result<_, _>>()?;
        for &child in &children {
            self.fork(at, parent, child, SignalKind::Fork)?;
        }
        for (stream, value) in std::iter::once(parent).chain(children.iter().copied()).zip(lo..hi) {
            self.current = stream;
            self.lane.push(value, self.tables);
            let done = body(self, Int::from(value));
            self.lane.pop(self.tables);
            done?;
        }
        for &child in &children {
            self.fork(at, child, parent, SignalKind::Join)?;
        }
        self.current = parent;
        Ok(())
    }

    fn child(&mut self, at: At, parent: usize, k: usize) -> Result<usize, Stop> {
        if let Some(&child) = self.children[parent].get(k) {
            return Ok(child);
        }
        if self.streams.len() >= Tables::STREAM_LIMIT {
            let title = format!("more than {} streams at one rank", Tables::STREAM_LIMIT);
            return Err(self.fail(Finding::new(Code::StepLimit, SpanId(at), title)));
        }
        self.streams.push(Vec::new());
        self.children.push(Vec::new());
        self.children[parent].push(self.streams.len() - 1);
        Ok(self.streams.len() - 1)
    }

    /// A post on `from` that a wait on `to` meets; the channel is the child's.
    fn fork(&mut self, at: At, from: usize, to: usize, kind: SignalKind) -> Result<(), Stop> {
        let lane = LaneId(from.max(to) as u32);
        let channel = Channel { from: self.rank, to: self.rank, kind, lane };
        for (stream, kind) in [(from, OpKind::Post), (to, OpKind::Wait)] {
            self.current = stream;
            self.signal(at, kind, channel)?;
        }
        Ok(())
    }

    // ---- scratch ----------------------------------------------------------------------------

    /// `scratch name: like region`
    pub fn scratch(&mut self, at: At, name: &str, like: Piece) -> Result<Piece, Stop> {
        let like = self.settle(at, like.0)?;
        let id = self.declare(at, name, 1, like)?;
        Ok(Piece(Ok(Area::slot(id, like))))
    }

    /// `scratch name: count like region`
    pub fn scratch_slots(
        &mut self,
        at: At,
        name: &str,
        count: impl Into<Int>,
        like: Piece,
    ) -> Result<Split, Stop> {
        let like = self.settle(at, like.0)?;
        let count = self.settle(at, count.into().0)?;
        let id = self.declare(at, name, count, like)?;
        Ok(Split(Ok(Pieces { whole: Area::slot(id, like), cut: super::area::Cut::Slots(count) })))
    }

    /// `scratch name: count like pieces`: slots of the widest piece, each holding what it was last given.
    pub fn scratch_blocks(
        &mut self,
        at: At,
        name: &str,
        count: impl Into<Int>,
        like: &Split,
    ) -> Result<Split, Stop> {
        let pieces = self.settle(at, like.0.clone())?;
        let width = self.settle(at, pieces.widest())?;
        let count = self.settle(at, count.into().0)?;
        let mut shape = pieces.whole;
        shape.region.lo = super::rational::Rat::ZERO;
        shape.region.hi = width;
        let id = self.declare(at, name, count, shape)?;
        let whole = Area::floating_slot(id, width);
        Ok(Split(Ok(Pieces { whole, cut: super::area::Cut::Slots(count) })))
    }

    fn declare(&mut self, at: At, name: &str, count: i64, like: Area) -> Result<ScratchId, Stop> {
        if like.floating {
            return Err(self.fault(at, Fault::FloatingSlot));
        }
        let slots = match u32::try_from(count) {
            Ok(slots) if u64::from(slots) <= Tables::SLOT_LIMIT => slots,
            _ => {
                let takes = "a number of slots in 0..=1048576";
                return Err(
                    self.fault(at, Fault::Argument { function: "scratch", takes, got: count })
                );
            }
        };
        let scratch = Scratch { name: name.to_owned(), slots, width: like.width() };
        let id = ScratchId(self.declared as u32);
        self.declared += 1;
        self.slots.push(vec![None; slots as usize]);
        match self.tables.scratch.get(id.index()) {
            None => self.tables.scratch.push(scratch),
            Some(first) if *first == scratch => {}
            Some(first) => {
                let title = format!("scratch `{name}` differs between ranks");
                let note = format!(
                    "{} slots of {} units here at rank {}, {} slots of {} units at rank 0",
                    scratch.slots, scratch.width, self.rank, first.slots, first.width
                );
                return Err(self.fail(
                    Finding::new(Code::ScratchPlacement, SpanId(at), title).note(note).help(
                        "every rank has the same scratch: let its size depend on `nranks` only",
                    ),
                ));
            }
        }
        Ok(id)
    }

    // ---- data -------------------------------------------------------------------------------

    /// `copy(src, [dst, …])`
    pub fn copy(&mut self, at: At, src: Place, dsts: &[Place]) -> Result<(), Stop> {
        let src = self.settle(at, src.0)?;
        let dsts = self.places(at, dsts)?;
        if dsts.is_empty() || dsts.len() > MAX_DESTINATIONS {
            return Err(self.operand_count(
                at,
                "copy",
                "destinations",
                dsts.len(),
                MAX_DESTINATIONS,
            ));
        }
        self.data(at, &[src], &dsts)
    }

    /// `reduce([src, …], dst)`: each source in turn, `dst = src op dst`.
    pub fn reduce(&mut self, at: At, srcs: &[Place], dst: Place) -> Result<(), Stop> {
        let srcs = self.places(at, srcs)?;
        let dst = self.settle(at, dst.0)?;
        if srcs.is_empty() {
            return Err(self.operand_count(at, "reduce", "sources", 0, usize::MAX));
        }
        for part in srcs.chunks(MAX_SOURCES - 1) {
            let fold: Vec<_> = std::iter::once(dst).chain(part.iter().copied()).collect();
            self.data(at, &fold, &[dst])?;
        }
        Ok(())
    }

    fn places(&mut self, at: At, places: &[Place]) -> Result<Vec<(RankId, Area)>, Stop> {
        places.iter().map(|place| self.settle(at, place.0)).collect()
    }

    fn operand_count(&mut self, at: At, op: &str, what: &str, got: usize, most: usize) -> Stop {
        let title = match got {
            0 => format!("`{op}` has no {what}"),
            _ => format!("`{op}` has {got} {what}, and takes at most {most}"),
        };
        self.fail(Finding::new(Code::TooManyOperands, SpanId(at), title))
    }

    /// One move; for a reduce, `srcs[0]` is the destination itself.
    fn data(
        &mut self,
        at: At,
        srcs: &[(RankId, Area)],
        dsts: &[(RankId, Area)],
    ) -> Result<(), Stop> {
        let reads = if srcs.len() > 1 { &srcs[1..] } else { srcs };
        let operands = || reads.iter().chain(dsts);
        if operands().all(|(rank, _)| *rank != self.rank) {
            let title = format!("no operand of this op is local to rank {}", self.rank);
            return Err(self.fail(
                Finding::new(Code::NoLocalOperand, SpanId(at), title)
                    .help("pull into `local.…` or push from it; a third rank cannot move data"),
            ));
        }
        let shape = self.shape(at, &operands().map(|(_, area)| *area))?;
        let at_id = SpanId(at);
        let mut fixed = Vec::with_capacity(srcs.len() + dsts.len());
        for &(rank, area) in srcs.iter().chain(dsts) {
            let area = if area.floating { settle_slot(area, shape) } else { area };
            self.has_buffer(at, rank, area)?;
            let equal = lengths::compare(
                (shape.region.lo, shape.region.hi),
                (area.region.lo, area.region.hi),
            );
            if equal != Lengths::Equal {
                return Err(self.unequal(at, equal, &shape, &area));
            }
            fixed.push((rank, area));
        }
        for (i, &(rank, area)) in fixed[srcs.len()..].iter().enumerate() {
            if area.region.buffer == Buffer::Input {
                let title = format!("the input of rank {rank} is written");
                return Err(self.fail(Finding::new(Code::InputWritten, at_id, title)));
            }
            let earlier = usize::from(srcs.len() > 1)..srcs.len() + i;
            if fixed[earlier].iter().any(|(r, other)| *r == rank && overlap(other, &area)) {
                let name = self.tables.describe(rank, &area.region);
                let title = format!("two operands of this op overlap at {name}");
                return Err(self.fail(Finding::new(Code::RepeatedDestination, at_id, title)));
            }
            if rank == self.rank
                && let Buffer::Scratch(id) = area.region.buffer
            {
                self.slots[id.index()][area.region.slot as usize] = Some(area);
            }
        }
        let op = Op {
            kind: OpKind::Move,
            srcs: srcs.len() as u8,
            dsts: dsts.len() as u8,
            finish: false,
            at: at_id,
            arg: self.tables.operands.len() as u32,
        };
        for (rank, area) in fixed {
            let region = self.tables.region(area.region);
            self.tables.operands.push(Operand { rank, region });
        }
        self.push(at, op)
    }

    /// The shape of an op: that of its first operand which has one of its own, else that of what a
    /// local slot holds.
    fn shape(
        &mut self,
        at: At,
        areas: &(impl Iterator<Item = Area> + Clone),
    ) -> Result<Area, Stop> {
        if let Some(area) = areas.clone().find(|area| !area.floating) {
            return Ok(area);
        }
        let held = areas.clone().find_map(|area| match area.region.buffer {
            Buffer::Scratch(id) => self.slots[id.index()][area.region.slot as usize],
            _ => None,
        });
        match held {
            Some(area) => Ok(area),
            None => Err(self.fail(
                Finding::new(
                    Code::UnknownSlotLength,
                    SpanId(at),
                    "both operands are slots, and no length is known",
                )
                .note("a slot has the length of what was last written to it by its own rank")
                .help("let one operand be a region of `input` or `output`"),
            )),
        }
    }

    fn has_buffer(&mut self, at: At, rank: RankId, area: Area) -> Result<(), Stop> {
        let (units, name) = match area.region.buffer {
            Buffer::Input => (self.tables.input_units(rank), "input"),
            Buffer::Output => (self.tables.output_units(rank), "output"),
            Buffer::Scratch(_) => return Ok(()),
        };
        if units > 0 {
            return Ok(());
        }
        let collective = self.tables.collective;
        let title = format!("rank {rank} has no {name} in a {collective}");
        let root = self.tables.root;
        Err(self.fail(
            Finding::new(Code::BufferAbsent, SpanId(at), title)
                .note(format!("only the root, rank {root}, has an {name}"))
                .help("guard the op with `if rank == root { … }`"),
        ))
    }

    fn unequal(&mut self, at: At, lengths: Lengths, left: &Area, right: &Area) -> Stop {
        let name = |t: &Tables, a: &Area| t.describe_area(&a.region);
        let (l, r) = (name(self.tables, left), name(self.tables, right));
        let at = SpanId(at);
        let finding = match lengths {
            Lengths::Differ { count, left, right } => {
                Finding::new(Code::LengthMismatch, at, format!("{l} and {r} differ in length"))
                    .note(format!(
                        "at count {count} the one has {left} elements and the other {right}"
                    ))
            }
            _ => Finding::new(
                Code::MisalignedRegions,
                at,
                format!("{l} and {r} are cut at different fractions of the count"),
            ),
        };
        self.fail(finding.help("operands of one op are pieces of the same split"))
    }

    // ---- signals ----------------------------------------------------------------------------

    /// `peer.TxAck()`
    pub fn tx_ack(&mut self, at: At, peer: Peer) -> Result<(), Stop> {
        self.post(at, peer, SignalKind::Ack)
    }

    /// `peer.RxAck()`
    pub fn rx_ack(&mut self, at: At, peer: Peer) -> Result<(), Stop> {
        self.wait(at, peer, SignalKind::Ack)
    }

    /// `peer.TxDataSignal()`
    pub fn tx_data_signal(&mut self, at: At, peer: Peer) -> Result<(), Stop> {
        self.post(at, peer, SignalKind::Data)
    }

    /// `peer.RxDataSignal()`
    pub fn rx_data_signal(&mut self, at: At, peer: Peer) -> Result<(), Stop> {
        self.wait(at, peer, SignalKind::Data)
    }

    fn post(&mut self, at: At, peer: Peer, kind: SignalKind) -> Result<(), Stop> {
        let to = self.other(at, peer)?;
        let channel = Channel { from: self.rank, to, kind, lane: self.lane.id() };
        self.signal(at, OpKind::Post, channel)
    }

    fn wait(&mut self, at: At, peer: Peer, kind: SignalKind) -> Result<(), Stop> {
        let from = self.other(at, peer)?;
        let channel = Channel { from, to: self.rank, kind, lane: self.lane.id() };
        self.signal(at, OpKind::Wait, channel)
    }

    fn other(&mut self, at: At, peer: Peer) -> Result<RankId, Stop> {
        let rank = self.settle(at, peer.0)?;
        if rank == self.rank {
            let title = format!("rank {rank} signals itself");
            return Err(self
                .fail(Finding::new(Code::SelfSignal, SpanId(at), title).help(
                    "ops of one rank are ordered already; `parallel` is joined at its end",
                )));
        }
        Ok(rank)
    }

    fn signal(&mut self, at: At, kind: OpKind, channel: Channel) -> Result<(), Stop> {
        let arg = self.tables.channel(channel).0;
        self.push(at, Op { kind, srcs: 0, dsts: 0, finish: false, at: SpanId(at), arg })
    }

    fn push(&mut self, at: At, op: Op) -> Result<(), Stop> {
        if !self.tables.count_op() {
            let title = format!("the schedule has more than {} ops", self.tables.limits().ops);
            return Err(self.fail(Finding::new(Code::StepLimit, SpanId(at), title)));
        }
        self.streams[self.current].push(op);
        Ok(())
    }

    // ---- problems ---------------------------------------------------------------------------

    /// The value, or the fault reported at the statement.
    pub(crate) fn settle<T>(&mut self, at: At, value: Result<T, Fault>) -> Result<T, Stop> {
        value.map_err(|fault| self.fault(at, fault))
    }

    fn fault(&mut self, at: At, fault: Fault) -> Stop {
        self.fail(Finding::new(fault.code(), SpanId(at), fault.to_string()))
    }

    /// Records a problem of this rank.
    pub(crate) fn fail(&mut self, finding: Finding) -> Stop {
        self.tables.fail(self.rank, finding);
        Stop
    }
}

/// A floating slot in the shape of the data it meets.
fn settle_slot(slot: Area, shape: Area) -> Area {
    let mut region = shape.region;
    region.buffer = slot.region.buffer;
    region.slot = slot.region.slot;
    region.base = region.lo;
    Area { region, floating: false }
}

fn overlap(a: &Area, b: &Area) -> bool {
    let (a, b) = (&a.region, &b.region);
    a.buffer == b.buffer && a.slot == b.slot && a.lo < b.hi && b.lo < a.hi
}
