//! Chooses signals that meet the needs.
//!
//! The first step is one walk in the order of events. A wait is pending until an op of its stream needs the knowledge
//! of its post; of a channel only the latest pending wait counts, for later posts know more. If no pending wait tells
//! the earlier end of a need, that knowledge came through streams that did not need it themselves: then the signals
//! of a shortest path are kept for certain, and the walk is repeated with the knowledge that they bring to streams.

use std::collections::VecDeque;

use super::needs::{After, Need, Needs, Stop};
use super::paths::{CrossingCost, Paths, StreamPoint};
use crate::ids::{OpId, StreamId};
use crate::schedule::{OpKind, Schedule, SignalKind};
use crate::verify::Order;
use crate::verify::clocks::dense::Dense;

/// Entries of all clocks together: 1 GiB.
const ENTRIES: usize = 1 << 28;
/// The most walks, each with more signals that are certain. The last result is right as well, with more signals than
/// necessary.
const WALKS: usize = 16;
/// Events that searches look at, for each op of the schedule.
const SEARCHED: u64 = 64;
/// Events that searches may look at in addition, for a schedule of any size.
const FREE: u64 = 1 << 20;

/// Marks a wait that no need asks for: of a fork or a join, or not kept.
pub(super) const NONE: u32 = u32::MAX;

/// The decision about each wait.
pub(super) struct ElisionChoice {
    /// Whether the wait stays, by op.
    pub(super) kept: Vec<bool>,
    /// The need that asks for the wait, by op.
    pub(super) why: Vec<u32>,
}

/// Whether the op belongs to a fork or join, which stay.
pub(super) fn stays(schedule: &Schedule, op: OpId) -> bool {
    let op = schedule.op(op);
    op.kind != OpKind::Move
        && matches!(schedule.channel(op).kind, SignalKind::Fork | SignalKind::Join)
}

/// Returns signals that meet all needs.
pub(super) fn choose(
    schedule: &Schedule,
    order: &Order,
    needs: &Needs,
    paths: &mut Paths<'_>,
) -> Result<ElisionChoice, Stop> {
    let waits =
        |at: usize| schedule.ops[at].kind == OpKind::Wait && stays(schedule, OpId(at as u32));
    let ops = schedule.ops.len();
    let mut certain = ElisionChoice { kept: (0..ops).map(waits).collect(), why: vec![NONE; ops] };
    let mut walks = 0;
    loop {
        walks += 1;
        let chosen = ElisionChoice { kept: certain.kept.clone(), why: certain.why.clone() };
        let mut walk = Walk::new(schedule, order, needs, chosen)?;
        let mut grown = false;
        walk.all(&mut Missing::Find { paths, certain: &mut certain, grown: &mut grown })?;
        let Walk { choice: mut chosen, .. } = walk;
        // Waits that became certain after the walk had passed them.
        for at in 0..ops {
            if certain.kept[at] && !chosen.kept[at] {
                (chosen.kept[at], chosen.why[at]) = (true, certain.why[at]);
            }
        }
        if !grown || walks == WALKS {
            return Ok(chosen);
        }
    }
}

/// Returns the first need that the kept signals do not meet.
pub(super) fn unmet(
    schedule: &Schedule,
    order: &Order,
    needs: &Needs,
    kept: &[bool],
) -> Result<Option<u32>, Stop> {
    let choice = ElisionChoice { kept: kept.to_vec(), why: Vec::new() };
    let mut walk = Walk::new(schedule, order, needs, choice)?;
    let mut first = None;
    walk.all(&mut Missing::Tell(&mut first))?;
    Ok(first)
}

