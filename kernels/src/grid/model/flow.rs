//! The streams of a schedule on their way, from event to event: an op that ends its delay, a move whose bytes have flowed, a
//! signal that arrives.

use std::collections::VecDeque;

use roundelay_core::ids::OpId;
use roundelay_core::schedule::{Op, OpKind, Schedule};

use super::gpu::Gpu;
use super::work::{Bytes, Work};

/// When something is over, and what the time before it went to.
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
    /// Bytes a second that the loads of one stream bring.
    pub(super) loads: f64,
    /// Whether a signal is one that lines stand for.
    pub(super) is_said: &'a dyn Fn(&Op) -> bool,
}

/// A stream on its way.
struct Stream {
    clock: Clock,
    first: OpId,
    next: OpId,
    end: OpId,
    state: FlowState,
}

enum FlowState {
    /// The op at hand ends its delay, or begins to move.
    Delay(f64),
    /// Bytes are left; they flow at that rate at most.
    Moves {
        left: f64,
        most: f64,
        rate: f64,
    },
    /// For a post of that channel, which is not there yet.
    Waits(usize),
    Over,
}

impl Flow<'_> {
    /// When each stream is over.
    pub(super) fn run(&self) -> Vec<Clock> {
        let mut posts = vec![VecDeque::new(); self.schedule.channels.len()];
        let mut streams: Vec<Stream> = self
            .schedule
            .streams
            .iter()
            .map(|s| {
                let (first, end) = (s.first, OpId(s.first.0 + s.len));
                Stream { clock: Clock::default(), first, next: first, end, state: FlowState::Over }
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
            // Those that end now go on; what they post is seen by those that wait.
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
        // Posts that follow each other are one step, and so are waits.
        let before = stream.next.0.checked_sub(1).filter(|before| *before >= stream.first.0);
        let follows = before.is_some_and(|before| self.schedule.op(OpId(before)).kind == op.kind);
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
                sent.signals += if said { self.gpu.line } else { self.gpu.signal };
                sent.waits += 1;
                stream.clock = stream.clock.later(sent);
                step(said)
            }
        };
        stream.clock.latency += delay;
        stream.state = FlowState::Delay(stream.clock.now());
    }

    /// The delay of the op at hand is over, or its bytes have flowed.
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

    /// Shares the rate of memory fairly among the moves: who cannot use its share leaves the rest to the others.
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

/// When the state of a stream ends, if it does by itself.
fn ends(stream: &Stream, now: f64) -> Option<f64> {
    match stream.state {
        FlowState::Delay(until) => Some(until.max(now)),
        FlowState::Moves { left, rate, .. } => Some(if left > 0.0 { now + left / rate } else { now }),
        FlowState::Waits(_) | FlowState::Over => None,
    }
}
