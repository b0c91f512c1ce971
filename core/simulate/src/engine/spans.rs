//! The activity of each stream over time, from its moves and waits, one span at a time.

use super::Engine;
use super::moves::Moving;
use crate::timeline::{Span, TimelineState};

/// Returns the spans of all streams, in the order of streams and then of starts. `idle` are the spans of waits.
///
/// Moves of a stream may overlap. A stream that folds or copies is shown as such; else it transfers, by the transfer
/// that began first; and it is idle where it waits and no move is under way.
pub(super) fn spans(engine: &Engine<'_>, idle: Vec<Span>) -> Vec<Span> {
    let mut of: Vec<Vec<Span>> = vec![Vec::new(); engine.schedule.streams.len()];
    for span in idle {
        of[span.stream.index()].push(span);
    }
    for moving in &engine.moves {
        let &Moving { stream, op, start, arrived, folds, done, .. } = moving;
        let spans = &mut of[stream.index()];
        let mut span = |state, start, end| {
            if end > start {
                spans.push(Span { stream, op, state, start, end });
            }
        };
        span(TimelineState::Transfer, start, arrived);
        span(TimelineState::Local, folds, done);
    }
    let mut all = Vec::new();
    for stream in of {
        one_at_a_time(stream, &mut all);
    }
    all
}

/// Returns the priority of a state among the states of one time.
const fn weight(state: TimelineState) -> u8 {
    match state {
        TimelineState::Local => 2,
        TimelineState::Transfer => 1,
        TimelineState::Idle => 0,
    }
}

/// Appends the spans of one stream that have priority to `all`, cut to the times where they do.
fn one_at_a_time(mut spans: Vec<Span>, all: &mut Vec<Span>) {
    let mut cuts: Vec<f64> = spans.iter().flat_map(|span| [span.start, span.end]).collect();
    cuts.sort_unstable_by(f64::total_cmp);
    cuts.dedup();
    spans.sort_by(|a, b| a.start.total_cmp(&b.start).then(a.op.cmp(&b.op)));
    let (mut open, mut next) = (Vec::<Span>::new(), spans.into_iter().peekable());
    let first = all.len();
    for cut in cuts.windows(2) {
        let (start, end) = (cut[0], cut[1]);
        open.retain(|span| span.end > start);
        while let Some(span) = next.next_if(|span| span.start <= start) {
            open.push(span);
        }
        // The first span of the highest priority: open spans are in the order of their starts.
        let Some(shown) = open.iter().rev().max_by_key(|span| weight(span.state)) else { continue };
        match all[first..].last_mut() {
            Some(last) if (last.op, last.state, last.end) == (shown.op, shown.state, start) => {
                last.end = end;
            }
            _ => all.push(Span { start, end, ..*shown }),
        }
    }
}
