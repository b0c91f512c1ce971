//! The order of events, in the events of rank 0 alone: a wait for a post of rank p meets rank 0's own post to the rank
//! that p is turned from, and each edge between events carries the turn between their ranks.

use std::cell::{Cell, RefCell};

use rustc_hash::FxHashMap;

use crate::ids::{OpId, RankId, StreamId};
use crate::schedule::{Channel, OpKind, Schedule, SignalKind};
use crate::turns::Turns;
use crate::verify::Order;

/// The most streams and waits that the search of one order visits.
const VISITS: u32 = 1 << 14;
/// The most that all searches visit together.
const ALL_VISITS: u64 = 1 << 30;

/// Returns the schedule of rank 0 with one channel for each post of its own and the waits for the like posts of others.
pub(crate) fn folded(own: &Schedule, turns: &Turns) -> Schedule {
    let mut folded = own.clone();
    let mut ids = FxHashMap::default();
    let mut channels: Vec<Channel> = Vec::new();
    let like: Vec<u32> = own
        .channels
        .iter()
        .map(|channel| {
            let to = RankId(turns.turn_between(channel.from.0, channel.to.0));
            // A free slot is signalled against the direction of its link: both signals of a link have its two ends.
            let (from, to) = match channel.kind {
                SignalKind::Head => (RankId(turns.back(to.0)), RankId(0)),
                _ => (RankId(0), to),
            };
            let channel = Channel { from, to, ..*channel };
            *ids.entry(channel).or_insert_with(|| {
                channels.push(channel);
                channels.len() as u32 - 1
            })
        })
        .collect();
    for op in folded.ops.iter_mut().filter(|op| op.kind != OpKind::Move) {
        op.arg = like[op.arg as usize];
    }
    folded.channels = channels;
    folded
}

/// An event: an op of a rank, in one of two runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Event {
    pub(super) op: OpId,
    /// The rank, as the turn from the rank that looks at the event.
    pub(super) rank: u32,
    pub(super) run: u32,
}

/// A wait of a stream.
#[derive(Clone, Copy)]
struct Heard {
    /// The position in the stream.
    at: u32,
    /// The post that it meets, and the turn to the rank that posts.
    post: OpId,
    from: u32,
}

/// The question whether one event comes before another, in every run.
pub(super) struct Before<'a> {
    own: &'a Schedule,
    turns: &'a Turns,
    order: &'a Order,
    /// The place of each op in the order.
    place: Vec<u32>,
    /// The waits of each stream.
    waits: Vec<Vec<Heard>>,
    /// The waits of each stream for each rank, as positions in `waits`.
    from: Vec<FxHashMap<u32, Vec<u32>>>,
    /// The last question, with its answer.
    last: Cell<Option<((Event, Event), bool)>>,
    visits: Cell<u64>,
    /// Whether a search was given up.
    pub(super) full: Cell<bool>,
    /// For each stream of each rank that a search has come to, the events that are known to come before.
    seen: RefCell<FxHashMap<(u32, u32), u32>>,
}

impl<'a> Before<'a> {
    pub(super) fn new(own: &'a Schedule, turns: &'a Turns, order: &'a Order) -> Self {
        let mut place = vec![0; own.ops.len()];
        for (at, op) in (0..).zip(&order.sequence) {
            place[op.index()] = at;
        }
        let mut waits = Vec::with_capacity(own.streams.len());
        let mut from = Vec::with_capacity(own.streams.len());
        for stream in &own.streams {
            let mut list: Vec<Heard> = Vec::new();
            let mut by_rank: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
            for at in 0..stream.len {
                let op = own.op(OpId(stream.first.0 + at));
                if op.kind == OpKind::Wait {
                    let from = own.channel(op).from.0;
                    by_rank.entry(from).or_default().push(list.len() as u32);
                    let post = order.meets[(stream.first.0 + at) as usize];
                    list.push(Heard { at, post, from });
                }
            }
            waits.push(list);
            from.push(by_rank);
        }
        Self {
            own,
            turns,
            order,
            place,
            waits,
            from,
            last: Cell::new(None),
            visits: Cell::new(0),
            full: Cell::new(false),
            seen: RefCell::default(),
        }
    }

    /// Returns the position of an event in its stream, over the runs.
    fn position(&self, event: Event) -> (StreamId, u32) {
        let id = self.order.stream_of[event.op.index()];
        let stream = &self.own.streams[id.index()];
        (id, event.op.0 - stream.first.0 + event.run * stream.len)
    }

    /// Returns the place of an event in the order of all events.
    fn time(&self, event: Event) -> u64 {
        u64::from(self.place[event.op.index()])
            + u64::from(event.run) * self.order.sequence.len() as u64
    }

