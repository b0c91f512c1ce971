//! What a schedule takes, counted op by op: the numbers that the model of time multiplies.
//!
//! A stream does one op after the other. So each number is the more of two: the longest chain of ops, through
//! streams and signals, and what the busiest port, link or rank has to do whatever waits for what. Only
//! latencies overlap: moves of a stream that no wait parts are one *step*.

use crate::cost::Load;
use crate::cost::load::ways;
use crate::diagnostics::Finding;
use crate::ids::{OpId, RankId};
use crate::rational::Rat;
use crate::schedule::{Op, OpKind, Schedule};
use crate::topology::Topology;
use crate::verify::{self, Order};

/// What a schedule takes: steps, messages and data, as far as they follow one another, and in all. Data is in shares
/// of S, nccl-tests' size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// The length of the longest chain of moves of which each waits for the one before.
    pub steps: u32,
    /// Moves between ranks.
    pub messages: Work,
    /// Data between ranks, where each has one port each way.
    pub volume: Work,
    /// Data that is reduced.
    pub reduced: Work,
    /// Data that is copied within a rank.
    pub copied: Work,
}

/// Work that ranks do side by side, as the longest way through it and as the sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// The part that has to be done one after another.
    pub in_a_row: f64,
    /// The work of all ranks together.
    pub total: f64,
}

/// The time that a schedule takes on the links of a topology.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OnLinks {
    /// Seconds of latency that follow one another.
    pub latency: f64,
    /// Seconds for each byte of S, of moves that follow one another or on the busiest link, whichever is more; in
    /// units of 1 / B where the topology is relative.
    pub per_byte: f64,
}

/// A schedule in an order in which it may run.
pub struct Counter<'s> {
    schedule: &'s Schedule,
    order: Order,
    /// Width of each region as a share of S.
    shares: Vec<f64>,
}

/// What one rank does.
#[derive(Clone, Copy, Default)]
struct Busy {
    sent: f64,
    received: f64,
    reduced: f64,
    copied: f64,
}

impl<'s> Counter<'s> {
    /// The error is a deadlock, or a signal without a partner.
    pub fn new(schedule: &'s Schedule) -> Result<Self, Vec<Finding>> {
        let order = verify::in_order(schedule)?;
        let (n, collective) = (schedule.nranks, schedule.collective);
        let units = collective.max_input_units(n).max(collective.max_output_units(n));
        let share = |width: Rat| width.num() as f64 / width.den() as f64 / f64::from(units);
        let widths = schedule.regions.iter().map(|r| r.hi.minus(r.lo).unwrap_or(Rat::ZERO));
        Ok(Self { schedule, order, shares: widths.map(share).collect() })
    }

    /// All the numbers that ask for no topology.
    pub fn counts(&self) -> Counts {
        let mut ranks = vec![Busy::default(); self.schedule.nranks as usize];
        let mut counts = Counts::default();
        for (by, op) in self.moves() {
            for (from, to, share) in self.crossing(by, op) {
                ranks[from.index()].sent += share;
                ranks[to.index()].received += share;
                counts.volume.total += share;
            }
            let (reduced, copied) = self.within(op);
            ranks[by.index()].reduced += reduced;
            ranks[by.index()].copied += copied;
            counts.messages.total += f64::from(u8::from(self.schedule.crosses(op)));
            counts.reduced.total += reduced;
            counts.copied.total += copied;
        }
        let most = |of: fn(&Busy) -> f64| ranks.iter().map(of).fold(0.0, f64::max);
        let [messages, volume, reduced, copied] = self.longest(|by, op| {
            let (reduced, copied) = self.within(op);
            let volume = self.crossing(by, op).map(|(.., share)| share).sum();
            [f64::from(u8::from(self.schedule.crosses(op))), volume, reduced, copied]
        });
        counts.steps = self.steps(|_, op| f64::from(u8::from(self.schedule.crosses(op)))) as u32;
        counts.messages.in_a_row = messages;
        counts.volume.in_a_row = volume.max(most(|rank| rank.sent.max(rank.received)));
        counts.reduced.in_a_row = reduced.max(most(|rank| rank.reduced));
        counts.copied.in_a_row = copied.max(most(|rank| rank.copied));
        counts
    }

