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
pub(super) const ENTRIES: usize = 1 << 30;

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
pub(crate) struct Full;

pub(super) struct Clocks<'s> {
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
    pub(super) fn dense(schedule: &'s Schedule, limit: usize) -> Result<Self, Full> {
        Ok(Self { schedule, known: Known::Dense(Dense::new(schedule, limit)?), run: 0 })
    }

    /// Whether a run in `order` with dense clocks keeps to `limit` entries.
    pub(super) fn fit(schedule: &Schedule, order: &Order, limit: usize) -> bool {
        dense::fit(schedule, order, limit)
    }

    /// Creates clocks that know every order, in at most `limit` steps.
    pub(super) fn sparse(schedule: &'s Schedule, limit: usize) -> Self {
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
    pub(super) fn near(schedule: &'s Schedule, limit: usize) -> Option<Self> {
        Some(Self { schedule, known: Known::Near(Near::new(schedule, limit)?), run: 0 })
    }

    /// Whether an event may be before another although the clocks do not know it.
    pub(super) fn may_miss(&self) -> bool {
        matches!(self.known, Known::Near(_))
    }

    /// Moves on to the next run: the program again, after its end.
    pub(super) fn next_run(&mut self) {
        self.run += 1;
        if let Known::Sparse(sparse) = &mut self.known {
            sparse.next_run();
        }
    }

    /// Returns the event of the op in this run.
    pub(super) fn event(&self, op: OpId) -> u32 {
        self.event_in(op, self.run)
    }

    /// Returns the event of the op in run `run`.
    pub(super) fn event_in(&self, op: OpId, run: u32) -> u32 {
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
    pub(super) fn before(&self, event: u32, of: StreamId, stream: StreamId) -> bool {
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
    pub(super) fn heard(&self, of: StreamId, stream: StreamId) -> bool {
        of == stream
            || match &self.known {
                Known::Near(near) => near.known(stream, of) > 0,
                Known::Dense(dense) => dense.known(stream, of) > 0,
                Known::Sparse(sparse) => sparse.known(stream, of) > 0 || sparse.knew(stream, of, 0),
            }
    }

    /// Records a post, a release: it carries the knowledge of its stream.
    pub(super) fn post(&mut self, op: OpId, stream: StreamId) {
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
    pub(super) fn wait(
        &mut self,
        post: OpId,
        from: StreamId,
        stream: StreamId,
    ) -> Result<(), Full> {
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

#[cfg(test)]
mod tests {
    use super::{Clocks, Full};
    use crate::check::Frontend;
    use crate::compile;
    use crate::ids::{OpId, StreamId};
    use crate::layout::{Algorithm as _, Configured};
    use crate::schedule::{OpKind, text};
    use crate::syntax::Source;
    use crate::verify::in_order;

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
            Clocks::dense(&schedule, 3).is_err(),
            "two streams wait, and each clock has two entries"
        );
        let [zero, one] = [StreamId(0), StreamId(1)];
        let run = |limit| {
            let mut clocks =
                Clocks::dense(&schedule, limit).unwrap_or_else(|Full| panic!("{limit}"));
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
        let order = in_order(&schedule).expect("no deadlock");
        assert!(!Clocks::fit(&schedule, &order, 4));
        assert!(Clocks::fit(&schedule, &order, 6));
    }

    /// All streams hear of all others, and all signals are under way at once: the number of entries that is counted
    /// beforehand is the number that a run takes, exactly.
    #[test]
    fn what_a_run_takes_is_known_before_it() {
        let text = "algorithm A() -> AllReduce {
            for d in 1..nranks { peer((rank + d) % nranks).TxAck(); }
            for d in 1..nranks { peer((rank + d) % nranks).RxAck(); peer((rank + d) % nranks).TxDataSignal(); }
            for d in 1..nranks { peer((rank + d) % nranks).RxDataSignal(); }
        }";
        let source = Source::from_text("test.coll", text);
        let program = compile(&source, Frontend::File).expect("the source is valid");
        let all = Configured::new(program.algorithms[0].clone(), &source);
        let schedule = all.schedule(6).expect("the algorithm fits");
        let order = in_order(&schedule).expect("no deadlock");
        let run = |limit| -> Result<(), Full> {
            let mut clocks = Clocks::dense(&schedule, limit)?;
            order.sequence.iter().try_for_each(|at| {
                let stream = order.stream_of[at.index()];
                let post = order.meets[at.index()];
                match schedule.op(*at).kind {
                    OpKind::Post => clocks.post(*at, stream),
                    _ => clocks.wait(post, order.stream_of[post.index()], stream)?,
                }
                Ok(())
            })
        };
        // Six streams end with clocks that fit, but the clocks of their posts need more room.
        let fits = |limit: &usize| Clocks::fit(&schedule, &order, *limit);
        assert!((36..400).all(|limit| fits(&limit) == (run(limit) == Ok(()))));
        assert_eq!((36..400).find(fits), Some(26 * 6));
    }
}