/// The action where a need is not met.
enum Missing<'a, 's> {
    /// Keeps a pending wait, or the waits of a path.
    Find { paths: &'a mut Paths<'s>, certain: &'a mut ElisionChoice, grown: &'a mut bool },
    /// Returns the need, and ends the walk.
    Tell(&'a mut Option<u32>),
}

/// A wait that its stream has passed without learning from it.
#[derive(Clone, Copy)]
struct Pending {
    wait: OpId,
    stream: StreamId,
    from: StreamId,
    /// Events of the stream `from` up to the post.
    count: u32,
    /// The knowledge of the post.
    held: u32,
}

struct Walk<'s> {
    schedule: &'s Schedule,
    order: &'s Order,
    needs: &'s Needs,
    clocks: Dense,
    choice: ElisionChoice,
    /// By channel, the knowledge of posts that no wait has met yet.
    carried: Vec<VecDeque<u32>>,
    /// By channel, its pending wait.
    pending: Vec<Option<Pending>>,
    /// By stream, the channels that it waits on.
    channels: Vec<Vec<u32>>,
    next: usize,
}

impl<'s> Walk<'s> {
    fn new(
        schedule: &'s Schedule,
        order: &'s Order,
        needs: &'s Needs,
        choice: ElisionChoice,
    ) -> Result<Self, Stop> {
        let mut channels = vec![Vec::new(); schedule.streams.len()];
        for (at, op) in schedule.ops.iter().enumerate().filter(|(_, op)| op.kind == OpKind::Wait) {
            let list: &mut Vec<u32> = &mut channels[order.stream_of[at].index()];
            if list.last() != Some(&op.arg) {
                list.push(op.arg);
            }
        }
        for list in &mut channels {
            list.sort_unstable();
            list.dedup();
        }
        Ok(Self {
            clocks: Dense::new(schedule, ENTRIES)?,
            carried: vec![VecDeque::new(); schedule.channels.len()],
            pending: vec![None; schedule.channels.len()],
            channels,
            schedule,
            order,
            needs,
            choice,
            next: 0,
        })
    }

    /// Walks the run, and the next run if there are needs of it. Returns early once an unmet need is found that the
    /// caller asked for.
    fn all(&mut self, missing: &mut Missing<'_, '_>) -> Result<(), Stop> {
        self.run(false, missing)?;
        while let Some(need) = self.needs.all.get(self.next)
            && let After::Exit(rank) = need.after
        {
            let stream = self.needs.main[rank.index()];
            let end = self.schedule.streams[stream.index()].len;
            let rest = &self.needs.all[self.next..];
            let same = rest.iter().take_while(|n| n.after == need.after).count();
            self.meet(same, StreamPoint { stream, time: end }, missing)?;
        }
        if self.next < self.needs.all.len() {
            self.run(true, missing)?;
        }
        Ok(())
    }

    fn run(&mut self, again: bool, missing: &mut Missing<'_, '_>) -> Result<(), Stop> {
        for &at in &self.order.sequence {
            if matches!(missing, Missing::Tell(Some(_))) {
                return Ok(());
            }
            let stream = self.order.stream_of[at.index()];
            let after = if again { After::Next(at) } else { After::Op(at) };
            let rest = &self.needs.all[self.next..];
            let same = rest.iter().take_while(|need| need.after == after).count();
            if same > 0 {
                let time = self.time(at, again);
                self.meet(same, StreamPoint { stream, time }, missing)?;
            }
            let op = self.schedule.op(at);
            match op.kind {
                OpKind::Move => {}
                OpKind::Post => {
                    let held = self.clocks.hold(stream);
                    self.carried[op.arg as usize].push_back(held);
                }
                OpKind::Wait => self.wait(at, stream, again, missing)?,
            }
        }
        Ok(())
    }

    fn time(&self, at: OpId, again: bool) -> u32 {
        let stream = self.schedule.streams[self.order.stream_of[at.index()].index()];
        at.0 - stream.first.0 + if again { stream.len } else { 0 }
    }

