//! Vector clocks: how much of every other stream an event has heard of.
//!
//! A stream's clock changes only where it waits, so posts share the clock of their stream by reference
//! and a wait copies it first if someone else still holds it. Each clock has an entry for every stream, so
//! memory may grow with the square of their number: it has a limit.

use crate::ids::{OpId, StreamId};
use crate::schedule::{OpKind, Schedule, Stream};

/// Entries of all clocks together: 4 GiB. Streams that know more of each other are not proved.
pub(super) const ENTRIES: usize = 1 << 30;

/// The clocks would take more entries than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

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
    limit: usize,
}

impl<'s> Clocks<'s> {
    /// For at most `limit` entries. A stream that waits comes to have a clock of its own: where these alone
    /// are too many, it is known before any is filled.
    pub(super) fn new(schedule: &'s Schedule, limit: usize) -> Result<Self, Full> {
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
            schedule,
            width,
            pool: vec![0; width],
            holders: vec![width as u32],
            free: Vec::new(),
            of: vec![0; width],
            carried: vec![u32::MAX; schedule.ops.len()],
            run: 0,
            limit,
        })
    }

    /// The same program once more, after its end.
    pub(super) fn next_run(&mut self) {
        self.run += 1;
    }

    /// A name for the op in this run.
    pub(super) fn event(&self, op: OpId) -> u32 {
        self.event_in(op, self.run)
    }

    /// A name for the op in that run.
    pub(super) fn event_in(&self, op: OpId, run: u32) -> u32 {
        op.0 + run * self.schedule.ops.len() as u32
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
    pub(super) fn wait(
        &mut self,
        post: OpId,
        from: StreamId,
        stream: StreamId,
    ) -> Result<(), Full> {
        let carried = std::mem::replace(&mut self.carried[post.index()], u32::MAX) as usize;
        let mine = self.own(stream)? as usize;
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

#[cfg(test)]
mod tests {
    use super::{Clocks, Full};
    use crate::ids::{OpId, StreamId};
    use crate::schedule::text;

    /// Rank 1 posts twice and hears of rank 0 in between: three clocks of two entries live at once.
    const LATE: &str = "
schedule Late AllReduce nranks 2 root 0
rank 0 stream 0
  post ack 0->1 @0
  wait data 1->0 @0
  wait data 1->0 @0
rank 1 stream 0
  post data 1->0 @0
  wait ack 0->1 @0
  post data 1->0 @0
";

    #[test]
    fn memory_has_a_limit() {
        let schedule = text::parse(LATE).unwrap();
        assert!(
            Clocks::new(&schedule, 3).is_err(),
            "two streams wait, and each clock has two entries"
        );
        let [zero, one] = [StreamId(0), StreamId(1)];
        let run = |limit| {
            let mut clocks = Clocks::new(&schedule, limit).unwrap_or_else(|Full| panic!("{limit}"));
            clocks.post(OpId(0), zero);
            clocks.post(OpId(3), one);
            clocks.wait(OpId(0), zero, one)?;
            clocks.post(OpId(5), one);
            clocks.wait(OpId(3), one, zero)?;
            clocks.wait(OpId(5), one, zero)?;
            assert!(clocks.before(5, one, zero));
            Ok(())
        };
        assert_eq!(run(4), Err(Full));
        assert_eq!(run(6), Ok(()));
    }
}
