//! Signals of runtimes that are weaker than a counter for each lane. A one-shot flag is raised and taken down: a second
//! post before the wait is lost. All streams of a rank that use a link share its flags.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use rustc_hash::FxHashMap;

use super::clocks::Clocks;
use super::order::Order;
use crate::ids::{ChannelId, LaneId, OpId, StreamId};
use crate::schedule::{OpKind, Schedule};

/// The behavior of the signals of a runtime. By default each lane has counters of its own that only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// Whether a signal is a flag in place of a counter: a post on a raised flag is lost (E0314).
    pub one_shot: bool,
    /// Whether there is one flag or counter for each link and kind of signal, which all lanes share.
    pub link_shared: bool,
}

impl Signals {
    /// Returns the schedule as a runtime with these signals sees it.
    pub fn apply(self, schedule: &Schedule) -> Cow<'_, Schedule> {
        if !self.link_shared {
            return Cow::Borrowed(schedule);
        }
        Cow::Owned(in_lanes(schedule, |_| LaneId(0)))
    }
}

/// Returns the schedule with its signals in other lanes; signals that come to share a lane then meet each other.
pub(super) fn in_lanes(schedule: &Schedule, lane: impl Fn(LaneId) -> LaneId) -> Schedule {
    let mut shared = schedule.clone();
    let mut ids = FxHashMap::default();
    let mut channels = Vec::new();
    let merged: Vec<ChannelId> = schedule
        .channels
        .iter()
        .map(|channel| {
            let mut channel = *channel;
            if channel.kind.has_lane() {
                channel.lane = lane(channel.lane);
            }
            *ids.entry(channel).or_insert_with(|| {
                channels.push(channel);
                ChannelId(channels.len() as u32 - 1)
            })
        })
        .collect();
    for op in shared.ops.iter_mut().filter(|op| op.kind != OpKind::Move) {
        op.arg = merged[op.arg as usize].0;
    }
    shared.channels = channels;
    shared
}

impl fmt::Display for Signals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.one_shot, self.link_shared) {
            (false, false) => "counting",
            (true, false) => "binary",
            (false, true) => "link-shared",
            (true, true) => "binary,link-shared",
        })
    }
}

impl FromStr for Signals {
    type Err = String;

    /// Reads `counting`, `binary`, `link-shared`, or two of these with a comma between.
    fn from_str(text: &str) -> Result<Self, String> {
        let (mut signals, mut counting) = (Self::default(), false);
        for word in text.split(',') {
            match word.trim() {
                "counting" => counting = true,
                "binary" => signals.one_shot = true,
                "link-shared" => signals.link_shared = true,
                other => {
                    return Err(format!(
                        "`{other}` is no kind of signal: they are counting, binary and link-shared, \
                         such as binary,link-shared"
                    ));
                }
            }
        }
        if counting && signals.one_shot {
            return Err("signals are counting or binary, not both".to_owned());
        }
        Ok(signals)
    }
}

/// The state of one-shot flags while a schedule is replayed.
pub(super) struct Flags {
    /// The wait that takes each post.
    taken_by: Vec<OpId>,
    /// The post that raised each channel's flag last, as an event.
    raised: Vec<Option<u32>>,
}

impl Flags {
    pub(super) fn new(schedule: &Schedule, order: &Order) -> Self {
        let mut taken_by: Vec<OpId> = (0..schedule.ops.len() as u32).map(OpId).collect();
        for (wait, op) in schedule.ops.iter().enumerate() {
            if op.kind == OpKind::Wait {
                taken_by[order.meets[wait].index()] = OpId(wait as u32);
            }
        }
        Self { taken_by, raised: vec![None; schedule.channels.len()] }
    }

    /// Raises a flag by a post; returns the post before it, if its wait need not have come first.
    pub(super) fn raise(
        &mut self,
        channel: ChannelId,
        post: OpId,
        stream: StreamId,
        order: &Order,
        clocks: &Clocks<'_>,
    ) -> Option<(OpId, bool)> {
        let earlier = self.raised[channel.index()].replace(clocks.event(post))?;
        let (before, run) = clocks.op(earlier);
        let wait = self.taken_by[before.index()];
        let across = clocks.op(clocks.event(post)).1 != run;
        let taken =
            clocks.before(clocks.event_in(wait, run), order.stream_of[wait.index()], stream);
        (!taken).then_some((before, across))
    }
}
