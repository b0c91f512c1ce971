//! The acts of all ranks in order: messages from rank to rank, and moves whose operands are all of one rank.
//!
//! The acts stand in one order that the author's signals allow. Every order that they allow gives the same memory, so
//! this one does too. It is one order of all ranks, so an act waits only for acts before it.

use super::Message;
use super::slots::MessageSlots;
use crate::diagnostics::{Code, Finding};
use crate::ids::{LaneId, OpId, RankId, RegionId, SpanId};
use crate::schedule::interner::Interner;
use crate::schedule::{Op, OpKind, Operand, Region, Schedule};
use crate::verify::Order;

/// A region of a rank.
type Place = (RankId, Region);

/// An event at one or two ranks.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// The message with that number goes from one rank to another.
    Message(u32),
    /// A rank does a move whose operands are all its own.
    Move(RankId, Op),
}

/// The acts of all ranks in order, and the tables that they refer to.
pub(super) struct Acts {
    pub(super) list: Vec<Act>,
    /// The level of each act, in ascending order once the acts are sorted.
    pub(super) levels: Vec<u32>,
    pub(super) messages: Vec<Message>,
    pub(super) operands: Vec<Operand>,
    pub(super) regions: Interner<Region>,
    slots: MessageSlots,
    /// Where one rank is followed, the slots that were taken, each with the region whose data it takes.
    pub(super) likes: Vec<(Region, Region)>,
    /// The largest number of acts allowed.
    limit: usize,
}

impl Acts {
    /// Returns the acts of a schedule whose ops run in `order`, of `followed` ranks: all, or one that stands for all.
    ///
    /// # Errors
    /// E0426 at the first move that has no two-sided form.
    pub(super) fn new(
        schedule: &Schedule,
        order: &Order,
        followed: u32,
        limit: usize,
    ) -> Result<Self, Vec<Finding>> {
        let mut acts = Self {
            list: Vec::with_capacity(schedule.ops.len()),
            levels: Vec::new(),
            messages: Vec::new(),
            operands: Vec::with_capacity(schedule.operands.len()),
            regions: Interner::default(),
            slots: MessageSlots::new(&schedule.scratch, followed),
            likes: Vec::new(),
            limit,
        };
        let lanes = lanes(schedule);
        for at in by_turn(schedule, order) {
            let stream = order.stream_of[at.index()];
            let by = schedule.streams[stream.index()].rank;
            let op = schedule.op(at);
            let place = |operand: &Operand| (operand.rank, *schedule.region(*operand));
            let srcs: Vec<Place> = schedule.srcs(op).iter().map(place).collect();
            let dsts: Vec<Place> = schedule.dsts(op).iter().map(place).collect();
            // A region that is empty for every count is left out at both ends.
            if srcs[0].1.lo == srcs[0].1.hi {
                continue;
            }
            let mut writer = ActWriter { acts: &mut acts, at: op.at, lane: lanes[at.index()] };
            let done = match &srcs[..] {
                [src] => writer.copy(by, *src, &dsts),
                _ => writer.fold((by, op.chain), &srcs, &dsts),
            };
            done.map_err(|why| vec![refused(op.at, by, &why)])?;
        }
        Ok(acts)
    }

    /// Takes the tables without the acts, as parts of a schedule that has no ops yet.
    pub(super) fn tables(&mut self, schedule: &Schedule) -> Schedule {
        let mut slots = std::mem::replace(&mut self.slots, MessageSlots::new(&[], 0));
        self.likes = std::mem::take(&mut slots.likes);
        Schedule {
            algorithm: schedule.algorithm.clone(),
            scratch: slots.scratch(),
            streams: Vec::new(),
            ops: Vec::new(),
            operands: std::mem::take(&mut self.operands),
            regions: std::mem::take(&mut self.regions).items,
            channels: Vec::new(),
            lanes: schedule.lanes.clone(),
            locations: schedule.locations.clone(),
            origins: schedule.origins.clone(),
            file: schedule.file.clone(),
            demands: schedule.demands.of_calls(),
            elements: schedule.elements.clone(),
            ..*schedule
        }
    }
}

/// The reason why a move has no two-sided form.
enum Unfit {
    /// The width of this region is no fraction of 64-bit numbers.
    Width(Place),
    /// There would be more acts than this limit.
    TooMany(usize),
}

