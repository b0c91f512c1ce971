//! Moves under way: their dependencies, and the folds that end them.

use super::{At, Cause, Engine, Event, NONE};
use roundelay_base::ids::{OpId, StreamId};
use roundelay_core::schedule::{Operand, Schedule};

/// The number of moves under way of a stream from which on the memory that they touch is kept by place.
const MANY: usize = 64;

/// The number of a move in [`Engine::moves`], in the order in which streams reach them.
pub(super) type MoveId = u32;

/// A move: a transfer, if any data crosses ranks, and then a fold or a copy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moving {
    pub(super) op: OpId,
    pub(super) stream: StreamId,
    /// The number of signals before it in its stream.
    pub(super) epoch: u32,
    /// The number of unfinished moves of its stream that write the data it sends.
    sources: u32,
    /// The number of other moves of its stream that must be done before its fold.
    before: u32,
    /// The number of messages that have not arrived.
    pending: u32,
    /// The first of the moves that wait for it, in [`Engine::edges`].
    followers: u32,
    /// The cause of its transfer's begin: a wait, or a move that wrote the data it sends.
    pub(super) after: Cause,
    /// The move after which its fold began, where the fold did not begin when all messages had arrived.
    pub(super) folds_after: Cause,
    /// Seconds: when the transfer begins, when all messages have arrived, when the fold begins, and when it is done.
    pub(super) start: f64,
    pub(super) arrived: f64,
    pub(super) folds: f64,
    pub(super) done: f64,
    /// Seconds of the last message: its latency, the cost of its pieces, and the time that its bytes would have
    /// flowed alone.
    pub(super) latency: f64,
    pub(super) pieces: f64,
    pub(super) flowing: f64,
    state: MoveState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MoveState {
    /// Its transfer has not begun, or not ended.
    Sending,
    /// All messages have arrived.
    Arrived,
    /// Its fold has begun, or its begin is known.
    Folding,
    Done,
}

/// A dependency of a move on an earlier one.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    follower: MoveId,
    /// Whether the follower waits before its transfer, and not only before its fold.
    sends: bool,
    next: u32,
}

/// The folds of a stream, which it does one after another.
#[derive(Clone, Copy, Default)]
pub(super) struct ReduceState {
    /// Seconds: when all folds so far are done.
    until: f64,
    last: MoveId,
}

