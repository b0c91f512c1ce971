//! Dense clocks: an entry for every stream, so every question has its answer.
//!
//! A stream's clock changes only where it waits, so posts share the clock of their stream by reference and a wait
//! copies the clock first if another holder remains. The memory may grow with the square of the number of streams: it
//! has a limit.

use super::Full;
use crate::ids::{OpId, StreamId};
use crate::schedule::{OpKind, Schedule, Stream};
use crate::verify::order::Order;

pub(crate) struct Dense {
    width: usize,
    /// Clocks of `width` entries each: entry s counts the events of stream s that are known.
    pool: Vec<u32>,
    shared: SharedClock,
    /// The clock that each post carries until its wait takes it; by op.
    carried: Vec<u32>,
}

/// The holders of each clock, without the clocks' entries.
struct SharedClock {
    holders: Vec<u32>,
    free: Vec<u32>,
    /// The clock of each stream.
    of: Vec<u32>,
    /// The most clocks.
    most: usize,
}

impl SharedClock {
    /// Creates one clock that all streams hold; there may be as many clocks as `limit` entries make.
    fn new(streams: usize, limit: usize) -> Self {
        let most = limit / streams.max(1);
        Self { holders: vec![streams as u32], free: Vec::new(), of: vec![0; streams], most }
    }

    fn hold(&mut self, stream: StreamId) -> u32 {
        let clock = self.of[stream.index()];
        self.holders[clock as usize] += 1;
        clock
    }

    /// Gives the stream a clock of its own, so that it may change; returns the clock that it had if that is another.
    fn own(&mut self, stream: StreamId) -> Result<Option<u32>, Full> {
        let had = self.of[stream.index()];
        if self.holders[had as usize] == 1 {
            return Ok(None);
        }
        let fresh = match self.free.pop() {
            Some(fresh) => fresh,
            None if self.holders.len() < self.most => {
                self.holders.push(0);
                self.holders.len() as u32 - 1
            }
            None => return Err(Full),
        };
        self.holders[fresh as usize] = 1;
        self.of[stream.index()] = fresh;
        self.release(had);
        Ok(Some(had))
    }

    fn release(&mut self, clock: u32) {
        let holders = &mut self.holders[clock as usize];
        *holders -= 1;
        if *holders == 0 {
            self.free.push(clock);
        }
    }
}

/// Whether a run in that order keeps to `limit` entries: counted before any clock is filled, since filling them takes
/// longer than all else.
pub(super) fn fit(schedule: &Schedule, order: &Order, limit: usize) -> bool {
    let mut shared = SharedClock::new(schedule.streams.len(), limit);
    let mut carried = vec![u32::MAX; schedule.ops.len()];
    order.sequence.iter().all(|at| {
        let stream = order.stream_of[at.index()];
        match schedule.op(*at).kind {
            OpKind::Move => {}
            OpKind::Post => carried[at.index()] = shared.hold(stream),
            OpKind::Wait if shared.own(stream).is_err() => return false,
            OpKind::Wait => shared.release(carried[order.meets[at.index()].index()]),
        }
        true
    })
}

impl Dense {
    /// Creates clocks of at most `limit` entries. A stream that waits gets a clock of its own: where these clocks alone
    /// are too many, the error comes before any is filled.
    pub(crate) fn new(schedule: &Schedule, limit: usize) -> Result<Self, Full> {
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
            shared: SharedClock::new(width, limit),
            carried: vec![u32::MAX; schedule.ops.len()],
        })
    }

    /// Returns the number of events of stream `of` that `stream` knows.
    pub(crate) fn known(&self, stream: StreamId, of: StreamId) -> u32 {
        self.pool[self.shared.of[stream.index()] as usize * self.width + of.index()]
    }

    pub(super) fn post(&mut self, op: OpId, stream: StreamId) {
        self.carried[op.index()] = self.hold(stream);
    }

    /// Records a wait; `stream` learns `count` events of stream `from`, with `post`.
    pub(super) fn wait(
        &mut self,
        post: OpId,
        (from, count): (StreamId, u32),
        stream: StreamId,
    ) -> Result<(), Full> {
        let carried = std::mem::replace(&mut self.carried[post.index()], u32::MAX);
        self.learn(carried, (from, count), stream)
    }

    /// Holds the present clock of `stream` until it is learned or released.
    pub(crate) fn hold(&mut self, stream: StreamId) -> u32 {
        self.shared.hold(stream)
    }

    /// Returns the number of events of stream `of` that the held clock knows.
    pub(crate) fn held(&self, held: u32, of: StreamId) -> u32 {
        self.pool[held as usize * self.width + of.index()]
    }

    /// Teaches `stream` the held clock, which is released, and `count` events of stream `from`.
    pub(crate) fn learn(
        &mut self,
        held: u32,
        (from, count): (StreamId, u32),
        stream: StreamId,
    ) -> Result<(), Full> {
        let carried = held as usize;
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
        self.release(held);
        Ok(())
    }

    /// Teaches `stream` `count` events of stream `from`.
    pub(crate) fn hear(
        &mut self,
        (from, count): (StreamId, u32),
        stream: StreamId,
    ) -> Result<(), Full> {
        let mine = self.own(stream)? as usize;
        let known = &mut self.pool[mine * self.width + from.index()];
        *known = (*known).max(count);
        Ok(())
    }

    /// Returns the stream's clock, after it was made its own so that it may change.
    fn own(&mut self, stream: StreamId) -> Result<u32, Full> {
        let had = self.shared.own(stream)?;
        let mine = self.shared.of[stream.index()];
        if let Some(had) = had {
            let (from, to) = (had as usize * self.width, mine as usize * self.width);
            self.pool.resize(self.pool.len().max(to + self.width), 0);
            self.pool.copy_within(from..from + self.width, to);
        }
        Ok(mine)
    }

    pub(crate) fn release(&mut self, clock: u32) {
        self.shared.release(clock);
    }
}