    /// The time that the links of `topology` take. Pairs of ranks that are not linked count nowhere: they are
    /// findings of [`verify::links`].
    pub fn on_links(&self, topology: &Topology) -> OnLinks {
        let pairs = |(by, op)| self.crossing(by, op).map(|(from, to, _)| (from, to));
        let ways = ways(topology, &self.moves().flat_map(pairs).collect());
        let [per_byte] = self.longest(|by, op| {
            let time = |(from, to, share)| ways[&(from, to)].per_byte * share;
            [self.crossing(by, op).map(time).sum()]
        });
        let latency = self.steps(|by, op| {
            let latencies = self.crossing(by, op).map(|(from, to, _)| ways[&(from, to)].latency);
            latencies.fold(0.0, f64::max) * 1e-9
        });
        let busiest = Load::new(self.schedule, topology).seconds_per_byte;
        OnLinks { latency, per_byte: per_byte.max(busiest) }
    }

    fn moves(&self) -> impl Iterator<Item = (RankId, &'s Op)> {
        self.schedule.streams.iter().flat_map(|stream| {
            let ops = &self.schedule.ops[stream.first.index()..][..stream.len as usize];
            ops.iter().filter(|op| op.kind == OpKind::Move).map(|op| (stream.rank, op))
        })
    }

    /// What a move carries between ranks.
    fn crossing(&self, by: RankId, op: &Op) -> impl Iterator<Item = (RankId, RankId, f64)> {
        let crossing = self.schedule.crossing(by, op);
        crossing.map(|(from, to, region)| (from, to, self.shares[region.index()]))
    }

    /// What a move reduces, and what it copies within its rank.
    fn within(&self, op: &Op) -> (f64, f64) {
        let share = self.shares[self.schedule.dsts(op)[0].region.index()];
        let (reduced, copied) = self.schedule.within(op);
        (reduced * share, copied * share)
    }

    /// The longest chain through streams and signals, for several weights of moves at a time.
    fn longest<const K: usize>(&self, weigh: impl Fn(RankId, &Op) -> [f64; K]) -> [f64; K] {
        let most = |into: &mut [f64; K], other: [f64; K]| {
            for (into, other) in into.iter_mut().zip(other) {
                *into = into.max(other);
            }
        };
        let mut streams = vec![[0.0; K]; self.schedule.streams.len()];
        let mut posts = vec![[0.0; K]; self.schedule.ops.len()];
        for (stream, at, op) in self.in_order() {
            match op.kind {
                OpKind::Move => {
                    let weights = weigh(self.schedule.streams[stream].rank, op);
                    for (sum, weight) in streams[stream].iter_mut().zip(weights) {
                        *sum += weight;
                    }
                }
                OpKind::Post => posts[at.index()] = streams[stream],
                OpKind::Wait => {
                    most(&mut streams[stream], posts[self.order.meets[at.index()].index()]);
                }
            }
        }
        streams.into_iter().fold([0.0; K], |mut all, stream| {
            most(&mut all, stream);
            all
        })
    }

    /// The weight of the heaviest chain of ops, where moves of a stream overlap unless a wait parts them.
    fn steps(&self, weigh: impl Fn(RankId, &Op) -> f64) -> f64 {
        /// What a stream has waited for, and what it has done since.
        #[derive(Clone, Copy, Default)]
        struct At {
            waited: f64,
            done: f64,
        }
        let mut streams = vec![At::default(); self.schedule.streams.len()];
        let mut posts = vec![0.0_f64; self.schedule.ops.len()];
        for (id, at, op) in self.in_order() {
            let stream = &mut streams[id];
            match op.kind {
                OpKind::Move => {
                    let weight = weigh(self.schedule.streams[id].rank, op);
                    stream.done = stream.done.max(stream.waited + weight);
                }
                OpKind::Post => posts[at.index()] = stream.done,
                OpKind::Wait => {
                    let done = posts[self.order.meets[at.index()].index()];
                    stream.waited = stream.waited.max(done);
                    stream.done = stream.done.max(done);
                }
            }
        }
        streams.iter().map(|stream| stream.done).fold(0.0, f64::max)
    }

    fn in_order(&self) -> impl Iterator<Item = (usize, OpId, &'s Op)> {
        let stream = |at: OpId| self.order.stream_of[at.index()].index();
        self.order.sequence.iter().map(move |at| (stream(*at), *at, self.schedule.op(*at)))
    }
}
