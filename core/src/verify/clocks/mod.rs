//! Vector clocks: how much of other streams an event has heard of.
//!
//! Near clocks keep only what is likely to be asked, in time that does not grow with the number of
//! streams, and may know less than is true: what they say came before did. Sparse and dense ones know it all, sparse
//! ones where streams hear of few others. So a replay with near clocks that finds nothing to report is the proof, and
//! any other is done again.

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

/// Entries of all clocks together: 4 GiB. Streams that know more of each other are not proved.
pub(super) const ENTRIES: usize = 1 << 30;

/// Entries of near clocks for each op, where others are quicker if there are more.
const NEAR: usize = 4;
/// Steps of sparse clocks for each op.
const SPARSE: usize = 64;
/// And in all: 800 MiB.
const STEPS: usize = 1 << 26;
/// Up to so many streams, to fill a dense clock takes no longer than to join sparse ones.
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
    /// Clocks that know everything, of at most `limit` entries.
    pub(super) fn dense(schedule: &'s Schedule, limit: usize) -> Result<Self, Full> {
        Ok(Self { schedule, known: Known::Dense(Dense::new(schedule, limit)?), run: 0 })
    }

    /// Whether a run in `order` with clocks that know everything keeps to `limit` entries.
    pub(super) fn fit(schedule: &Schedule, order: &Order, limit: usize) -> bool {
        dense::fit(schedule, order, limit)
    }

    /// Clocks that know everything, in at most `limit` steps.
    pub(super) fn sparse(schedule: &'s Schedule, limit: usize) -> Self {
        Self { schedule, known: Known::Sparse(Sparse::new(schedule, limit)), run: 0 }
    }

    /// The clocks that may do where dense ones take long, the quickest first.
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

    /// Clocks of at most `limit` entries that know enough of most schedules, if there are any for this one.
    pub(super) fn near(schedule: &'s Schedule, limit: usize) -> Option<Self> {
        Some(Self { schedule, known: Known::Near(Near::new(schedule, limit)?), run: 0 })
    }

    /// Whether what is not known to come before may do so after all.
    pub(super) fn may_miss(&self) -> bool {
        matches!(self.known, Known::Near(_))
    }

    /// Moves on to the next run: the program once more, after its end.
    pub(super) fn next_run(&mut self) {
        self.run += 1;
        if let Known::Sparse(sparse) = &mut self.known {
            sparse.next_run();
        }
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
        // This is asked at every access, nearly always in the first run: a comparison saves the division.
        if event < ops { (OpId(event), 0) } else { (OpId(event % ops), event / ops) }
    }

    /// How many events of its stream precede it in its run, and how many of the runs before.
    fn time(&self, event: u32, stream: StreamId) -> (u32, u32) {
        let (op, run) = self.op(event);
        let stream = self.schedule.streams[stream.index()];
        (op.0 - stream.first.0, run * stream.len)
    }

    /// Whether `event` of stream `of` comes before everything that `stream` does from here on.
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

    /// A release: the post carries what its stream knows.
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

    /// An acquire: the stream learns what the post carries, and the post itself.
    pub(super) fn wait(
        &mut self,
        post: OpId,
        from: StreamId,
        stream: StreamId,
    ) -> Result<(), Full> {
        let op = self.schedule.op(post);
        // What near clocks learn was carried with the post; the post's own place is not looked up again.
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

    /// Everybody hears of everybody, and the signals of all are under way at once: what is counted beforehand is
    /// what a run takes, to the entry.
    #[test]
    fn what_a_run_takes_is_known_before_it() {
        let text = "algorithm A() -> AllReduce {
            for d in 1..nranks { peer((rank + d) % nranks).TxAck(); }
            for d in 1..nranks { peer((rank + d) % nranks).RxAck(); peer((rank + d) % nranks).TxDataSignal(); }
            for d in 1..nranks { peer((rank + d) % nranks).RxDataSignal(); }
        }";
        let source = Source::from_text("test.coll", text);
        let program = compile(&source, Frontend::File).expect("it makes sense");
        let all = Configured::new(program.algorithms[0].clone(), &source);
        let schedule = all.schedule(6).expect("it fits");
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
        // Room for the clocks that six streams have in the end is no room for those of their posts.
        let fits = |limit: &usize| Clocks::fit(&schedule, &order, *limit);
        assert!((36..400).all(|limit| fits(&limit) == (run(limit) == Ok(()))));
        assert_eq!((36..400).find(fits), Some(26 * 6));
    }
}
