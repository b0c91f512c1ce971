//! Programs that confuse iteration 0 of a `parallel` with the code around it: a signal or message of the iteration
//! never meets its partner outside. Where the program would go on if they met, its author is told.

use rustc_hash::FxHashMap;

use super::deadlock;
use super::signals::in_lanes;
use crate::diagnostics::{Code, Finding};
use crate::ids::{LaneId, SpanId};
use crate::schedule::{OpKind, Schedule, SignalKind};

/// Returns the findings, the first with a note where this confusion may be the cause.
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

/// Returns the number of fifo links that a schedule uses.
fn links(schedule: &Schedule) -> usize {
    schedule.channels.iter().filter(|channel| channel.kind == SignalKind::Tail).count()
}

/// Returns the schedule with the signals of every iteration 0 in the lane around it; `None` where that changes nothing.
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

/// Returns the values of a lane without the trailing iterations 0.
fn without_zeros(lane: &[i64]) -> &[i64] {
    let len = lane.iter().rposition(|value| *value != 0).map_or(0, |last| last + 1);
    &lane[..len]
}

/// Returns the statement of the signal in another lane that the unmatched signal of a finding would meet.
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