    /// Whether event `first` comes before event `second`, or is the same event.
    pub(super) fn holds(&self, first: Event, second: Event) -> bool {
        if let Some((question, answer)) = self.last.get()
            && question == (first, second)
        {
            return answer;
        }
        let ((stream, at), (of, until)) = (self.position(first), self.position(second));
        let rank = self.turns.turn_between(second.rank, first.rank);
        let answer = self.search((of, until), (stream, at, rank), Some(self.time(first)));
        self.last.set(Some(((first, second), answer)));
        answer
    }

    /// Whether event `first` comes before event `second` in one stream, or by a signal between their two streams.
    pub(super) fn is_near(&self, first: Event, second: Event) -> bool {
        let ((stream, at), (of, until)) = (self.position(first), self.position(second));
        let rank = self.turns.turn_between(second.rank, first.rank);
        if (stream, rank) == (of, 0) {
            return at <= until;
        }
        let heard = self.heard(of, until, 0, rank);
        heard.is_some_and(|heard| (heard.0, heard.1) == (stream, rank) && heard.2 >= at)
    }

    /// Whether the beginning of a stream of a rank comes before an event.
    pub(super) fn begun(&self, stream: StreamId, rank: u32, second: Event) -> bool {
        let (of, until) = self.position(second);
        let rank = self.turns.turn_between(second.rank, rank);
        (of == stream && rank == 0) || self.search((of, until), (stream, 0, rank), None)
    }

    /// Whether an event comes before the end of a stream of rank 0 in the first run.
    pub(super) fn ended(&self, first: Event, stream: StreamId) -> bool {
        let (of, at) = self.position(first);
        let len = self.own.streams[stream.index()].len;
        if len == 0 {
            return of == stream && first.rank == 0;
        }
        self.search((stream, len - 1), (of, at, first.rank), Some(self.time(first)))
    }

    /// Searches backwards from an event of rank 0 for a position of a stream of a rank. Nothing before `since` can come
    /// after the event that is looked for.
    fn search(
        &self,
        start: (StreamId, u32),
        (target, position, rank): (StreamId, u32, u32),
        since: Option<u64>,
    ) -> bool {
        let mut seen = self.seen.borrow_mut();
        seen.clear();
        let mut open = vec![(start.0, 0_u32, start.1)];
        let mut visits = 0;
        while let Some((stream, of, until)) = open.pop() {
            if (stream, of) == (target, rank) && until >= position {
                self.visits.set(self.visits.get() + u64::from(visits));
                return true;
            }
            let known = seen.entry((stream.0, of)).or_insert(0);
            // Positions up to the known one were visited already.
            let from = *known;
            if until < from {
                continue;
            }
            *known = until + 1;
            // A wait for the rank that is looked for is the shortest way.
            if let Some(heard) = self.heard(stream, until, of, rank)
                && (heard.0, heard.1) == (target, rank)
                && heard.2 >= position
            {
                self.visits.set(self.visits.get() + u64::from(visits));
                return true;
            }
            let first = open.len();
            let len = self.own.streams[stream.index()].len;
            'runs: for run in (from / len..=until / len).rev() {
                let list = &self.waits[stream.index()];
                let end = if run == until / len { until % len } else { len - 1 };
                let last = list.partition_point(|wait| wait.at <= end);
                for wait in list[..last].iter().rev() {
                    let op = OpId(self.own.streams[stream.index()].first.0 + wait.at);
                    let now = self.time(Event { op, rank: 0, run });
                    if run * len + wait.at < from || since.is_some_and(|since| now <= since) {
                        break 'runs;
                    }
                    visits += 1;
                    if visits > VISITS || self.visits.get() + u64::from(visits) > ALL_VISITS {
                        self.full.set(true);
                        return false;
                    }
                    open.push(self.posted(wait, of, run));
                }
            }
            // The latest wait is visited first.
            open[first..].reverse();
        }
        self.visits.set(self.visits.get() + u64::from(visits));
        false
    }

    /// Returns the last post of a rank that a stream has met, of all streams of the rank.
    fn heard(
        &self,
        stream: StreamId,
        until: u32,
        of: u32,
        rank: u32,
    ) -> Option<(StreamId, u32, u32)> {
        let list = self.from[stream.index()].get(&self.turns.turn_between(of, rank))?;
        let waits = &self.waits[stream.index()];
        let len = self.own.streams[stream.index()].len;
        let (run, at) = (until / len, until % len);
        let last = list.partition_point(|wait| waits[*wait as usize].at <= at);
        let (wait, run) = match last.checked_sub(1) {
            Some(last) => (list[last], run),
            None => (*list.last()?, run.checked_sub(1)?),
        };
        Some(self.posted(&waits[wait as usize], of, run))
    }

    /// Returns the stream, the rank and the position of the post that a wait of rank `of` meets.
    fn posted(&self, wait: &Heard, of: u32, run: u32) -> (StreamId, u32, u32) {
        let (stream, at) = self.position(Event { op: wait.post, rank: 0, run });
        (stream, self.turns.turn(of, wait.from), at)
    }
}
