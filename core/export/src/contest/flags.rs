//! The flags of the channels of an operator: an index for each lane and kind of signal between two ranks, and for the
//! posts of a lane several in turn where one flag could lose a signal.

use std::collections::{BTreeMap, HashMap};

use roundelay_core::diagnostics::Finding;
use roundelay_core::ids::{ChannelId, LaneId, RankId};
use roundelay_core::schedule::{Channel, OpKind, Schedule};
use roundelay_core::verify::{Signals, verify_with};

/// The most flags of an end of a channel.
pub(super) const MOST_FLAGS: u32 = 64;

/// The flags that each end of a channel has for an algorithm.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkFlags {
    /// The number of each lane among those of a pair of ranks: lanes that no pair shares may have one number.
    pub(super) colors: BTreeMap<Vec<i64>, u32>,
    /// The flags that the posts of a lane take in turn.
    pub(super) rounds: u32,
}

impl LinkFlags {
    /// Returns the flags with which no signal of a schedule is lost: the fewest in turn, of powers of two.
    ///
    /// # Errors
    /// The findings with one flag for each lane, where no number of them does.
    pub(super) fn new(schedule: &Schedule, signals: Signals) -> Result<Self, Vec<Finding>> {
        let colors = colors(schedule);
        let mut flags = Self { colors, rounds: 1 };
        let Err(lost) = verify_with(schedule, signals) else { return Ok(flags) };
        if !has_own_streams(schedule) {
            return Err(lost);
        }
        while flags.many() <= MOST_FLAGS / 2 {
            flags.rounds *= 2;
            if verify_with(&in_turn(schedule, flags.rounds), signals).is_ok() {
                return Ok(flags);
            }
        }
        Err(lost)
    }

    /// Returns the number of flags of an end of a channel.
    pub(super) fn many(&self) -> u32 {
        let lanes = self.colors.values().max().map_or(0, |most| most + 1);
        2 * lanes * self.rounds
    }

    /// Returns the first flag of each lane, less those of other algorithms.
    pub(super) fn first_of(&self, lanes: &[Vec<i64>]) -> Vec<u32> {
        lanes.iter().map(|lane| self.colors.get(lane).copied().unwrap_or(0)).collect()
    }
}

/// Numbers the lanes so that two lanes of a pair of ranks have different numbers.
fn colors(schedule: &Schedule) -> BTreeMap<Vec<i64>, u32> {
    let mut pairs: BTreeMap<LaneId, Vec<(RankId, RankId)>> = BTreeMap::new();
    for channel in schedule.channels.iter().filter(|channel| channel.kind.of_pairs()) {
        pairs.entry(channel.lane).or_default().push((channel.from, channel.to));
    }
    let mut taken: HashMap<(RankId, RankId), Vec<u32>> = HashMap::new();
    let mut colors = BTreeMap::new();
    for (lane, pairs) in pairs {
        let free = |color: &u32| {
            !pairs.iter().any(|pair| taken.get(pair).is_some_and(|all| all.contains(color)))
        };
        // As many lanes have been numbered as numbers may be taken.
        let color = (0..=colors.len() as u32).find(free).expect("some number is free");
        for pair in pairs {
            taken.entry(pair).or_default().push(color);
        }
        colors.insert(schedule.lanes[lane.index()].clone(), color);
    }
    colors
}

/// Whether the posts of each channel are of one stream, and its waits too: then their numbers are those of the text.
fn has_own_streams(schedule: &Schedule) -> bool {
    let mut of = HashMap::new();
    schedule.streams.iter().enumerate().all(|(nth, stream)| {
        let ops = &schedule.ops[stream.first.index()..][..stream.len as usize];
        let mut signals = ops.iter().filter(|op| op.kind != OpKind::Move);
        signals.all(|op| *of.entry((op.kind == OpKind::Post, op.arg)).or_insert(nth) == nth)
    })
}

/// Returns the schedule in which the signals of each channel between ranks take `rounds` channels in turn.
fn in_turn(schedule: &Schedule, rounds: u32) -> Schedule {
    let mut turned = schedule.clone();
    let lanes = schedule.lanes.len() as u32;
    for round in 1..rounds {
        // No variable of a program has the least number.
        let of = |lane: &Vec<i64>| [&lane[..], &[i64::MIN, round.into()]].concat();
        turned.lanes.extend(schedule.lanes.iter().map(of));
    }
    turned.channels.clear();
    let mut ids: HashMap<Channel, ChannelId> = HashMap::new();
    let mut passed: HashMap<(bool, u32), u32> = HashMap::new();
    for op in turned.ops.iter_mut().filter(|op| op.kind != OpKind::Move) {
        let mut channel = schedule.channels[op.arg as usize];
        if channel.kind.of_pairs() {
            let nth = passed.entry((op.kind == OpKind::Post, op.arg)).or_default();
            channel.lane = LaneId(*nth % rounds * lanes + channel.lane.0);
            *nth += 1;
        }
        let id = *ids.entry(channel).or_insert_with(|| {
            turned.channels.push(channel);
            ChannelId(turned.channels.len() as u32 - 1)
        });
        op.arg = id.0;
    }
    turned
}