fn refused(at: SpanId, by: RankId, why: &Unfit) -> Finding {
    let finding = |what: String| {
        Finding::new(Code::NoTwoSidedForm, at, what).note(format!("the move is of rank {by}"))
    };
    match why {
        Unfit::Width((rank, Region { lo, hi, .. })) => finding(format!(
            "what lies from {lo} to {hi} of a buffer of rank {rank} is of no width that scratch can have"
        ))
        .label("it would be received into scratch")
        .help("cut buffers by numbers that have more in common"),
        Unfit::TooMany(limit) => {
            finding(format!("in two-sided form there would be more than {limit} messages and moves"))
                .help("use fewer ranks, or fewer and larger pieces")
        }
    }
}

/// Sorts the moves by the number of moves between ranks that must come before each if every stream runs in order, and
/// then by the order of the proof. So the streams of a rank take turns, as they do when they run at once.
fn by_turn(schedule: &Schedule, order: &Order) -> Vec<OpId> {
    let mut of_stream = vec![0_u32; schedule.streams.len()];
    let mut of_op = vec![0_u32; schedule.ops.len()];
    let mut moves = Vec::new();
    for &at in &order.sequence {
        let turn = &mut of_stream[order.stream_of[at.index()].index()];
        let op = schedule.op(at);
        match op.kind {
            OpKind::Move => {
                *turn += u32::from(schedule.crosses(op));
                moves.push(at);
            }
            OpKind::Post => {}
            OpKind::Wait => *turn = (*turn).max(of_op[order.meets[at.index()].index()]),
        }
        of_op[at.index()] = *turn;
    }
    moves.sort_by_key(|at| of_op[at.index()]);
    moves
}

/// Returns the lane of each op: the lane of the last signal before it in its stream, or else of the stream's first
/// signal.
fn lanes(schedule: &Schedule) -> Vec<LaneId> {
    let mut lanes = Vec::with_capacity(schedule.ops.len());
    for stream in &schedule.streams {
        let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
        let lane = |op: &Op| {
            let channel = (op.kind != OpKind::Move).then(|| schedule.channel(op))?;
            channel.kind.has_lane().then_some(channel.lane)
        };
        let mut now = ops.iter().find_map(lane).unwrap_or_default();
        lanes.extend(ops.iter().map(|op| {
            now = lane(op).unwrap_or(now);
            now
        }));
    }
    lanes
}

/// Writes the acts of one move.
struct ActWriter<'a> {
    acts: &'a mut Acts,
    at: SpanId,
    lane: LaneId,
}

