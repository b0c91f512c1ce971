//! Sparse clocks: a stream keeps entries only for the streams that it has heard of. So every question has its answer,
//! and where most streams hear of few others the clocks take little more time than there are signals.
//!
//! In the second run nearly all streams have heard of nearly all streams of the first run. So that knowledge is not
//! kept again: a stream that has heard of stream s in this run knows the streams that s had heard of when the run
//! before ended.

use std::cell::Cell;

use super::Full;
use super::trees::{ClockTree, ClockTrees};
use crate::ids::{OpId, StreamId};
use crate::schedule::Schedule;

pub(super) struct Sparse {
    trees: ClockTrees,
    /// The streams that each stream has heard of in this run.
    heard: Vec<ClockTree>,
    /// The streams that each stream had heard of when the run before ended; empty in the first run.
    before: Vec<ClockTree>,
    /// The knowledge that each post carries until its wait takes it; by op.
    carried: Vec<ClockTree>,
    /// The number of look-ups in `before`.
    asked: Cell<usize>,
    /// The most steps.
    limit: usize,
}

impl Sparse {
    /// Creates clocks of at most `limit` steps, of which each may take room for a node.
    pub(super) fn new(schedule: &Schedule, limit: usize) -> Self {
        Self {
            trees: ClockTrees::new(),
            heard: vec![ClockTree::EMPTY; schedule.streams.len()],
            before: Vec::new(),
            carried: vec![ClockTree::EMPTY; schedule.ops.len()],
            asked: Cell::new(0),
            limit,
        }
    }

    /// Returns the number of steps that were taken.
    pub(super) fn steps(&self) -> usize {
        self.trees.steps() + self.asked.get()
    }

    pub(super) fn next_run(&mut self) {
        let none = vec![ClockTree::EMPTY; self.heard.len()];
        self.before = std::mem::replace(&mut self.heard, none);
    }

    /// Returns the number of events of stream `of` in this run that `stream` knows.
    pub(super) fn known(&self, stream: StreamId, of: StreamId) -> u32 {
        self.trees.known(self.heard[stream.index()], of)
    }

    /// Whether `stream` knows more than `time` events of stream `of` in the run before.
    pub(super) fn knew(&self, stream: StreamId, of: StreamId, time: u32) -> bool {
        let knew = |by: StreamId| {
            self.asked.set(self.asked.get() + 1);
            by == of || self.trees.known(self.before[by.index()], of) > time
        };
        // A stream that begins the next run has ended the run before.
        !self.before.is_empty()
            && (knew(stream) || self.trees.any(self.heard[stream.index()], knew))
    }

    pub(super) fn post(&mut self, op: OpId, stream: StreamId) {
        self.carried[op.index()] = self.heard[stream.index()];
    }

