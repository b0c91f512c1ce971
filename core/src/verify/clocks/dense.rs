//! Dense clocks: an entry for every stream, so every question has its answer.
//!
//! A stream's clock changes only where it waits, so posts share the clock of their stream by reference
//! and a wait copies it first if someone else still holds it. Memory may grow with the square of the number
//! of streams: it has a limit.

use super::Full;
use crate::ids::{OpId, StreamId};
use crate::schedule::{OpKind, Schedule, Stream};

pub(super) struct Dense {
    width: usize,
    /// Clocks of `width` entries each: entry s counts the events of stream s that are known.
    pool: Vec<u32>,
    holders: Vec<u32>,
    free: Vec<u32>,
    /// The clock of each stream.
    of: Vec<u32>,
    /// The clock that each post carries until its wait takes it; by op.
    carried: Vec<u32>,
    limit: usize,
}

impl Dense {
    /// For at most `limit` entries. A stream that waits comes to have a clock of its own: where these alone
    /// are too many, it is known before any is filled.
    pub(super) fn new(schedule: &Schedule, limit: usize) -> Result<Self, Full> {
        let width = schedule.streams.len();
        let waits = |stream: &&Stream| {
            let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
            ops.iter().any(|op| op.kind == OpKind::Wait)
        };
        let own = schedule.streams.iter().filter(waits).count();
        if own.saturating_mul(width) > limit {
            return Err(Full);
        }
        Ok(Self {
            width,
            pool: vec![0; width],
            holders: vec![width as u32],
            free: Vec::new(),
            of: vec![0; width],
            carried: vec![u32::MAX; schedule.ops.len()],
            limit,
        })
    }

    /// How many events of stream `of` are known to `stream`.
    pub(super) fn known(&self, stream: StreamId, of: StreamId) -> u32 {
        self.pool[self.of[stream.index()] as usize * self.width + of.index()]
    }

    pub(super) fn post(&mut self, op: OpId, stream: StreamId) {
        let clock = self.of[stream.index()];
        self.holders[clock as usize] += 1;
        self.carried[op.index()] = clock;
    }

    /// `count` events of stream `from` are known to whoever meets `post`, itself among them.
    pub(super) fn wait(
        &mut self,
        post: OpId,
        (from, count): (StreamId, u32),
        stream: StreamId,
    ) -> Result<(), Full> {
        let carried = std::mem::replace(&mut self.carried[post.index()], u32::MAX) as usize;
        let mine = self.own(stream)? as usize;
        let width = self.width;
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
        into[from.index()] = into[from.index()].max(count);
        self.release(carried as u32);
        Ok(())
    }

    /// The stream's clock, made its own so that it may change.
    fn own(&mut self, stream: StreamId) -> Result<u32, Full> {
        let shared = self.of[stream.index()];
        if self.holders[shared as usize] == 1 {
            return Ok(shared);
        }
        let fresh = match self.free.pop() {
            Some(fresh) => fresh,
            None => self.grow()?,
        };
        let from = shared as usize * self.width;
        self.pool.copy_within(from..from + self.width, fresh as usize * self.width);
        self.holders[fresh as usize] = 1;
        self.of[stream.index()] = fresh;
        self.release(shared);
        Ok(fresh)
    }

    fn grow(&mut self) -> Result<u32, Full> {
        let size = self.pool.len() + self.width;
        if size > self.limit {
            return Err(Full);
        }
        self.pool.resize(size, 0);
        self.holders.push(0);
        Ok(self.holders.len() as u32 - 1)
    }

    fn release(&mut self, clock: u32) {
        let holders = &mut self.holders[clock as usize];
        *holders -= 1;
        if *holders == 0 {
            self.free.push(clock);
        }
    }
}
