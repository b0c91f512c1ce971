//! Iteration 0 of a `parallel` taken for what stands around it: what is signalled or sent in the one is never met in
//! the other. Where a program would go on if it were, its author is told.

use rustc_hash::FxHashMap;

use super::deadlock;
use super::signals::in_lanes;
use crate::diagnostics::{Code, Finding};
use crate::ids::{LaneId, SpanId};
use crate::schedule::{OpKind, Schedule, SignalKind};

/// The findings, the first with a note where it may come from that.
pub(super) fn explained(schedule: &Schedule, mut findings: Vec<Finding>) -> Vec<Finding> {
    let Some(first) = findings.first_mut() else { return findings };
    let Some(joined) = joined(schedule) else { return findings };
    let of_signals = matches!(
        first.code,
        Code::Deadlock | Code::UnmatchedWait | Code::LeftOverSignal | Code::FifoTooShallow
    );
    if of_signals && deadlock::ends(&joined) {
        first.notes.push(
            "signals inside iteration 0 of a `parallel` are its own: they do not meet those outside it".into(),
        );
        let twin = twin(schedule, first);
        first.others.retain(|(at, _)| Some(*at) != twin);
        first.others.extend(twin.map(|at| (at, "its twin is in another lane".to_owned())));
    } else if !of_signals && links(&joined) < links(schedule) {
        first.notes.push(
            "the fifo inside iteration 0 of a `parallel` is its own: what is sent outside it is not received there"
                .into(),
        );
    }
    findings
}

/// How many links of fifos a schedule uses.
fn links(schedule: &Schedule) -> usize {
    schedule.channels.iter().filter(|channel| channel.kind == SignalKind::Tail).count()
}

/// The schedule with the signals of every iteration 0 in the lane around it; `None` where that changes nothing.
fn joined(schedule: &Schedule) -> Option<Schedule> {
    if !schedule.lanes.iter().any(|lane| lane.last() == Some(&0)) {
        return None;
    }
    let mut first = FxHashMap::default();
    let ids = (0..).map(LaneId).zip(&schedule.lanes);
    let around: Vec<LaneId> =
        ids.map(|(id, lane)| *first.entry(without_zeros(lane)).or_insert(id)).collect();
    let joined = in_lanes(schedule, |lane| around[lane.index()]);
    (joined.channels.len() < schedule.channels.len()).then_some(joined)
}

/// The values of a lane but for the iterations 0 that it ends with.
fn without_zeros(lane: &[i64]) -> &[i64] {
    let len = lane.iter().rposition(|value| *value != 0).map_or(0, |last| last + 1);
    &lane[..len]
}

/// The statement of a signal that the one without a partner would meet.
fn twin(schedule: &Schedule, finding: &Finding) -> Option<SpanId> {
    let (lacks, has) = match finding.code {
        Code::UnmatchedWait => (OpKind::Wait, OpKind::Post),
        Code::LeftOverSignal => (OpKind::Post, OpKind::Wait),
        _ => return None,
    };
    let lonely = schedule.ops.iter().find(|op| op.kind == lacks && op.at == finding.at)?;
    let channel = schedule.channel(lonely);
    if !channel.kind.has_lane() {
        return None;
    }
    let mut all = schedule.ops.iter().rev().filter(|op| op.kind == has);
    let meets = all.find(|op| {
        let other = schedule.channel(op);
        let name = |lane: LaneId| without_zeros(&schedule.lanes[lane.index()]);
        let ends = (other.from, other.to, other.kind) == (channel.from, channel.to, channel.kind);
        ends && other.lane != channel.lane && name(other.lane) == name(channel.lane)
    })?;
    Some(meets.at)
}