impl ActWriter<'_> {
    /// Writes a copy by rank `by`. If the source is of another rank, `by` receives it before it sends it to third
    /// ranks.
    fn copy(&mut self, by: RankId, src: Place, dsts: &[Place]) -> Result<(), Unfit> {
        let near = |dst: &Place| dst.0 == by || dst.0 == src.0;
        let (near, far): (Vec<Place>, Vec<Place>) = dsts.iter().partition(|dst| near(dst));
        match near.iter().find(|dst| dst.0 == by && self.is_wide(**dst) == self.is_wide(src)) {
            Some(landing) if src.0 != by => {
                self.spread(src, &near)?;
                self.spread(*landing, &far)
            }
            _ => self.spread(src, dsts),
        }
    }

    /// Writes a reduction by rank `by`, unless its whole result goes to one rank that holds an operand: then that
    /// rank reduces.
    fn fold(
        &mut self,
        (by, chain): (RankId, bool),
        srcs: &[Place],
        dsts: &[Place],
    ) -> Result<(), Unfit> {
        let owner = dsts[0].0;
        let pushed = dsts.iter().all(|dst| dst.0 == owner) && srcs.iter().any(|src| src.0 == owner);
        let folder = if pushed { owner } else { by };
        let mut brought: Vec<(Place, Place)> = Vec::new();
        for src in srcs.iter().filter(|src| src.0 != folder) {
            if brought.iter().any(|(known, _)| known == src) {
                continue;
            }
            let here = if src.0 == by { *src } else { self.receive(*src, by)? };
            let there = if folder == by { here } else { self.receive(here, folder)? };
            if here != *src && here != there {
                self.drop(here);
            }
            brought.push((*src, there));
        }
        let operand = |src: &Place| {
            let known = brought.iter().find(|(known, _)| known == src);
            known.map_or(*src, |(_, there)| *there)
        };
        let operands: Vec<Place> = srcs.iter().map(operand).collect();
        let (mut home, far): (Vec<Place>, Vec<Place>) =
            dsts.iter().partition(|dst| dst.0 == folder);
        // The result that goes on to other ranks is as wide as the widest place that it goes to.
        let wide = dsts.iter().find(|dst| self.is_wide(**dst)).copied();
        let held = home.iter().position(|dst| self.is_wide(*dst) == wide.is_some());
        let result = match held {
            Some(at) => {
                home.swap(0, at);
                None
            }
            None => Some(self.slot(folder, wide.unwrap_or(dsts[0]))?),
        };
        if let Some(result) = result {
            home.insert(0, result);
        }
        self.act_move((folder, chain), &operands, &home)?;
        for (_, there) in brought {
            self.drop(there);
        }
        self.spread(home[0], &far)?;
        if let Some(slot) = result {
            self.drop(slot);
        }
        Ok(())
    }

    /// Writes copies of one place: one message to each other rank, which then copies it to its further destinations
    /// by a move of its own.
    fn spread(&mut self, from: Place, dsts: &[Place]) -> Result<(), Unfit> {
        let mut local = Vec::new();
        let mut left: Vec<Place> = dsts.iter().copied().filter(|dst| *dst != from).collect();
        while let Some(first) = left.first().copied() {
            let (these, others) = left.iter().partition(|dst| dst.0 == first.0);
            left = others;
            if first.0 == from.0 {
                local = these;
                continue;
            }
            // A message has the elements of its source: another width is made where it arrives.
            if self.is_wide(from) != self.is_wide(first) {
                let slot = self.receive(from, first.0)?;
                self.act_move((first.0, false), &[slot], &these)?;
                self.drop(slot);
                continue;
            }
            self.message(from, first)?;
            if these.len() > 1 {
                self.act_move((first.0, false), &[first], &these[1..])?;
            }
        }
        // In place, a local copy may overwrite the source of the messages, so it comes last.
        if local.is_empty() { Ok(()) } else { self.act_move((from.0, false), &[from], &local) }
    }

    fn is_wide(&self, place: Place) -> bool {
        self.acts.slots.is_wide(place.1.buffer)
    }

    /// Writes a message into scratch of rank `to`, and returns the slot.
    fn receive(&mut self, from: Place, to: RankId) -> Result<Place, Unfit> {
        let slot = self.slot(to, from)?;
        self.message(from, slot)?;
        Ok(slot)
    }

    fn slot(&mut self, rank: RankId, like: Place) -> Result<Place, Unfit> {
        let region = self.acts.slots.take(rank, &like.1).ok_or(Unfit::Width(like))?;
        Ok((rank, region))
    }

    fn drop(&mut self, (rank, region): Place) {
        self.acts.slots.give_back(rank, &region);
    }

    fn message(&mut self, from: Place, to: Place) -> Result<(), Unfit> {
        let (source, target) = (self.region(from.1), self.region(to.1));
        let id = self.acts.messages.len() as u32;
        let (from, to) = (from.0, to.0);
        self.acts.messages.push(Message { from, to, lane: self.lane, source, target, at: self.at });
        self.act(Act::Message(id))
    }

    fn act_move(
        &mut self,
        (rank, chain): (RankId, bool),
        srcs: &[Place],
        dsts: &[Place],
    ) -> Result<(), Unfit> {
        let arg = self.acts.operands.len() as u32;
        for (rank, region) in srcs.iter().chain(dsts) {
            let region = self.region(*region);
            self.acts.operands.push(Operand { rank: *rank, region });
        }
        let (srcs, dsts) = (srcs.len() as u8, dsts.len() as u8);
        let op = Op { srcs, dsts, chain, ..Op::new(OpKind::Move, self.at, arg) };
        self.act(Act::Move(rank, op))
    }

    fn act(&mut self, act: Act) -> Result<(), Unfit> {
        self.acts.list.push(act);
        let limit = self.acts.limit;
        if self.acts.list.len() > limit { Err(Unfit::TooMany(limit)) } else { Ok(()) }
    }

    fn region(&mut self, region: Region) -> RegionId {
        RegionId(self.acts.regions.intern(region))
    }
}
