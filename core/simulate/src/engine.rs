//! Runs streams from event to event.

mod critical;
mod footprint;
mod moves;
mod packets;
mod spans;

use std::collections::VecDeque;

use super::Simulated;
use super::machine::{Machine, SignalCost, Streams};
use super::paths::RankPaths;
use super::queue::Queue;
use super::sharing::Sharing;
use super::step::Step;
use super::timeline::{Message, Span, Timeline, TimelineState};
use super::usage;
pub(super) use critical::path;
use footprint::Touched;
use moves::{Edge, MoveId, Moving, ReduceState};
use packets::Packets;
use roundelay_base::ids::{OpId, RankId, StreamId};
use roundelay_core::schedule::{Channel, OpKind, Schedule};

/// Marks the absence of a stream, a move or a message.
const NONE: u32 = u32::MAX;

/// An event at a time.
#[derive(Clone, Copy)]
enum Event {
    /// The latency of a message is over: its bytes begin to flow.
    Flows(u32),
    /// The last byte of a flow arrives, unless its end was put off or the place has another flow now (generation).
    Ends(u32, u32),
    /// A message without bytes arrives.
    Arrives(u32),
    /// The reduction or copy of a move is done.
    Done(MoveId),
    /// A signal arrives.
    Signal(OpId),
}

/// The cause of an event, which ended at its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Cause {
    /// The start of the run.
    #[default]
    Start,
    /// The end of a wait that had blocked its stream.
    Wait(OpId),
    /// The arrival of a post's signal, for which a wait was blocked.
    Post { post: OpId, wait: OpId },
    /// The end of a move.
    Move(MoveId),
}

/// The position of a stream.
#[derive(Clone, Copy)]
struct At {
    /// The next op.
    next: u32,
    end: u32,
    /// The last op that blocked the stream: a wait or, in order, a move.
    gate: Cause,
    /// The number of signals before the next op.
    epoch: u32,
    /// The time since which it waits for a signal.
    since: f64,
}

/// The signals of a channel.
#[derive(Clone, Copy)]
struct Counter {
    arrived: u32,
    taken: u32,
    /// A stream that waits; other waiting streams follow in [`Engine::behind`].
    waiting: u32,
}

/// A run in progress.
pub(super) struct Engine<'a> {
    schedule: &'a Schedule,
    machine: &'a Machine,
    paths: &'a RankPaths<'a>,
    sharing: Sharing<'a>,
    queue: Queue<Event>,
    now: f64,
    streams: Vec<At>,
    behind: Vec<u32>,
    ready: Vec<StreamId>,
    counters: Vec<Counter>,
    /// The posts of each stream that have unfinished moves above them.
    posts: Vec<VecDeque<OpId>>,
    /// The unfinished moves of each stream.
    under_way: Vec<VecDeque<MoveId>>,
    /// The memory that they touch, while they are many.
    touched: Vec<Option<Box<Touched>>>,
    reduce_states: Vec<ReduceState>,
    moves: Vec<Moving>,
    edges: Vec<Edge>,
    /// The moves that are done at this time.
    finished: Vec<MoveId>,
    /// Reused: the followers of a move.
    followers: Vec<Edge>,
    packets: Packets,
    /// The factor by which each rank is slower.
    slower: Vec<f64>,
    /// Seconds that a signal of each channel takes.
    signal: Vec<f64>,
    /// Bytes of each region.
    bytes: Vec<f64>,
    signals: u64,
    /// Bytes that each link has carried.
    carried: Vec<f64>,
    /// The time at which each stream ended, and the cause.
    ends: Vec<(f64, Cause)>,
    /// For a move its number; for a wait that was blocked the post that ended it; for a post the cause of its
    /// departure.
    causes: Vec<Cause>,
    timeline: Option<Timeline>,
}

