//! The streams of a schedule in simulated time, from event to event: an op that ends its delay, a move whose bytes have
//! flowed, a signal that arrives.

use std::collections::VecDeque;

use roundelay_core::ids::OpId;
use roundelay_core::schedule::{Op, OpKind, Schedule};

use super::gpu::Gpu;
use super::walk::WalkCost;
use super::work::{Bytes, Work};

/// A point in time, and the parts of the time before it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Clock {
    pub(super) moving: f64,
    pub(super) latency: f64,
    pub(super) signals: f64,
    pub(super) waits: u32,
}

impl Clock {
    pub(super) fn now(&self) -> f64 {
        self.moving + self.latency + self.signals
    }

    pub(super) fn later(self, other: Self) -> Self {
        if other.now() > self.now() { other } else { self }
    }
}

pub(super) struct Flow<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) gpu: &'a Gpu,
    pub(super) work: &'a Work,
    pub(super) walk: &'a WalkCost,
    /// Bytes a second that the loads of one stream bring.
    pub(super) loads: f64,
    /// The time from the store of a line to the load that sees it.
    pub(super) line: f64,
    /// Whether a signal is implied by the lines of data, so that it costs nothing.
    pub(super) is_said: &'a dyn Fn(&Op) -> bool,
}

/// A stream and its progress.
struct Stream {
    clock: Clock,
    first: OpId,
    next: OpId,
    end: OpId,
    state: FlowState,
    walker: Walker,
}

/// Entries that the warp that walks may be ahead.
const QUEUED: usize = 8;

/// The warp of a stream that walks.
struct Walker {
    /// The first op to which it has not come.
    next: OpId,
    /// The time at which it has found the ops before.
    found: f64,
    /// The time at which the other warps see the op at hand.
    seen: f64,
    /// The times at which the last entries began to be done.
    begun: VecDeque<f64>,
}

enum FlowState {
    /// The op at hand is delayed until that time, and then ends or begins to move.
    Delay(f64),
    /// Bytes are left; they flow at `most` bytes a second at most.
    Moves {
        left: f64,
        most: f64,
        rate: f64,
    },
    /// Waits for a post of that channel, which has not arrived.
    Waits(usize),
    Over,
}

