//! Adapts a schedule to the links of an executor: only their four signals, and no access to a rank's scratch outside
//! its run.
//!
//! Elsewhere scratch belongs to a plan of one count, and only the next run of this plan follows. An executor may run
//! with another count or element type next, and then divides scratch differently. So scratch follows the rule of the
//! callers' buffers: a peer accesses it after its rank has begun, or after all accesses of the run before; and before
//! its rank ends. Where the algorithm's own signals do not imply this, a signal is added at the begin or the end of the
//! run.

use std::collections::{BTreeSet, HashMap};

use roundelay_core::diagnostics::Finding;
use roundelay_core::ids::{ChannelId, LaneId, OpId, RankId, SpanId, StreamId};
use roundelay_core::schedule::{Buffer, Channel, Op, OpKind, Schedule, SignalKind};
use roundelay_core::verify::{Signals, in_order};

/// A rank that accesses another rank's scratch, and that other rank; or the ranks that post and wait for a signal.
pub(super) type Pair = (RankId, RankId);

/// A schedule with a link's signals, and with no access to scratch outside of a run.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Closed {
    pub(super) schedule: Schedule,
    /// The added signals at the begin and at the end of each rank's main stream.
    pub(super) begun: Vec<Pair>,
    pub(super) ended: Vec<Pair>,
}

/// Returns the schedule with a link's signals, which behave as `signals`, and with no access to scratch outside of a run.
pub(super) fn closed(schedule: &Schedule, signals: Signals) -> Result<Closed, Vec<Finding>> {
    let mut closed = schedule.clone();
    for channel in &mut closed.channels {
        channel.kind = kind_on_link(channel.kind);
    }
    // A rank's knowledge follows from the flags, which all lanes of a link may share.
    let Open { early, late } = open(&signals.apply(&closed))?;
    let begun: Vec<Pair> = early.into_iter().map(|(who, owner)| (owner, who)).collect();
    let ended: Vec<Pair> = late.into_iter().collect();
    if !(begun.is_empty() && ended.is_empty()) {
        add(&mut closed, &begun, &ended);
    }
    Ok(Closed { schedule: closed, begun, ended })
}

/// Returns the signal of a link that stands for a signal of a program.
pub(super) fn kind_on_link(kind: SignalKind) -> SignalKind {
    match kind {
        SignalKind::Head => SignalKind::Ack,
        SignalKind::Tail => SignalKind::Data,
        kind => kind,
    }
}

/// Accesses to scratch that may overlap the previous run of its rank (`early`) or the next one (`late`).
#[derive(Default)]
pub(super) struct Open {
    pub(super) early: BTreeSet<Pair>,
    pub(super) late: BTreeSet<Pair>,
}

pub(super) fn open(schedule: &Schedule) -> Result<Open, Vec<Finding>> {
    let order = in_order(schedule)?;
    let streams = schedule.streams.len();
    let main = schedule.main_streams();
    // The number of ops of each stream that a stream knows to be done: now, and at each post.
    let mut known = vec![vec![0_u32; streams]; streams];
    let mut posted: HashMap<OpId, Vec<u32>> = HashMap::new();
    // The last access of each stream to each rank's scratch.
    let mut last: HashMap<(StreamId, RankId), u32> = HashMap::new();
    let mut open = Open::default();
    for &at in &order.sequence {
        let stream = order.stream_of[at.index()];
        let Op { kind, .. } = *schedule.op(at);
        let own = schedule.streams[stream.index()];
        known[stream.index()][stream.index()] = at.0 - own.first.0 + 1;
        match kind {
            OpKind::Post => {
                posted.insert(at, known[stream.index()].clone());
            }
            OpKind::Wait => {
                let heard = posted.remove(&order.meets[at.index()]).unwrap_or_default();
                for (mine, theirs) in known[stream.index()].iter_mut().zip(heard) {
                    *mine = (*mine).max(theirs);
                }
            }
            OpKind::Move => {
                let op = schedule.op(at);
                for operand in schedule.operands_of(op) {
                    let scratch = matches!(schedule.region(*operand).buffer, Buffer::Scratch(_));
                    if !scratch {
                        continue;
                    }
                    let begun = known[stream.index()][main[operand.rank.index()].index()];
                    if begun == 0 && operand.rank != own.rank {
                        open.early.insert((own.rank, operand.rank));
                    }
                    last.insert((stream, operand.rank), at.0 - own.first.0 + 1);
                }
            }
        }
    }
    let over = |who: RankId, stream: StreamId, time| {
        known[main[who.index()].index()][stream.index()] >= time
    };
    // An accessor whose run ends after all accesses to the owner's scratch is not too early in the next run.
    open.early.retain(|&(who, owner)| {
        last.iter().any(|(&(stream, of), &time)| of == owner && !over(who, stream, time))
    });
    for ((stream, owner), time) in last {
        let who = schedule.streams[stream.index()].rank;
        if who != owner && !over(owner, stream, time) {
            open.late.insert((who, owner));
        }
    }
    Ok(open)
}

/// Adds signals: from each owner to its early accessors when it has begun, and from late accessors to the owner when
/// they are done.
fn add(schedule: &mut Schedule, begun: &[Pair], ended: &[Pair]) {
    let mut channel = |from, to, kind| {
        let wanted = Channel { from, to, kind, lane: LaneId(0) };
        let known = schedule.channels.iter().position(|channel| *channel == wanted);
        let at = known.unwrap_or_else(|| {
            schedule.channels.push(wanted);
            schedule.channels.len() - 1
        });
        ChannelId(at as u32)
    };
    let mut channels = |pairs: &[Pair], kind| -> Vec<_> {
        pairs.iter().map(|&(from, to)| (from, to, channel(from, to, kind))).collect()
    };
    let begun = channels(begun, SignalKind::Ack);
    let ended = channels(ended, SignalKind::Data);

    // All posts before all waits, so that no post is behind a wait.
    let signals = |all: &[(RankId, RankId, ChannelId)], rank: RankId, at: SpanId| {
        let op = |kind, channel: ChannelId| Op::new(kind, at, channel.0);
        let posts = all.iter().filter(|s| s.0 == rank).map(|s| op(OpKind::Post, s.2));
        let waits = all.iter().filter(|s| s.1 == rank).map(|s| op(OpKind::Wait, s.2));
        posts.chain(waits).collect::<Vec<_>>()
    };
    let old = std::mem::take(&mut schedule.ops);
    for stream in &mut schedule.streams {
        let own = &old[stream.first.index()..][..stream.len as usize];
        stream.first = OpId(schedule.ops.len() as u32);
        let place = |op: Option<&Op>| op.map_or(SpanId(0), |op| op.at);
        if stream.index == 0 {
            schedule.ops.extend(signals(&begun, stream.rank, place(own.first())));
        }
        schedule.ops.extend_from_slice(own);
        if stream.index == 0 {
            schedule.ops.extend(signals(&ended, stream.rank, place(own.last())));
        }
        stream.len = schedule.ops.len() as u32 - stream.first.0;
    }
}