impl<'a> Engine<'a> {
    /// Returns the engine with all streams at their beginning, for regions of `bytes` bytes each.
    pub(super) fn new(
        schedule: &'a Schedule,
        machine: &'a Machine,
        paths: &'a RankPaths<'a>,
        bytes: Vec<f64>,
        record: bool,
    ) -> Self {
        let at = |s: &roundelay_core::schedule::Stream| At {
            next: s.first.0,
            end: s.first.0 + s.len,
            gate: Cause::Start,
            epoch: 0,
            since: 0.0,
        };
        let signal = |c: &roundelay_core::schedule::Channel| {
            if c.from == c.to || machine.signals == SignalCost::Free {
                0.0
            } else {
                paths.path(paths.between((c.from.into(), c.to.into()))).latency
            }
        };
        let (ops, streams) = (schedule.ops.len(), schedule.streams.len());
        let counter = Counter { arrived: 0, taken: 0, waiting: NONE };
        Self {
            schedule,
            machine,
            paths,
            sharing: Sharing::new(paths),
            queue: Queue::new(),
            now: 0.0,
            streams: schedule.streams.iter().map(at).collect(),
            behind: vec![NONE; streams],
            ready: (0..streams as u32).map(StreamId).collect(),
            counters: vec![counter; schedule.channels.len()],
            posts: vec![VecDeque::new(); streams],
            under_way: vec![VecDeque::new(); streams],
            touched: (0..streams).map(|_| None).collect(),
            reduce_states: vec![ReduceState::default(); streams],
            moves: Vec::new(),
            edges: Vec::new(),
            finished: Vec::new(),
            followers: Vec::new(),
            packets: Packets::new(streams),
            slower: (0..schedule.nranks).map(|r| machine.slower(RankId(r))).collect(),
            signal: schedule.channels.iter().map(signal).collect(),
            bytes,
            signals: 0,
            carried: vec![0.0; paths.capacity.len()],
            ends: vec![(0.0, Cause::Start); streams],
            causes: vec![Cause::Start; ops],
            timeline: record.then(|| Timeline { nranks: schedule.nranks, ..Timeline::default() }),
        }
    }

    /// Runs until there are no more events.
    pub(super) fn run(&mut self) {
        let mut events = Vec::new();
        loop {
            self.settle_streams();
            // Rates are found once for all events of a time.
            if self.queue.next() != Some(self.now) {
                let Self { sharing, queue, packets, .. } = self;
                sharing.settle(self.now, |flow, end| {
                    let sent = &mut packets.sent[flow as usize];
                    if end < sent.queued {
                        sent.queued = end;
                        queue.push(end, Event::Ends(flow, sent.generation));
                    }
                });
            }
            let Some(time) = self.queue.pop(&mut events) else { return };
            self.now = time;
            for event in &events {
                self.happen(*event);
            }
        }
    }

    /// Runs all streams as far as they can go at the present time.
    fn settle_streams(&mut self) {
        let (mut running, mut done) = (Vec::new(), Vec::new());
        loop {
            while !self.finished.is_empty() {
                std::mem::swap(&mut self.finished, &mut done);
                for id in done.drain(..) {
                    self.finish(id);
                }
            }
            // In turns: neighbors in memory run one after another.
            std::mem::swap(&mut self.ready, &mut running);
            for stream in running.drain(..) {
                self.advance(stream);
            }
            if self.ready.is_empty() && self.finished.is_empty() {
                self.set_out();
                if self.ready.is_empty() && self.finished.is_empty() {
                    return;
                }
            }
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Flows(id) => self.flow(id),
            Event::Ends(id, generation) => {
                let sent = &mut self.packets.sent[id as usize];
                if sent.generation != generation {
                    return;
                }
                let end = self.sharing.flow(id).end;
                if end > self.now {
                    // The end was put off. It is queued again once, though it may have been queued for several times.
                    if sent.queued <= self.now {
                        sent.queued = end;
                        self.queue.push(end, event);
                    }
                    return;
                }
                self.flowed(id);
            }
            Event::Arrives(id) => self.arrived(id),
            Event::Done(id) => self.finished.push(id),
            Event::Signal(post) => self.signal(post),
        }
    }

    /// Runs a stream until it must wait.
    fn advance(&mut self, stream: StreamId) {
        let schedule = self.schedule;
        let in_order = self.machine.streams == Streams::InOrder;
        loop {
            let At { next, end, gate, .. } = self.streams[stream.index()];
            if in_order && !self.under_way[stream.index()].is_empty() {
                return;
            }
            if next == end {
                if self.under_way[stream.index()].is_empty() {
                    self.end(stream, gate);
                }
                return;
            }
            let (id, op) = (OpId(next), schedule.op(OpId(next)));
            match op.kind {
                OpKind::Post if self.under_way[stream.index()].is_empty() => self.leave(id, gate),
                OpKind::Post => self.posts[stream.index()].push_back(id),
                OpKind::Wait => {
                    let counter = &mut self.counters[op.arg as usize];
                    if counter.taken == counter.arrived {
                        let before = std::mem::replace(&mut counter.waiting, stream.0);
                        self.behind[stream.index()] = before;
                        self.streams[stream.index()].since = self.now;
                        return;
                    }
                    counter.taken += 1;
                    if self.causes[next as usize] != Cause::Start {
                        self.kept(stream, id);
                    }
                }
                OpKind::Move => self.meet(stream, id),
            }
            let at = &mut self.streams[stream.index()];
            at.epoch += u32::from(op.kind != OpKind::Move);
            at.next += 1;
        }
    }