impl Flow<'_> {
    /// Returns the end of each stream.
    pub(super) fn run(&self) -> Vec<Clock> {
        let mut posts = vec![VecDeque::new(); self.schedule.channels.len()];
        let mut streams: Vec<Stream> = self
            .schedule
            .streams
            .iter()
            .map(|s| {
                let (first, end) = (s.first, OpId(s.first.0 + s.len));
                let found = self.walk.start * self.gpu.instruction;
                let walker = Walker { next: first, found, seen: found, begun: VecDeque::new() };
                let (clock, state) = (Clock::default(), FlowState::Over);
                Stream { clock, first, next: first, end, state, walker }
            })
            .collect();
        for stream in &mut streams {
            self.enter(stream, &mut posts);
        }
        let mut now = 0.0;
        loop {
            self.share(&mut streams);
            let Some(then) = streams.iter().filter_map(|s| ends(s, now)).reduce(f64::min) else {
                return streams.into_iter().map(|stream| stream.clock).collect();
            };
            // Streams that end now go on; streams that wait see their posts.
            let due: Vec<bool> =
                streams.iter().map(|s| ends(s, now).is_some_and(|end| end <= then)).collect();
            for (stream, due) in streams.iter_mut().zip(due) {
                if let FlowState::Moves { left, rate, .. } = &mut stream.state {
                    *left -= *rate * (then - now);
                    stream.clock.moving += then - now;
                }
                if due {
                    self.go_on(stream, &mut posts);
                }
            }
            now = then;
            for stream in &mut streams {
                if let FlowState::Waits(channel) = stream.state
                    && !posts[channel].is_empty()
                {
                    self.enter(stream, &mut posts);
                }
            }
        }
    }

    /// Begins the next op.
    fn enter(&self, stream: &mut Stream, posts: &mut [VecDeque<Clock>]) {
        if stream.next >= stream.end {
            stream.state = FlowState::Over;
            return;
        }
        let op = self.schedule.op(stream.next);
        let follows = self.follows(stream, stream.next);
        self.walk_to(stream);
        let step = |said: bool| if said || follows { 0.0 } else { self.gpu.step };
        let delay = match op.kind {
            OpKind::Move => self.gpu.step + self.gpu.memory_latency,
            OpKind::Post => step((self.is_said)(op)),
            OpKind::Wait => {
                let said = (self.is_said)(op);
                let Some(mut sent) = posts[op.arg as usize].pop_front() else {
                    stream.state = FlowState::Waits(op.arg as usize);
                    return;
                };
                sent.signals += if said { self.line } else { self.gpu.signal };
                sent.waits += 1;
                stream.clock = stream.clock.later(sent);
                step(said)
            }
        };
        stream.clock.latency += (stream.walker.seen - stream.clock.now()).max(0.0) + delay;
        stream.state = FlowState::Delay(stream.clock.now());
    }

    /// Whether an op is one step with the op before: posts that follow each other are, and so are consecutive waits.
    fn follows(&self, stream: &Stream, op: OpId) -> bool {
        let kind = self.schedule.op(op).kind;
        let before = op.0.checked_sub(1).filter(|before| *before >= stream.first.0);
        kind != OpKind::Move
            && before.is_some_and(|before| self.schedule.op(OpId(before)).kind == kind)
    }

    /// Has the warp that walks find the op at hand. It is a few entries ahead at most, and shows signals when it has found
    /// what comes behind them.
    fn walk_to(&self, stream: &mut Stream) {
        let at = stream.next;
        if at < stream.walker.next {
            return;
        }
        let instructions = |op: &Op| {
            let said = op.kind != OpKind::Move && (self.is_said)(op);
            if said { 0.0 } else { self.walk.of_op(self.schedule, op) }
        };
        let now = stream.clock.now();
        let follows = self.follows(stream, at);
        let walker = &mut stream.walker;
        if !follows {
            walker.begun.push_back(now);
            if walker.begun.len() > QUEUED
                && let Some(begun) = walker.begun.pop_front()
            {
                walker.found = walker.found.max(begun);
            }
        }
        let op = self.schedule.op(at);
        walker.found += instructions(op) * self.gpu.instruction;
        walker.next = OpId(at.0 + 1);
        // All signals of a step are shown at one time, which was computed for the first of them.
        if follows {
            return;
        }
        walker.seen = walker.found;
        if op.kind != OpKind::Move {
            let behind = (at.0 + 1..stream.end.0).map(|op| self.schedule.op(OpId(op)));
            for next in behind {
                walker.seen += instructions(next) * self.gpu.instruction;
                if next.kind != op.kind && instructions(next) > 0.0 {
                    break;
                }
            }
        }
    }

    /// Ends the delay of the op at hand, or its move.
    fn go_on(&self, stream: &mut Stream, posts: &mut [VecDeque<Clock>]) {
        let op = self.schedule.op(stream.next);
        match (op.kind, &stream.state) {
            (OpKind::Move, FlowState::Delay(_)) => {
                let Bytes { loaded, stored } = self.work.moves[stream.next.index()];
                let (loaded, all) = (loaded as f64, (loaded + stored) as f64);
                let most = if loaded > 0.0 { self.loads * all / loaded } else { f64::INFINITY };
                stream.state = FlowState::Moves { left: all, most, rate: 0.0 };
                return;
            }
            (OpKind::Post, _) => posts[op.arg as usize].push_back(stream.clock),
            _ => {}
        }
        stream.next = OpId(stream.next.0 + 1);
        self.enter(stream, posts);
    }

    /// Shares the rate of memory fairly among the moves: a move that cannot use its share leaves the rest to the
    /// others.
    fn share(&self, streams: &mut [Stream]) {
        let mut rates: Vec<(f64, &mut f64)> = streams
            .iter_mut()
            .filter_map(|stream| match &mut stream.state {
                FlowState::Moves { most, rate, .. } => Some((*most, rate)),
                _ => None,
            })
            .collect();
        rates.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let (mut left, mut sharing) = (self.gpu.rate(self.work.touched), rates.len());
        for (most, rate) in rates {
            *rate = most.min(left / sharing as f64);
            left -= *rate;
            sharing -= 1;
        }
    }
}

/// Returns the end of a stream's state; `None` for a stream that waits or is over.
fn ends(stream: &Stream, now: f64) -> Option<f64> {
    match stream.state {
        FlowState::Delay(until) => Some(until.max(now)),
        FlowState::Moves { left, rate, .. } => {
            Some(if left > 0.0 { now + left / rate } else { now })
        }
        FlowState::Waits(_) | FlowState::Over => None,
    }
}