impl Engine<'_> {
    /// Starts a move that a stream reaches.
    pub(super) fn meet(&mut self, stream: StreamId, op: OpId) {
        let id = self.moves.len() as MoveId;
        self.causes[op.index()] = Cause::Move(id);
        let At { epoch, gate, .. } = self.streams[stream.index()];
        self.moves.push(Moving {
            op,
            stream,
            epoch,
            sources: 0,
            before: 0,
            pending: 0,
            followers: NONE,
            after: Cause::Start,
            folds_after: Cause::Start,
            start: 0.0,
            arrived: 0.0,
            folds: 0.0,
            done: 0.0,
            latency: 0.0,
            pieces: 0.0,
            flowing: 0.0,
            state: MoveState::Sending,
        });
        self.depend(stream, id);
        let under_way = &mut self.under_way[stream.index()];
        under_way.push_back(id);
        let touched = &mut self.touched[stream.index()];
        if let Some(touched) = touched {
            touched.insert(self.schedule, self.schedule.op(op), id);
        } else if under_way.len() == MANY {
            let touched = touched.insert(Box::default());
            for &id in under_way.iter() {
                let op = self.schedule.op(self.moves[id as usize].op);
                touched.insert(self.schedule, op, id);
            }
        }
        if self.moves[id as usize].sources == 0 {
            self.begin(id, gate);
        }
    }

    /// Finds the moves of the stream that are under way and that a new move depends on.
    fn depend(&mut self, stream: StreamId, id: MoveId) {
        let schedule = self.schedule;
        let op = schedule.op(self.moves[id as usize].op);
        let by = schedule.streams[stream.index()].rank;
        let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
        for needed in schedule.needed_operands(by, op) {
            for earlier in self.after_last_writer(stream, *needed, false) {
                self.follow(earlier, id, true);
            }
        }
        for src in srcs {
            for earlier in self.after_last_writer(stream, *src, false) {
                self.follow(earlier, id, false);
            }
        }
        for dst in dsts {
            for earlier in self.after_last_writer(stream, *dst, true) {
                self.follow(earlier, id, false);
            }
        }
    }

    /// Returns the moves of the stream under way that write a region, or with `reads` that touch it: back to the last
    /// move that writes the whole region, which has waited for the earlier ones.
    fn after_last_writer(&self, stream: StreamId, operand: Operand, reads: bool) -> Vec<MoveId> {
        match &self.touched[stream.index()] {
            Some(touched) => {
                let near = touched.near(self.schedule, operand);
                after_last_writer(self, near.into_iter(), operand, reads)
            }
            None => {
                let under_way = self.under_way[stream.index()].iter().rev().copied();
                after_last_writer(self, under_way, operand, reads)
            }
        }
    }

    fn follow(&mut self, earlier: MoveId, follower: MoveId, sends: bool) {
        let first = &mut self.moves[earlier as usize].followers;
        // The operands that a move sends are among its sources, so the dependency is known already.
        if *first != NONE && self.edges[*first as usize].follower == follower {
            return;
        }
        let next = std::mem::replace(first, self.edges.len() as u32);
        self.edges.push(Edge { follower, sends, next });
        let waits = &mut self.moves[follower as usize];
        *(if sends { &mut waits.sources } else { &mut waits.before }) += 1;
    }

    /// Begins the transfer of a move, as the data that it sends is final.
    fn begin(&mut self, id: MoveId, after: Cause) {
        let now = self.now;
        let moving = &mut self.moves[id as usize];
        (moving.start, moving.after) = (now, after);
        let pending = self.send(id);
        self.moves[id as usize].pending = pending;
        if pending == 0 {
            self.all_here(id);
        }
    }

    /// Counts a message of a move that has arrived: seconds of its latency, of its pieces, and of its bytes alone.
    pub(super) fn arrive(&mut self, id: MoveId, [latency, pieces, flowing]: [f64; 3]) {
        let moving = &mut self.moves[id as usize];
        moving.pending -= 1;
        if moving.pending == 0 {
            (moving.latency, moving.pieces, moving.flowing) = (latency, pieces, flowing);
            self.all_here(id);
        }
    }

    fn all_here(&mut self, id: MoveId) {
        let moving = &mut self.moves[id as usize];
        (moving.arrived, moving.state) = (self.now, MoveState::Arrived);
        self.fold(id, Cause::Start);
    }

    /// Begins the fold of a move, if all messages have arrived and no earlier move is left. `after` is the move it
    /// waited for.
    fn fold(&mut self, id: MoveId, after: Cause) {
        let Moving { before, state, op, stream, .. } = self.moves[id as usize];
        if before > 0 || state != MoveState::Arrived {
            return;
        }
        let (work, now) = (self.takes(stream, op), self.now);
        let (mut folds, mut after) = (now, after);
        if work > 0.0 {
            let folder = &mut self.reduce_states[stream.index()];
            if folder.until > now {
                (folds, after) = (folder.until, Cause::Move(folder.last));
            }
            *folder = ReduceState { until: folds + work, last: id };
        }
        let moving = &mut self.moves[id as usize];
        (moving.folds, moving.folds_after, moving.state) = (folds, after, MoveState::Folding);
        if work > 0.0 {
            self.queue.push(folds + work, Event::Done(id));
        } else {
            self.finished.push(id);
        }
    }

    /// Returns the seconds that a move reduces and copies.
    pub(super) fn takes(&self, stream: StreamId, id: OpId) -> f64 {
        let (schedule, machine) = (self.schedule, self.machine);
        if machine.reduce.is_none() && machine.copy.is_none() {
            return 0.0;
        }
        let op = schedule.op(id);
        let bytes = self.bytes[schedule.dsts(op)[0].region.index()];
        let (reduced, copied) = schedule.moved_lengths(op);
        let takes = |times: f64, rate: Option<f64>| rate.map_or(0.0, |rate| times * bytes / rate);
        let work = takes(reduced, machine.reduce) + takes(copied, machine.copy);
        work * self.slower[schedule.streams[stream.index()].rank.index()]
    }

    /// Ends a move: moves that waited for it go on, and so do the posts below it that no move above holds back.
    pub(super) fn finish(&mut self, id: MoveId) {
        let moving = &mut self.moves[id as usize];
        (moving.done, moving.state) = (self.now, MoveState::Done);
        let stream = moving.stream;
        let mut edge = moving.followers;
        let mut followers = std::mem::take(&mut self.followers);
        while edge != NONE {
            followers.push(self.edges[edge as usize]);
            edge = self.edges[edge as usize].next;
        }
        // The list has the last follower first: they go on in the order of the program.
        for Edge { follower, sends, .. } in followers.drain(..).rev() {
            let waits = &mut self.moves[follower as usize];
            if sends {
                waits.sources -= 1;
                if waits.sources == 0 {
                    self.begin(follower, Cause::Move(id));
                }
            } else {
                waits.before -= 1;
                self.fold(follower, Cause::Move(id));
            }
        }
        self.followers = followers;
        let under_way = &mut self.under_way[stream.index()];
        let at = under_way.binary_search(&id).expect("a finished move was under way");
        under_way.remove(at);
        let empty = under_way.is_empty();
        if let Some(touched) = &mut self.touched[stream.index()] {
            let op = self.schedule.op(self.moves[id as usize].op);
            touched.remove(self.schedule, op, id);
            if empty {
                self.touched[stream.index()] = None;
            }
        }
        self.done(stream, id);
    }

    /// Returns the earliest unfinished op of the stream.
    pub(super) fn first_under_way(&self, stream: StreamId) -> Option<OpId> {
        self.under_way[stream.index()].front().map(|id| self.moves[*id as usize].op)
    }
}

