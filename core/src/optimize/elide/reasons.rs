//! The reasons why signals are kept, line by line of the source.

use rustc_hash::FxHashMap;

use super::{Elided, Kept, Why};
use crate::ids::{OpId, RankId};
use crate::schedule::Schedule;
use crate::schedule::text::signal_word;

/// Signals of one statement that are needed for the same reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The line of the source that posts.
    pub line: u32,
    /// The signal that it posts.
    pub signal: &'static str,
    /// The number of signals that are kept for this reason.
    pub times: usize,
    /// The reason why one of them is needed, in words.
    pub why: String,
}

/// The reasons why signals between ranks are kept, in the order of the lines that post.
pub fn reasons(elided: &Elided) -> Vec<Reason> {
    let schedule = &elided.schedule;
    let line = |op: OpId| schedule.location(schedule.op(op).at).line;
    let mut known: FxHashMap<_, usize> = FxHashMap::default();
    let mut all: Vec<Reason> = Vec::new();
    for kept in elided.kept.iter().filter(|kept| kept.why != Why::Stream) {
        let kind = schedule.channel(schedule.op(kept.post)).kind;
        let lines = match kept.why {
            Why::Conflict { first, second, across, .. } => {
                let code = 1 + u8::from(across);
                (code, line(first.0), line(second.0), Some((first.1, second.1)))
            }
            Why::Enter { op, .. } => (3, line(op), 0, None),
            Why::Exit { op, access, .. } => (4, line(op), 0, Some((access, access))),
            Why::Count => (5, 0, 0, None),
            Why::Stream | Why::Unknown => (6, 0, 0, None),
        };
        let (code, first, second, how) = lines;
        let how = how.map(|(first, second)| (first.verb(), second.verb()));
        let at =
            *known.entry((line(kept.post), kind, code, first, second, how)).or_insert_with(|| {
                let (line, signal) = (line(kept.post), signal_word(kind));
                all.push(Reason { line, signal, times: 0, why: why(schedule, kept) });
                all.len() - 1
            });
        all[at].times += 1;
    }
    all.sort_by_key(|reason| (reason.line, std::cmp::Reverse(reason.times)));
    all
}

/// Returns the order that would be lost without the signal, in words.
fn why(schedule: &Schedule, kept: &Kept) -> String {
    let rank = |op: OpId| schedule.streams[schedule.stream_of(op).index()].rank;
    let at = |op: OpId| {
        let line = schedule.location(schedule.op(op).at).line;
        format!("line {line}")
    };
    let whose = |owner: RankId, op: OpId| {
        if owner == rank(op) { "its".to_owned() } else { format!("rank {owner}'s") }
    };
    let buffer = |operand| schedule.buffer_name(schedule.region(operand).buffer);
    match kept.why {
        Why::Conflict { first: (a, earlier), second: (b, later), operand, across } => {
            let next = if across { " in the next run" } else { "" };
            format!(
                "rank {} {} {} {} at {}, then rank {} {} it at {}{next}",
                rank(a),
                earlier.verb(),
                whose(operand.rank, a),
                buffer(operand),
                at(a),
                rank(b),
                later.verb(),
                at(b),
            )
        }
        Why::Enter { op, operand } => format!(
            "rank {}'s caller enters, then rank {} touches its {} at {}",
            operand.rank,
            rank(op),
            buffer(operand),
            at(op)
        ),
        Why::Exit { op, access, operand } => format!(
            "rank {} {} {} {} at {}, then rank {}'s caller returns",
            rank(op),
            access.verb(),
            whose(operand.rank, op),
            buffer(operand),
            at(op),
            operand.rank
        ),
        Why::Count => "two streams of a rank take turns at one signal".to_owned(),
        Why::Stream => "it begins or ends a stream".to_owned(),
        Why::Unknown => "not looked into".to_owned(),
    }
}