    fn wait(
        &mut self,
        wait: OpId,
        stream: StreamId,
        again: bool,
        missing: &Missing<'_, '_>,
    ) -> Result<(), Stop> {
        let channel = self.schedule.op(wait).arg as usize;
        let post = self.order.meets[wait.index()];
        let (from, count) = (self.order.stream_of[post.index()], self.time(post, again) + 1);
        let held = self.carried[channel].pop_front().expect("the order meets posts with waits");
        // An earlier pending wait on the channel knew less.
        if let Some(earlier) = self.pending[channel].take() {
            self.clocks.release(earlier.held);
        }
        if self.choice.kept[wait.index()] {
            self.clocks.learn(held, (from, count), stream)?;
        } else if matches!(missing, Missing::Find { .. }) {
            self.pending[channel] = Some(Pending { wait, stream, from, count, held });
        } else {
            self.clocks.release(held);
        }
        Ok(())
    }

    /// Meets the next `len` needs, whose later end is `point`.
    fn meet(
        &mut self,
        len: usize,
        point: StreamPoint,
        missing: &mut Missing<'_, '_>,
    ) -> Result<(), Stop> {
        let needs: &'s [Need] = &self.needs.all;
        let first = self.next;
        self.next += len;
        let mut open: Vec<usize> =
            (first..first + len).filter(|need| !self.met(&needs[*need], point)).collect();
        match missing {
            Missing::Tell(unmet) => {
                let first = open.first().map(|need| *need as u32);
                **unmet = unmet.or(first);
            }
            Missing::Find { paths, certain, grown } => {
                // A signal that tells the latest event is likely to tell the earlier ones too.
                open.sort_by_key(|need| std::cmp::Reverse(paths.position(needs[*need].before)));
                for at in open {
                    let need = &needs[at];
                    if self.met(need, point) {
                        continue;
                    }
                    if let Some(channel) = self.teller(need, point) {
                        self.take(channel, at as u32)?;
                        continue;
                    }
                    let kept = &self.choice.kept;
                    let cost = |wait: OpId| {
                        let stays = kept[wait.index()] || certain.kept[wait.index()];
                        if stays { CrossingCost::Free } else { CrossingCost::Dear }
                    };
                    let way = paths.find(need.before, point, cost).ok_or(Stop::Unordered)?;
                    if paths.work > SEARCHED * self.schedule.ops.len() as u64 + FREE {
                        return Err(Stop::TooMuch);
                    }
                    for wait in way.into_iter().map(OpId::index) {
                        if !certain.kept[wait] {
                            (certain.kept[wait], certain.why[wait]) = (true, at as u32);
                            **grown = true;
                        }
                    }
                    let (from, count) = self.of(need);
                    self.clocks.hear((from, count), point.stream)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the stream of the earlier end, and the number of its events that must be known.
    fn of(&self, need: &Need) -> (StreamId, u32) {
        (self.order.stream_of[need.before.index()], self.time(need.before, false) + 1)
    }

    fn met(&self, need: &Need, point: StreamPoint) -> bool {
        let (from, count) = self.of(need);
        from == point.stream || self.clocks.known(point.stream, from) >= count
    }

    /// Returns the channel whose pending wait tells the earlier end: a channel from the stream of that end, if there
    /// is one, and among equals the channel that knows most.
    fn teller(&self, need: &Need, point: StreamPoint) -> Option<u32> {
        let (from, count) = self.of(need);
        let tells = |channel: &&u32| {
            let pending = self.pending[**channel as usize].filter(|p| p.stream == point.stream)?;
            let told = if pending.from == from {
                pending.count
            } else {
                self.clocks.held(pending.held, from)
            };
            (told >= count).then_some((pending.from == from, told, pending.wait))
        };
        let channels = self.channels[point.stream.index()].iter();
        let best = channels.filter_map(|channel| Some((tells(&channel)?, *channel))).max()?;
        Some(best.1)
    }

    fn take(&mut self, channel: u32, why: u32) -> Result<(), Stop> {
        let pending = self.pending[channel as usize].take().expect("it is pending");
        let Pending { wait, stream, from, count, held } = pending;
        (self.choice.kept[wait.index()], self.choice.why[wait.index()]) = (true, why);
        self.clocks.learn(held, (from, count), stream)?;
        Ok(())
    }
}
