//! Vector clocks: the number of events of other streams that an event has heard of.
//!
//! Near clocks keep only the entries that a replay is likely to need, in time that does not grow with the number of
//! streams, and may know less than is true: an event that they order before another is before it. Sparse and dense
//! clocks know every order; sparse clocks are for schedules where streams hear of few others. So a replay with near
//! clocks without findings is the proof, and any other replay with near clocks is repeated.

pub(crate) mod dense;
mod near;
mod sparse;
mod trees;

use std::iter;

use super::order::Order;
use crate::ids::{OpId, StreamId};
use crate::schedule::Schedule;
use dense::Dense;
use near::Near;
use sparse::Sparse;

/// The most entries of all clocks together: 4 GiB. A schedule whose streams know more of each other is not proved.
pub const ENTRIES: usize = 1 << 30;

/// The most entries of near clocks for each op; with more, other clocks are quicker.
const NEAR: usize = 4;
/// The most steps of sparse clocks for each op.
const SPARSE: usize = 64;
/// The most steps of sparse clocks in all: 800 MiB.
const STEPS: usize = 1 << 26;
/// The number of streams up to which a dense clock is filled as quickly as sparse clocks are joined.
const NARROW: usize = 1 << 10;

/// The clocks would take more entries than the limit.
#[derive(Debug, PartialEq, Eq)]
pub struct Full;

/// The clocks of a replay, of one kind.
pub struct Clocks<'s> {
    schedule: &'s Schedule,
    known: Known,
    run: u32,
}

enum Known {
    Near(Near),
    Sparse(Sparse),
    Dense(Dense),
}

impl<'s> Clocks<'s> {
    /// Creates clocks that know every order, of at most `limit` entries.
    pub fn dense(schedule: &'s Schedule, limit: usize) -> Result<Self, Full> {
        Ok(Self { schedule, known: Known::Dense(Dense::new(schedule, limit)?), run: 0 })
    }

    /// Whether a run in `order` with dense clocks keeps to `limit` entries.
    pub fn fit(schedule: &Schedule, order: &Order, limit: usize) -> bool {
        dense::fit(schedule, order, limit)
    }

    /// Creates clocks that know every order, in at most `limit` steps.
    pub fn sparse(schedule: &'s Schedule, limit: usize) -> Self {
        Self { schedule, known: Known::Sparse(Sparse::new(schedule, limit)), run: 0 }
    }

    /// Returns the clocks that may suffice where dense clocks take long, the quickest first.
    pub(super) fn quick(schedule: &'s Schedule) -> impl Iterator<Item = Self> {
        let ops = schedule.ops.len();
        let near = Self::near(schedule, ENTRIES.min(ops.saturating_mul(NEAR)));
        let (few, wide) = (near.is_some(), schedule.streams.len() > NARROW);
        let sparse = move || {
            let limit = STEPS.min(ops.saturating_mul(SPARSE));
            wide.then(|| Self::sparse(schedule, limit))
        };
        let many = move || if wide && !few { Self::near(schedule, ENTRIES) } else { None };
        let near = near.into_iter().chain(iter::once_with(sparse).flatten());
        near.chain(iter::once_with(many).flatten())
    }

    /// Creates clocks of at most `limit` entries that know enough of most schedules, if this schedule has such clocks.
    pub fn near(schedule: &'s Schedule, limit: usize) -> Option<Self> {
        Some(Self { schedule, known: Known::Near(Near::new(schedule, limit)?), run: 0 })
    }

    /// Whether an event may be before another although the clocks do not know it.
    pub(super) fn may_miss(&self) -> bool {
        matches!(self.known, Known::Near(_))
    }

    /// Moves on to the next run: the program again, after its end.
    pub fn next_run(&mut self) {
        self.run += 1;
        if let Known::Sparse(sparse) = &mut self.known {
            sparse.next_run();
        }
    }

    /// Returns the event of the op in this run.
    pub fn event(&self, op: OpId) -> u32 {
        self.event_in(op, self.run)
    }

    /// Returns the event of the op in run `run`.
    pub fn event_in(&self, op: OpId, run: u32) -> u32 {
        op.0 + run * self.schedule.ops.len() as u32
    }

    /// Returns the op of an event, and its run.
    pub(super) fn op(&self, event: u32) -> (OpId, u32) {
        let ops = self.schedule.ops.len() as u32;
        // Every access calls this, nearly always in the first run: a comparison saves the division.
        if event < ops { (OpId(event), 0) } else { (OpId(event % ops), event / ops) }
    }

    /// Returns the number of events of its stream before an event in its run, and in the runs before.
    fn time(&self, event: u32, stream: StreamId) -> (u32, u32) {
        let (op, run) = self.op(event);
        let stream = self.schedule.streams[stream.index()];
        (op.0 - stream.first.0, run * stream.len)
    }

    /// Whether `event` of stream `of` is before every later event of `stream`.
    pub fn before(&self, event: u32, of: StreamId, stream: StreamId) -> bool {
        if of == stream {
            return true;
        }
        let (time, runs) = self.time(event, of);
        match &self.known {
            Known::Near(near) => time + runs < near.known(stream, of),
            Known::Dense(dense) => time + runs < dense.known(stream, of),
            Known::Sparse(sparse) if self.op(event).1 == self.run => {
                time < sparse.known(stream, of)
            }
            Known::Sparse(sparse) => sparse.knew(stream, of, time),
        }
    }

    /// Whether `stream` has heard from stream `of` at all.
    pub fn heard(&self, of: StreamId, stream: StreamId) -> bool {
        of == stream
            || match &self.known {
                Known::Near(near) => near.known(stream, of) > 0,
                Known::Dense(dense) => dense.known(stream, of) > 0,
                Known::Sparse(sparse) => sparse.known(stream, of) > 0 || sparse.knew(stream, of, 0),
            }
    }

    /// Records a post, a release: it carries the knowledge of its stream.
    pub fn post(&mut self, op: OpId, stream: StreamId) {
        let (time, runs) = self.time(self.event(op), stream);
        match &mut self.known {
            Known::Near(near) => {
                near.post(Schedule::channel_id(self.schedule.op(op)), time + runs + 1);
            }
            Known::Sparse(sparse) => sparse.post(op, stream),
            Known::Dense(dense) => dense.post(op, stream),
        }
    }

    /// Records a wait, an acquire: the stream learns the knowledge of the post, and the post itself.
    pub fn wait(&mut self, post: OpId, from: StreamId, stream: StreamId) -> Result<(), Full> {
        let op = self.schedule.op(post);
        // The post carried the entries of near clocks; its own number is not needed again.
        let (time, runs) = if self.may_miss() { (0, 0) } else { self.time(self.event(post), from) };
        match &mut self.known {
            Known::Near(near) => near.wait(Schedule::channel_id(op)),
            Known::Sparse(sparse) => sparse.wait(post, (from, time + 1), stream)?,
            Known::Dense(dense) => dense.wait(post, (from, time + runs + 1), stream)?,
        }
        Ok(())
    }
}
