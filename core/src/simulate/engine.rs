//! Streams and messages from event to event.

use super::Simulated;
use super::machine::{Machine, SignalCost};
use super::queue::Queue;
use super::sharing::Sharing;
use super::step::Step;
use super::timeline::{Message, Span, State, Timeline};
use super::usage;
use super::wires::Wires;
use crate::ids::{OpId, RankId, StreamId};
use crate::schedule::{OpKind, Schedule};

/// No stream, no message.
const NONE: u32 = u32::MAX;

/// What happens at a time.
#[derive(Clone, Copy)]
enum Event {
    /// The latency of a message is over: its bytes begin to flow.
    Flows(u32),
    /// The last byte of a flow arrives, if its end was not put off, and it is still that flow.
    Ends(u32, u32),
    /// A message without bytes arrives at a stream.
    Arrives(StreamId),
    /// A stream has done what there was to reduce or copy.
    Done(StreamId),
    /// A signal arrives.
    Signal(OpId),
}

/// A stream on its way.
#[derive(Clone, Copy, Default)]
struct At {
    /// The op that it is at.
    next: u32,
    end: u32,
    rank: RankId,
    /// Messages of its move that have not arrived.
    pending: u32,
    /// Since when it waits, for messages or for a signal.
    since: f64,
    /// How much slower its rank is.
    slower: f64,
}

/// A message whose bytes flow.
#[derive(Clone, Copy, Default)]
struct Sent {
    stream: StreamId,
    wire: u32,
    bytes: f64,
    /// When the queue tells of its end, at the latest.
    queued: f64,
    /// Which use of this place it is.
    generation: u32,
    /// Its number in the timeline.
    message: u32,
}

/// The signals of a channel.
#[derive(Clone, Copy)]
struct Counter {
    arrived: u32,
    taken: u32,
    /// A stream that waits; others follow in [`Engine::behind`].
    waiting: u32,
}

/// A run in progress.
pub(super) struct Engine<'a> {
    pub(super) schedule: &'a Schedule,
    machine: &'a Machine,
    pub(super) wires: &'a Wires,
    sharing: Sharing<'a>,
    queue: Queue<Event>,
    now: f64,
    streams: Vec<At>,
    behind: Vec<u32>,
    ready: Vec<StreamId>,
    counters: Vec<Counter>,
    /// Seconds that a signal of each channel takes.
    pub(super) signal: Vec<f64>,
    /// Bytes of each region.
    pub(super) bytes: Vec<f64>,
    sent: Vec<Sent>,
    free: Vec<u32>,
    messages: u64,
    signals: u64,
    /// Bytes that each link has carried.
    carried: Vec<f64>,
    /// When each stream ended.
    pub(super) ends: Vec<f64>,
    /// When each move began, in the order in which they did.
    pub(super) began: Vec<f64>,
    /// Of a move its place in `began`; of a wait that was kept the post that ended it, plus 1; else 0.
    pub(super) trace: Vec<u32>,
    timeline: Option<Timeline>,
}

impl<'a> Engine<'a> {
    /// All streams at their beginning; `count` elements a unit, each of `element` bytes.
    pub(super) fn new(
        schedule: &'a Schedule,
        machine: &'a Machine,
        wires: &'a Wires,
        (count, element): (u64, u64),
        record: bool,
    ) -> Self {
        let slower: Vec<f64> = (0..schedule.nranks).map(|r| machine.slower(RankId(r))).collect();
        let at = |s: &crate::schedule::Stream| At {
            next: s.first.0,
            end: s.first.0 + s.len,
            rank: s.rank,
            pending: 0,
            since: 0.0,
            slower: slower[s.rank.index()],
        };
        let signal = |c: &crate::schedule::Channel| {
            if c.from == c.to || machine.signals == SignalCost::Free {
                0.0
            } else {
                wires.wire(wires.between(c.from, c.to)).latency
            }
        };
        let bytes = |r| schedule.extent(r, count).1 as f64 * element as f64;
        let (ops, streams) = (schedule.ops.len(), schedule.streams.len());
        let counter = Counter { arrived: 0, taken: 0, waiting: NONE };
        Self {
            schedule,
            machine,
            wires,
            sharing: Sharing::new(wires),
            queue: Queue::new(),
            now: 0.0,
            streams: schedule.streams.iter().map(at).collect(),
            behind: vec![NONE; streams],
            ready: (0..streams as u32).map(StreamId).collect(),
            counters: vec![counter; schedule.channels.len()],
            signal: schedule.channels.iter().map(signal).collect(),
            bytes: schedule.regions.iter().map(bytes).collect(),
            sent: Vec::new(),
            free: Vec::new(),
            messages: 0,
            signals: 0,
            carried: vec![0.0; wires.capacity.len()],
            ends: vec![0.0; streams],
            began: Vec::new(),
            trace: vec![0; ops],
            timeline: record.then(|| Timeline { nranks: schedule.nranks, ..Timeline::default() }),
        }
    }

