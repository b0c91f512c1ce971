//! Runs in which nothing contends: every message has its link to itself.

use roundelay_core::check::Door;
use roundelay_core::check::others::Others;
use roundelay_core::compile_with;
use roundelay_core::ids::{OpId, RankId, StreamId};
use roundelay_core::schedule::interpret::Interpreted;
use roundelay_core::schedule::{Algorithm as _, Op, OpKind, Schedule};
use roundelay_core::simulate::{Message, Span, State, Timeline};
use roundelay_core::source::Source;

const LIBRARY: &[(&str, &str)] = include!("../../../stdlib/sources.rs");

/// Seconds of a message besides its bytes; bytes a second of a link, and within a rank.
const LATENCY: f64 = 2e-6;
const LINK: f64 = 25e9;
const COPY: f64 = 200e9;

/// An algorithm of the library.
pub(crate) fn schedule(name: &str, nranks: u32) -> Schedule {
    let here = |(_, text): &&(&str, &str)| text.contains(&format!("algorithm {name}("));
    let (file, text) = LIBRARY.iter().find(here).expect("an algorithm of the library");
    let source = Source::from_text(*file, text);
    let program =
        compile_with(&source, Door::File, &Others::library(LIBRARY)).expect("it is right");
    let found = program.algorithms.iter().find(|a| a.name == name).expect("it is there");
    Interpreted::new(found.clone(), &source).schedule(nranks).expect("it admits that many ranks")
}

/// A run of `bytes` bytes a unit, in which the rank `late` is slower by `times`.
pub(crate) fn run(schedule: &Schedule, bytes: u64, late: RankId, times: f64) -> Timeline {
    let streams = schedule.streams.len();
    let mut next = vec![0_u32; streams];
    let mut now = vec![0.0_f64; streams];
    let mut posted: Vec<Vec<f64>> = vec![Vec::new(); schedule.channels.len()];
    let mut waited = vec![0_usize; schedule.channels.len()];
    let mut line = Timeline { nranks: schedule.nranks, ..Timeline::default() };
    loop {
        let before = next.clone();
        for (id, stream) in schedule.streams.iter().enumerate() {
            let slow = if stream.rank == late { times } else { 1.0 };
            while next[id] < stream.len {
                let op_id = OpId(stream.first.0 + next[id]);
                let op = schedule.op(op_id);
                let start = now[id];
                let channel = (op.kind != OpKind::Move).then(|| *schedule.channel(op));
                let (end, state) = match (op.kind, channel) {
                    (OpKind::Post, Some(channel)) => {
                        let takes = if channel.from == channel.to { 0.0 } else { LATENCY };
                        posted[op.arg as usize].push(start + takes);
                        let message = Message {
                            op: op_id,
                            from: channel.from,
                            to: channel.to,
                            bytes: 0,
                            start,
                            end: start + takes,
                        };
                        line.messages.push(message);
                        (start, None)
                    }
                    (OpKind::Wait, _) => {
                        let channel = op.arg as usize;
                        let Some(come) = posted[channel].get(waited[channel]) else { break };
                        waited[channel] += 1;
                        (come.max(start), Some(State::Idle))
                    }
                    _ => {
                        let (size, pairs) = size(schedule, op, bytes);
                        let takes = if pairs.is_empty() {
                            size as f64 / COPY
                        } else {
                            LATENCY + size as f64 / LINK
                        };
                        let end = start + takes * slow;
                        line.messages.extend(pairs.iter().map(|(from, to)| Message {
                            op: op_id,
                            from: *from,
                            to: *to,
                            bytes: size,
                            start,
                            end,
                        }));
                        (end, Some(if pairs.is_empty() { State::Local } else { State::Transfer }))
                    }
                };
                if let Some(state) = state.filter(|_| end > start) {
                    line.spans.push(Span {
                        stream: StreamId(id as u32),
                        op: op_id,
                        state,
                        start,
                        end,
                    });
                }
                now[id] = end;
                next[id] += 1;
            }
        }
        if next == before {
            break;
        }
    }
    assert!(next.iter().zip(&schedule.streams).all(|(next, s)| *next == s.len), "it ends");
    line.seconds = now.into_iter().fold(0.0, f64::max);
    line.spans.sort_by(|a, b| (a.stream, a.start).partial_cmp(&(b.stream, b.start)).unwrap());
    line.messages.sort_by(|a, b| a.start.total_cmp(&b.start));
    line
}

/// Bytes of each message, and between whom.
fn size(schedule: &Schedule, op: &Op, bytes: u64) -> (u64, Vec<(RankId, RankId)>) {
    let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
    let (_, size) = schedule.extent(schedule.region(dsts[0]), bytes);
    let pairs = srcs.iter().flat_map(|s| dsts.iter().map(|d| (s.rank, d.rank)));
    (size, pairs.filter(|(from, to)| from != to).collect())
}
