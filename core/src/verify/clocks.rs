//! Vector clocks: how much of every other stream an event has heard of.
//!
//! A stream's clock changes only where it waits, so posts share the clock of their stream by reference
//! and a wait copies it first if someone else still holds it.

use crate::ids::{OpId, StreamId};
use crate::schedule::Schedule;

pub(super) struct Clocks<'s> {
    schedule: &'s Schedule,
    width: usize,
    /// Clocks of `width` entries each: entry s counts the events of stream s that are known.
    pool: Vec<u32>,
    holders: Vec<u32>,
    free: Vec<u32>,
    /// The clock of each stream.
    of: Vec<u32>,
    /// The clock that each post carries until its wait takes it; by op.
    carried: Vec<u32>,
    run: u32,
}

impl<'s> Clocks<'s> {
    pub(super) fn new(schedule: &'s Schedule) -> Self {
        let width = schedule.streams.len();
        Self {
            schedule,
            width,
            pool: vec![0; width],
            holders: vec![width as u32],
            free: Vec::new(),
            of: vec![0; width],
            carried: vec![u32::MAX; schedule.ops.len()],
            run: 0,
        }
    }

    /// The same program once more, after its end.
    pub(super) fn next_run(&mut self) {
        self.run += 1;
    }

    /// A name for the op in this run.
    pub(super) fn event(&self, op: OpId) -> u32 {
        op.0 + self.run * self.schedule.ops.len() as u32
    }

    /// The op that an event is an instance of, and in which run.
    pub(super) fn op(&self, event: u32) -> (OpId, u32) {
        let ops = self.schedule.ops.len() as u32;
        (OpId(event % ops), event / ops)
    }

    /// How many events of its stream precede it.
    fn time(&self, event: u32, stream: StreamId) -> u32 {
        let (op, run) = self.op(event);
        let stream = self.schedule.streams[stream.index()];
        op.0 - stream.first.0 + run * stream.len
    }

    /// Whether `event` of stream `of` comes before everything that `stream` does from here on.
    pub(super) fn before(&self, event: u32, of: StreamId, stream: StreamId) -> bool {
        of == stream || self.time(event, of) < self.known(stream, of)
    }

    /// Whether `stream` has heard from stream `of` at all.
    pub(super) fn heard(&self, of: StreamId, stream: StreamId) -> bool {
        of == stream || self.known(stream, of) > 0
    }

    fn known(&self, stream: StreamId, of: StreamId) -> u32 {
        self.pool[self.of[stream.index()] as usize * self.width + of.index()]
    }

    /// A release: the post carries what its stream knows.
    pub(super) fn post(&mut self, op: OpId, stream: StreamId) {
        let clock = self.of[stream.index()];
        self.holders[clock as usize] += 1;
        self.carried[op.index()] = clock;
    }

    /// An acquire: the stream learns what the post carries, and the post itself.
    pub(super) fn wait(&mut self, post: OpId, from: StreamId, stream: StreamId) {
        let carried = std::mem::replace(&mut self.carried[post.index()], u32::MAX) as usize;
        let mine = self.own(stream) as usize;
        let (width, time) = (self.width, self.time(self.event(post), from) + 1);
        let (into, other) = if mine < carried {
            let (low, high) = self.pool.split_at_mut(carried * width);
            (&mut low[mine * width..][..width], &high[..width])
        } else {
            let (low, high) = self.pool.split_at_mut(mine * width);
            (&mut high[..width], &low[carried * width..][..width])
        };
        for (known, news) in into.iter_mut().zip(other) {
            *known = (*known).max(*news);
        }
        into[from.index()] = into[from.index()].max(time);
        self.release(carried as u32);
    }

    /// The stream's clock, made its own so that it may change.
    fn own(&mut self, stream: StreamId) -> u32 {
        let shared = self.of[stream.index()];
        if self.holders[shared as usize] == 1 {
            return shared;
        }
        let fresh = self.free.pop().unwrap_or_else(|| {
            self.holders.push(0);
            self.pool.resize(self.pool.len() + self.width, 0);
            self.holders.len() as u32 - 1
        });
        let from = shared as usize * self.width;
        self.pool.copy_within(from..from + self.width, fresh as usize * self.width);
        self.holders[fresh as usize] = 1;
        self.of[stream.index()] = fresh;
        self.release(shared);
        fresh
    }

    fn release(&mut self, clock: u32) {
        let holders = &mut self.holders[clock as usize];
        *holders -= 1;
        if *holders == 0 {
            self.free.push(clock);
        }
    }
}
