//! A simulated run as the events of a trace.

use crate::{Timeline, TimelineState};
use roundelay_base::ids::{OpId, RankId};
use roundelay_base::json::Json;
use roundelay_core::schedule::Schedule;
use roundelay_core::syntax::Source;
use roundelay_core::trace::{Data, OpText, Slice, TraceText, Track, TrackKind};

/// Adds a simulated run, which begins at the nanosecond `start`: a row for each stream, and rows of messages.
pub fn add_simulation(
    text: &mut TraceText,
    (schedule, timeline): (&Schedule, &Timeline),
    data: Data,
    source: Option<&Source>,
    start: u64,
) {
    let time = |(from, to): (f64, f64)| (start + nanos(from), start + nanos(to));
    let track = |rank, kind| Track { rank, simulated: true, kind };
    let call = |rank: u32| {
        let args = vec![("collective", Json::Text(schedule.collective.to_string()))];
        let (name, time) = (schedule.algorithm.clone(), time((0.0, timeline.seconds)));
        let call = Slice { name, category: "call", time, args };
        (track(RankId(rank), TrackKind::Calls), call)
    };
    for (track, call) in (0..timeline.nranks).map(call) {
        text.slice(track, &call);
    }
    for span in &timeline.spans {
        let stream = schedule.streams[span.stream.index()];
        let OpText { name, category, mut args } = OpText::of_op(schedule, span.op, data, source);
        let state = match span.state {
            TimelineState::Transfer => "messages are on their way",
            TimelineState::Local => "data is folded or copied within the rank",
            TimelineState::Idle => "the stream waits",
        };
        args.push(("state", Json::Text(state.to_owned())));
        let category = if span.state == TimelineState::Idle { "wait" } else { category };
        let slice = Slice { name, category, time: time((span.start, span.end)), args };
        text.slice(track(stream.rank, TrackKind::Stream(stream.index)), &slice);
    }
    // For each rank, the ends of the last messages of its rows.
    let mut rows: Vec<Vec<u64>> = vec![Vec::new(); timeline.nranks as usize];
    for message in &timeline.messages {
        let (begin, end) = time((message.start, message.end));
        let rows = &mut rows[message.from.index()];
        let free = rows.iter().position(|busy| *busy <= begin).unwrap_or(rows.len());
        if free == rows.len() {
            rows.push(end);
        }
        rows[free] = end;
        let args = of_message(
            schedule,
            message.op,
            [
                ("peer", message.to.0.into()),
                ("bytes", message.bytes),
                ("pieces", message.pieces.into()),
            ],
        );
        let what = if message.bytes == 0 && message.pieces == 0 { "signal " } else { "" };
        let (name, category) = (format!("{what}to {}", message.to), "message");
        let slice = Slice { name, category, time: (begin, end), args };
        text.slice(track(message.from, TrackKind::Messages(free as u32)), &slice);
    }
}

fn of_message(
    schedule: &Schedule,
    op: OpId,
    numbers: [(&'static str, u64); 3],
) -> Vec<(&'static str, Json)> {
    let numbers = numbers.map(|(key, number)| (key, Json::Whole(number)));
    let mut args = Vec::from(numbers);
    let place = schedule.place(schedule.op(op).at);
    if !place.is_empty() {
        args.insert(0, ("line", Json::Text(place)));
    }
    args
}

fn nanos(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}