    /// Ends a wait that had blocked its stream.
    fn kept(&mut self, stream: StreamId, op: OpId) {
        let at = &mut self.streams[stream.index()];
        at.gate = Cause::Wait(op);
        let (start, end) = (at.since, self.now);
        if end > start
            && let Some(timeline) = &mut self.timeline
        {
            timeline.spans.push(Span { stream, op, state: TimelineState::Idle, start, end });
        }
    }

    /// Continues a stream after one of its moves is done.
    fn done(&mut self, stream: StreamId, id: MoveId) {
        let first = self.first_under_way(stream);
        while let Some(post) = self.posts[stream.index()].front().copied()
            && first.is_none_or(|op| post < op)
        {
            self.posts[stream.index()].pop_front();
            self.leave(post, Cause::Move(id));
        }
        let At { next, end, .. } = self.streams[stream.index()];
        if first.is_none() && next == end {
            self.end(stream, Cause::Move(id));
        } else if self.machine.streams == Streams::InOrder {
            self.streams[stream.index()].gate = Cause::Move(id);
            self.ready.push(stream);
        }
    }

    fn end(&mut self, stream: StreamId, after: Cause) {
        self.ends[stream.index()] = (self.now, after);
    }

    /// Sends the signal of a post.
    fn leave(&mut self, post: OpId, after: Cause) {
        self.causes[post.index()] = after;
        let channel = *self.schedule.channel(self.schedule.op(post));
        let takes = self.signal[self.schedule.op(post).arg as usize];
        if takes == 0.0 {
            return self.signal(post);
        }
        self.signals += 1;
        let (start, end) = (self.now, self.now + takes);
        let Channel { from, to, .. } = channel;
        self.message(Message { op: post, from, to, bytes: 0, pieces: 0, start, flows: start, end });
        self.queue.push(end, Event::Signal(post));
    }

    /// Delivers the signal of a post.
    fn signal(&mut self, post: OpId) {
        let counter = &mut self.counters[self.schedule.op(post).arg as usize];
        counter.arrived += 1;
        let stream = counter.waiting;
        if stream != NONE {
            counter.waiting = self.behind[stream as usize];
            let wait = OpId(self.streams[stream as usize].next);
            self.causes[wait.index()] = Cause::Post { post, wait };
            self.ready.push(StreamId(stream));
        }
    }

    /// Notes a message in the timeline, if there is one, and returns its number.
    fn message(&mut self, message: Message) -> u32 {
        let Some(timeline) = &mut self.timeline else { return NONE };
        timeline.messages.push(message);
        timeline.messages.len() as u32 - 1
    }

    /// Whether all streams have ended, and no signal is left.
    pub(super) fn ended(&self) -> bool {
        self.streams.iter().all(|at| at.next == at.end)
            && self.counters.iter().all(|counter| counter.taken == counter.arrived)
    }

    /// Returns the result for `bytes` bytes as nccl-tests counts them, with the critical path.
    pub(super) fn result(mut self, bytes: u64, critical: Vec<Step>) -> Simulated {
        let seconds = self.ends.iter().map(|(end, _)| *end).fold(0.0, f64::max);
        if let Some(mut timeline) = self.timeline.take() {
            timeline.seconds = seconds;
            timeline.spans = spans::spans(&self, timeline.spans);
            // Messages that set out together are ordered by their ops, not by the order of the engine.
            let at = |m: &Message| (m.op, m.from, m.to);
            timeline.messages.sort_by(|a, b| a.start.total_cmp(&b.start).then(at(a).cmp(&at(b))));
            self.timeline = Some(timeline);
        }
        let carried = self.paths.carried(self.carried);
        let (links, ports) =
            usage::usage(self.schedule, self.machine, &self.paths.capacity, &carried, seconds);
        let (traffic, each) = (self.schedule.messages(), self.paths.each());
        let tasks = self.schedule.ops.len() as u64 + self.packets.count + self.signals;
        Simulated {
            seconds,
            bytes,
            algbw: if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 },
            tasks: each * tasks,
            messages: each * traffic.messages,
            pieces: each * traffic.pieces,
            links,
            ports,
            critical,
            timeline: self.timeline,
        }
    }
}
