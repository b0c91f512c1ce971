//! Sparse clocks: a stream keeps entries for those streams that it has heard of, and no others. So every question has
//! its answer, and where most streams hear of few others it takes little more time than there are signals.
//!
//! In the second run everybody has heard of nearly everybody in the first one. So that is not kept again: whoever has
//! heard of a stream in this run knows what that stream had heard of when the run before ended.

use std::cell::Cell;

use super::Full;
use super::trees::{Tree, Trees};
use crate::ids::{OpId, StreamId};
use crate::schedule::Schedule;

pub(super) struct Sparse {
    trees: Trees,
    /// What each stream has heard of in this run.
    heard: Vec<Tree>,
    /// What each stream had heard of when the run before ended; empty in the first run.
    before: Vec<Tree>,
    /// What each post carries until its wait takes it; by op.
    carried: Vec<Tree>,
    /// Streams that were asked what they had heard of in the run before.
    asked: Cell<usize>,
    /// Steps that there may be.
    limit: usize,
}

impl Sparse {
    /// For at most `limit` steps, of which each may take room for a node.
    pub(super) fn new(schedule: &Schedule, limit: usize) -> Self {
        Self {
            trees: Trees::new(),
            heard: vec![Tree::EMPTY; schedule.streams.len()],
            before: Vec::new(),
            carried: vec![Tree::EMPTY; schedule.ops.len()],
            asked: Cell::new(0),
            limit,
        }
    }

    /// How many steps were taken.
    pub(super) fn steps(&self) -> usize {
        self.trees.steps() + self.asked.get()
    }

    pub(super) fn next_run(&mut self) {
        let none = vec![Tree::EMPTY; self.heard.len()];
        self.before = std::mem::replace(&mut self.heard, none);
    }

    /// How many events of stream `of` in this run are known to `stream`.
    pub(super) fn known(&self, stream: StreamId, of: StreamId) -> u32 {
        self.trees.known(self.heard[stream.index()], of)
    }

    /// Whether `stream` knows more than `time` events of stream `of` in the run before.
    pub(super) fn knew(&self, stream: StreamId, of: StreamId, time: u32) -> bool {
        let knew = |by: StreamId| {
            self.asked.set(self.asked.get() + 1);
            by == of || self.trees.known(self.before[by.index()], of) > time
        };
        // Whoever begins the next run has done the one before.
        !self.before.is_empty()
            && (knew(stream) || self.trees.any(self.heard[stream.index()], knew))
    }

    pub(super) fn post(&mut self, op: OpId, stream: StreamId) {
        self.carried[op.index()] = self.heard[stream.index()];
    }

    /// `count` events of stream `from` are known to whoever meets `post`, itself among them.
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