    /// Until nothing happens any more.
    pub(super) fn run(&mut self) {
        let (mut events, mut running) = (Vec::new(), Vec::new());
        loop {
            // In turns: neighbors in memory run one after the other.
            while !self.ready.is_empty() {
                std::mem::swap(&mut self.ready, &mut running);
                for stream in running.drain(..) {
                    self.advance(stream);
                }
            }
            // Rates are found once for all that happens at a time.
            if self.queue.next() != Some(self.now) {
                let Self { sharing, queue, sent, .. } = self;
                sharing.settle(self.now, |flow, end| {
                    let sent = &mut sent[flow as usize];
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

    fn happen(&mut self, event: Event) {
        match event {
            Event::Flows(flow) => {
                let Sent { wire, bytes, .. } = self.sent[flow as usize];
                self.sharing.start(flow, wire, bytes);
            }
            Event::Ends(flow, generation) => {
                let sent = &mut self.sent[flow as usize];
                if sent.generation != generation {
                    return;
                }
                let end = self.sharing.flow(flow).end;
                if end > self.now {
                    // Put off; and told of once, though it may have been queued for several times.
                    if sent.queued <= self.now {
                        sent.queued = end;
                        self.queue.push(end, event);
                    }
                    return;
                }
                sent.generation += 1;
                let Sent { stream, message, .. } = *sent;
                self.sharing.end(flow);
                self.free.push(flow);
                if let Some(timeline) = &mut self.timeline {
                    timeline.messages[message as usize].end = self.now;
                }
                self.arrive(stream);
            }
            Event::Arrives(stream) => self.arrive(stream),
            Event::Done(stream) => self.done(stream),
            Event::Signal(post) => self.signal(post),
        }
    }

    /// Runs a stream until it has to wait for something.
    fn advance(&mut self, stream: StreamId) {
        let schedule = self.schedule;
        loop {
            let At { next, end, rank, .. } = self.streams[stream.index()];
            if next == end {
                self.ends[stream.index()] = self.now;
                return;
            }
            let (id, op) = (OpId(next), schedule.op(OpId(next)));
            match op.kind {
                OpKind::Post => {
                    let takes = self.signal[op.arg as usize];
                    if takes > 0.0 {
                        self.post(id, self.now + takes);
                    } else {
                        self.signal(id);
                    }
                }
                OpKind::Wait => {
                    let counter = &mut self.counters[op.arg as usize];
                    if counter.taken == counter.arrived {
                        let before = std::mem::replace(&mut counter.waiting, stream.0);
                        self.behind[stream.index()] = before;
                        self.streams[stream.index()].since = self.now;
                        return;
                    }
                    counter.taken += 1;
                    if self.trace[id.index()] != 0 {
                        self.span(stream, id, State::Idle);
                    }
                }
                OpKind::Move => {
                    self.trace[id.index()] = self.began.len() as u32;
                    self.began.push(self.now);
                    let pending = self.send(stream, id, rank);
                    let at = &mut self.streams[stream.index()];
                    (at.pending, at.since) = (pending, self.now);
                    if pending > 0 {
                        return;
                    }
                    let work = self.work(stream, id);
                    if work > 0.0 {
                        self.queue.push(self.now + work, Event::Done(stream));
                        return;
                    }
                }
            }
            self.streams[stream.index()].next = next + 1;
        }
    }

    /// Sends a move's messages, and says how many are on their way.
    fn send(&mut self, stream: StreamId, id: OpId, rank: RankId) -> u32 {
        let schedule = self.schedule;
        let mut pending = 0;
        for (from, to, region) in schedule.crossing(rank, schedule.op(id)) {
            let bytes = self.bytes[region.index()];
            let number = self.wires.between(from, to);
            let latency = self.wires.wire(number).latency;
            let arrives = self.now + latency;
            let message = self.message(Message {
                op: id,
                from,
                to,
                bytes: bytes as u64,
                start: self.now,
                end: arrives,
            });
            self.messages += 1;
            if bytes > 0.0 {
                let flow = self.free.pop().unwrap_or_else(|| {
                    self.sent.push(Sent::default());
                    self.sent.len() as u32 - 1
                });
                let generation = self.sent[flow as usize].generation;
                let queued = f64::INFINITY;
                self.sent[flow as usize] =
                    Sent { stream, wire: number, bytes, queued, generation, message };
                for (link, share) in self.wires.links(number) {
                    self.carried[*link as usize] += share * bytes;
                }
                if latency > 0.0 {
                    self.queue.push(arrives, Event::Flows(flow));
                } else {
                    self.sharing.start(flow, number, bytes);
                }
                pending += 1;
            } else if latency > 0.0 {
                self.queue.push(arrives, Event::Arrives(stream));
                pending += 1;
            }
        }
        pending
    }

    /// A message of the stream's move has arrived.
    fn arrive(&mut self, stream: StreamId) {
        let at = &mut self.streams[stream.index()];
        at.pending -= 1;
        if at.pending > 0 {
            return;
        }
        let id = OpId(at.next);
        self.span(stream, id, State::Transfer);
        let work = self.work(stream, id);
        if work > 0.0 {
            self.queue.push(self.now + work, Event::Done(stream));
        } else {
            self.done(stream);
        }
    }

    /// Seconds that a move reduces and copies.
    pub(super) fn takes(&self, stream: StreamId, id: OpId) -> f64 {
        let (schedule, machine) = (self.schedule, self.machine);
        if machine.reduce.is_none() && machine.copy.is_none() {
            return 0.0;
        }
        let op = schedule.op(id);
        let bytes = self.bytes[schedule.dsts(op)[0].region.index()];
        let (reduced, copied) = schedule.within(op);
        let takes = |times: f64, rate: Option<f64>| rate.map_or(0.0, |rate| times * bytes / rate);
        let work = takes(reduced, machine.reduce) + takes(copied, machine.copy);
        work * self.streams[stream.index()].slower
    }

    /// The stream begins to reduce or copy, for so many seconds.
    fn work(&mut self, stream: StreamId, id: OpId) -> f64 {
        let work = self.takes(stream, id);
        if work > 0.0
            && let Some(timeline) = &mut self.timeline
        {
            let (start, end) = (self.now, self.now + work);
            timeline.spans.push(Span { stream, op: id, state: State::Local, start, end });
        }
        work
    }

    /// The stream's move is done.
    fn done(&mut self, stream: StreamId) {
        self.streams[stream.index()].next += 1;
        self.ready.push(stream);
    }

    /// A signal sets out that takes its time.
    fn post(&mut self, id: OpId, arrives: f64) {
        let channel = *self.schedule.channel(self.schedule.op(id));
        self.signals += 1;
        self.message(Message {
            op: id,
            from: channel.from,
            to: channel.to,
            bytes: 0,
            start: self.now,
            end: arrives,
        });
        self.queue.push(arrives, Event::Signal(id));
    }

    /// The signal of a post arrives.
    fn signal(&mut self, post: OpId) {
        let counter = &mut self.counters[self.schedule.op(post).arg as usize];
        counter.arrived += 1;
        let stream = counter.waiting;
        if stream != NONE {
            counter.waiting = self.behind[stream as usize];
            self.trace[self.streams[stream as usize].next as usize] = post.0 + 1;
            self.ready.push(StreamId(stream));
        }
    }

    fn message(&mut self, message: Message) -> u32 {
        let Some(timeline) = &mut self.timeline else { return NONE };
        timeline.messages.push(message);
        timeline.messages.len() as u32 - 1
    }

    /// What a stream did until now.
    fn span(&mut self, stream: StreamId, op: OpId, state: State) {
        let (start, end) = (self.streams[stream.index()].since, self.now);
        if end > start
            && let Some(timeline) = &mut self.timeline
        {
            timeline.spans.push(Span { stream, op, state, start, end });
        }
    }

    /// Whether all streams did, and no signal is left.
    pub(super) fn ended(&self) -> bool {
        self.streams.iter().all(|at| at.next == at.end)
            && self.counters.iter().all(|counter| counter.taken == counter.arrived)
    }

    /// What came of it, for `bytes` bytes as nccl-tests counts them, with the critical path that was found.
    pub(super) fn result(mut self, bytes: u64, critical: Vec<Step>) -> Simulated {
        let seconds = self.ends.iter().copied().fold(0.0, f64::max);
        if let Some(timeline) = &mut self.timeline {
            timeline.seconds = seconds;
            timeline
                .spans
                .sort_by(|a, b| a.stream.cmp(&b.stream).then(a.start.total_cmp(&b.start)));
            // Those that set out together, by their ops: whatever the engine took first.
            let at = |m: &Message| (m.op, m.from, m.to);
            timeline.messages.sort_by(|a, b| a.start.total_cmp(&b.start).then(at(a).cmp(&at(b))));
        }
        let (links, ports) =
            usage::usage(self.schedule, self.machine, &self.wires.capacity, &self.carried, seconds);
        Simulated {
            seconds,
            bytes,
            algbw: if seconds > 0.0 { bytes as f64 / seconds } else { 0.0 },
            tasks: self.schedule.ops.len() as u64 + self.messages + self.signals,
            messages: self.messages,
            links,
            ports,
            critical,
            timeline: self.timeline,
        }
    }
}
