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