    /// Records a wait; `stream` learns `count` events of stream `from`, with `post`.
    pub(super) fn wait(
        &mut self,
        post: OpId,
        (from, count): (StreamId, u32),
        stream: StreamId,
    ) -> Result<(), Full> {
        let carried = self.carried[post.index()];
        let both = self.trees.both(self.heard[stream.index()], carried);
        self.heard[stream.index()] = self.trees.with(both, from, count);
        if self.steps() > self.limit { Err(Full) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Write as _;

    use crate::check::Frontend;
    use crate::compile;
    use crate::layout::{Algorithm as _, Configured};
    use crate::schedule::{OpKind, Schedule, text};
    use crate::syntax::Source;
    use crate::verify::clocks::{Clocks, Known};
    use crate::verify::{Order, in_order};

    /// A source of numbers below a bound that look random (xorshift).
    struct Dice(u64);

    impl Dice {
        fn below(&mut self, bound: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 33) as usize % bound
        }
    }

    /// Returns ranks that post to others and wait for others at random, so that all of them end. Ranks of one half
    /// signal among themselves most of the time.
    fn at_random(dice: &mut Dice, nranks: usize, signals: usize) -> Schedule {
        let mut lines = vec![String::new(); nranks];
        let mut under_way: Vec<(usize, usize)> = Vec::new();
        let mut left = signals;
        while left > 0 || !under_way.is_empty() {
            if left > 0 && (under_way.is_empty() || dice.below(2) == 0) {
                left -= 1;
                let from = dice.below(nranks);
                let other = (from + 1 + dice.below(nranks - 1)) % nranks;
                let near = if from % 2 == other % 2 { other } else { (from + 2) % nranks };
                let to = if dice.below(8) == 0 { other } else { near };
                let _ = writeln!(lines[from], "  post ack {from}->{to} @0");
                under_way.push((from, to));
            } else {
                let (from, to) = under_way.swap_remove(dice.below(under_way.len()));
                let _ = writeln!(lines[to], "  wait ack {from}->{to} @0");
            }
        }
        let mut all = format!("schedule A AllReduce nranks {nranks} root 0\n");
        for (rank, lines) in lines.iter().enumerate() {
            let _ = writeln!(all, "rank {rank} stream 0\n{}", lines.trim_end_matches('\n'));
        }
        text::parse(&all).expect("a schedule")
    }

    /// Returns the answers of the clocks along two runs: at each op, whether each event of either run is before the
    /// next op of its stream, and whether that stream has heard of the event's stream.
    fn told(schedule: &Schedule, order: &Order, clocks: &mut Clocks<'_>) -> Vec<bool> {
        let mut told = Vec::new();
        let mut done = Vec::new();
        for run in 0..2 {
            if run > 0 {
                clocks.next_run();
            }
            for &at in &order.sequence {
                let stream = order.stream_of[at.index()];
                let post = order.meets[at.index()];
                if schedule.op(at).kind == OpKind::Post {
                    clocks.post(at, stream);
                } else {
                    let from = order.stream_of[post.index()];
                    clocks.wait(post, from, stream).expect("few entries");
                }
                done.push((clocks.event(at), stream));
                told.extend(done.iter().map(|(event, of)| clocks.before(*event, *of, stream)));
                told.extend(done.iter().map(|(_, of)| clocks.heard(*of, stream)));
            }
        }
        told
    }

    #[test]
    fn sparse_clocks_say_what_dense_ones_say() {
        let mut dice = Dice(7);
        let mut said: BTreeMap<bool, usize> = BTreeMap::new();
        for round in 0..12 {
            let schedule = at_random(&mut dice, 3 + 3 * round, 20 + 8 * round);
            let order = in_order(&schedule).expect("all ranks end");
            let mut dense = Clocks::dense(&schedule, 1 << 20).expect("few ranks");
            let mut sparse = Clocks::sparse(&schedule, 1 << 20);
            let told = told(&schedule, &order, &mut sparse);
            assert!(told == self::told(&schedule, &order, &mut dense), "round {round}");
            for before in told {
                *said.entry(before).or_default() += 1;
            }
        }
        assert!(said.len() == 2 && said.values().all(|times| *times > 10_000), "{said:?}");
    }

    /// Returns the steps for each op of two runs of an exchange between all pairs, where each rank has a stream for
    /// each peer.
    fn steps_for_each_op(nranks: u32) -> usize {
        let text = "algorithm A() -> AllToAll {
            parallel d in 1..nranks {
                let to = peer((rank + d) % nranks);
                let from = peer((rank - d) % nranks);
                to.TxAck();
                from.RxAck();
                copy(from.input.block(rank), local.output.block(from.rank));
                from.TxDataSignal();
                to.RxDataSignal();
            }
        }";
        let source = Source::from_text("test.coll", text);
        let program = compile(&source, Frontend::File).expect("the source is valid");
        let all = Configured::new(program.algorithms[0].clone(), &source);
        let schedule = all.schedule(nranks).expect("the algorithm fits");
        let order = in_order(&schedule).expect("no deadlock");
        let mut clocks = Clocks::sparse(&schedule, usize::MAX);
        for run in 0..2 {
            for &at in &order.sequence {
                let stream = order.stream_of[at.index()];
                let post = order.meets[at.index()];
                let from = order.stream_of[post.index()];
                match schedule.op(at).kind {
                    OpKind::Move => {}
                    OpKind::Post => clocks.post(at, stream),
                    OpKind::Wait => {
                        clocks.wait(post, from, stream).expect("no limit");
                        assert!(clocks.before(clocks.event_in(post, 0), from, stream));
                    }
                }
            }
            if run == 0 {
                clocks.next_run();
            }
        }
        let Known::Sparse(sparse) = &clocks.known else { panic!("the clocks are sparse") };
        sparse.steps() / schedule.ops.len()
    }

    /// Tests four and sixteen times the streams, whose dense clocks would grow with the square of the streams.
    #[test]
    fn steps_grow_with_the_ops() {
        let [few, some, many] = [8, 16, 32].map(steps_for_each_op);
        println!("{few}, {some} and {many} steps for each op");
        assert!(many < 32 && many < 2 * few, "{few}, {some}, {many}");
    }
}
