//! The depth that the fifos of a schedule need. A sender stops where all slots of a link hold data; with more slots it
//! would go on. So the streams are run again with other numbers of slots: a larger number never blocks a run that a
//! smaller number lets pass.

use rustc_hash::FxHashMap;

use crate::ids::{OpId, StreamId};
use crate::schedule::{Channel, OpKind, Schedule, SignalKind};

/// The number of slots that the links of a schedule's fifos have, and the number that they need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Depth {
    /// The most slots of a link that hold data at once, as the senders wait for credits.
    pub credits: u32,
    /// The fewest slots of a link with which all ranks come to their end.
    pub needed: u32,
}

/// Returns the depth of the fifos, if the schedule has fifos and ends.
pub fn depth(schedule: &Schedule) -> Option<Depth> {
    if !has_fifo(schedule) {
        return None;
    }
    let links = Links::new(schedule);
    let needed = links.needed()?;
    let spent = (0..schedule.ops.len() as u32).map(OpId).map(|at| links.in_flight(at)).max();
    Some(Depth { credits: spent.unwrap_or(0), needed })
}

/// Whether there are links whose messages are counted.
pub(crate) fn has_fifo(schedule: &Schedule) -> bool {
    schedule.channels.iter().any(|channel| channel.kind == SignalKind::Tail)
}

/// The channels of a schedule as the two ends of its links.
pub(super) struct Links<'s> {
    schedule: &'s Schedule,
    /// For a `tail`, the `head` of the same link, and the reverse.
    other: Vec<Option<usize>>,
    /// Whether the op waits for a credit before data is sent; other waits for credits collect the outstanding credits
    /// at the end.
    spends: Vec<bool>,
    /// The number of slots that hold data after each op of the sender, on the link of that op.
    in_flight: Vec<u32>,
}

impl<'s> Links<'s> {
    pub(super) fn new(schedule: &'s Schedule) -> Self {
        let ids: FxHashMap<Channel, usize> =
            schedule.channels.iter().enumerate().map(|(id, channel)| (*channel, id)).collect();
        let other = |channel: &Channel| {
            let kind = match channel.kind {
                SignalKind::Head => SignalKind::Tail,
                SignalKind::Tail => SignalKind::Head,
                _ => return None,
            };
            let Channel { from, to, lane, .. } = *channel;
            ids.get(&Channel { from: to, to: from, kind, lane }).copied()
        };
        let other: Vec<_> = schedule.channels.iter().map(other).collect();
        let mut spends = vec![false; schedule.ops.len()];
        let mut in_flight = vec![0; schedule.ops.len()];
        for stream in &schedule.streams {
            // For each `head` the latest wait, for each `tail` the number of slots that hold data.
            let mut before: FxHashMap<usize, OpId> = FxHashMap::default();
            let mut full: FxHashMap<usize, u32> = FxHashMap::default();
            for at in (stream.first.0..stream.first.0 + stream.len).map(OpId) {
                let op = schedule.op(at);
                if op.kind == OpKind::Move {
                    continue;
                }
                let channel = op.arg as usize;
                match (schedule.channels[channel].kind, op.kind) {
                    (SignalKind::Tail, OpKind::Post) => {
                        let full = full.entry(channel).or_insert(0);
                        *full += 1;
                        in_flight[at.index()] = *full;
                        if let Some(wait) = other[channel].and_then(|head| before.remove(&head)) {
                            spends[wait.index()] = true;
                        }
                    }
                    (SignalKind::Head, OpKind::Wait) => {
                        before.insert(channel, at);
                        let full = other[channel].and_then(|tail| full.get_mut(&tail));
                        if let Some(full) = full {
                            in_flight[at.index()] = *full;
                            *full = full.saturating_sub(1);
                        }
                    }
                    _ => {}
                }
            }
        }
        Self { schedule, other, spends, in_flight }
    }

    /// Returns the number of slots that hold data, as far as the sender knows when it comes to `at`: on the link whose
    /// credit it waits for, or on which it has just sent.
    pub(super) fn in_flight(&self, at: OpId) -> u32 {
        self.in_flight[at.index()]
    }

    /// Returns the fewest credits with which all streams end; `None` where there is no fifo, or where no number of
    /// credits helps.
    pub(super) fn needed(&self) -> Option<u32> {
        let mut sent = vec![0_u32; self.schedule.channels.len()];
        for op in self.schedule.ops.iter().filter(|op| op.kind == OpKind::Post) {
            let tail = self.schedule.channel(op).kind == SignalKind::Tail;
            sent[op.arg as usize] += u32::from(tail);
        }
        // With a slot for every message, no sender waits for a slot.
        let most = sent.into_iter().max().filter(|most| *most > 0)?;
        if !self.ends(most) {
            return None;
        }
        let mut enough = 1;
        while enough < most && !self.ends(enough) {
            enough = enough.saturating_mul(2).min(most);
        }
        let mut too_few = enough / 2;
        while enough - too_few > 1 {
            let middle = too_few + (enough - too_few) / 2;
            if self.ends(middle) { enough = middle } else { too_few = middle }
        }
        Some(enough)
    }

    /// Whether all streams end with `credits` credits a link.
    fn ends(&self, credits: u32) -> bool {
        let schedule = self.schedule;
        let channels = schedule.channels.len();
        let (mut posted, mut taken) = (vec![0_u32; channels], vec![0_u32; channels]);
        let mut next = vec![0; schedule.streams.len()];
        let mut waiting: Vec<Vec<StreamId>> = vec![Vec::new(); channels];
        let mut ready: Vec<_> = (0..schedule.streams.len() as u32).map(StreamId).collect();
        while let Some(id) = ready.pop() {
            let stream = schedule.streams[id.index()];
            while next[id.index()] < stream.len {
                let at = stream.first.index() + next[id.index()] as usize;
                let op = &schedule.ops[at];
                let channel = op.arg as usize;
                match op.kind {
                    OpKind::Move => {}
                    OpKind::Post => {
                        let tail = schedule.channels[channel].kind == SignalKind::Tail;
                        if let Some(head) = self.other[channel].filter(|_| tail)
                            && posted[channel] - posted[head].min(posted[channel]) >= credits
                        {
                            waiting[head].push(id);
                            break;
                        }
                        posted[channel] += 1;
                        ready.append(&mut waiting[channel]);
                    }
                    // The post after this wait needs the slot.
                    OpKind::Wait if self.spends[at] => taken[channel] += 1,
                    OpKind::Wait if taken[channel] < posted[channel] => taken[channel] += 1,
                    OpKind::Wait => {
                        waiting[channel].push(id);
                        break;
                    }
                }
                next[id.index()] += 1;
            }
        }
        schedule.streams.iter().zip(next).all(|(stream, next)| next == stream.len)
    }
}