/// Returns those of some moves, the last first, that write a region, or with `reads` that touch it: back to the last one
/// that writes the whole region.
fn after_last_writer(
    engine: &Engine<'_>,
    moves: impl Iterator<Item = MoveId>,
    operand: Operand,
    reads: bool,
) -> Vec<MoveId> {
    let schedule = engine.schedule;
    let mut found = Vec::new();
    for id in moves {
        let op = schedule.op(engine.moves[id as usize].op);
        let dsts = schedule.dsts(op);
        let writes = dsts.iter().any(|dst| overlap(schedule, *dst, operand));
        if writes || reads && schedule.srcs(op).iter().any(|src| overlap(schedule, *src, operand)) {
            found.push(id);
        }
        if writes && dsts.iter().any(|dst| covers(schedule, *dst, operand)) {
            break;
        }
    }
    found
}

/// Whether two operands share memory. If one slot holds data of two places, the whole slot is shared.
fn overlap(schedule: &Schedule, a: Operand, b: Operand) -> bool {
    if a.rank != b.rank {
        return false;
    }
    let (one, other) = (schedule.region(a), schedule.region(b));
    if (one.buffer, one.slot) != (other.buffer, other.slot)
        || one.lo == one.hi
        || other.lo == other.hi
    {
        return false;
    }
    one.base != other.base || one.lo < other.hi && other.lo < one.hi
}

/// Whether `whole` contains `part`.
fn covers(schedule: &Schedule, whole: Operand, part: Operand) -> bool {
    if whole == part {
        return true;
    }
    let (outer, inner) = (schedule.region(whole), schedule.region(part));
    whole.rank == part.rank
        && (outer.buffer, outer.slot, outer.base) == (inner.buffer, inner.slot, inner.base)
        && outer.lo <= inner.lo
        && inner.hi <= outer.hi
}
