//! An op of a schedule in the words of a trace.

use std::collections::BTreeSet;

use crate::dtype::DType;
use crate::ids::{OpId, RankId, SpanId};
use crate::json::Json;
use crate::schedule::{Op, OpKind, Schedule, text};
use crate::syntax::Source;

/// The data of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data {
    /// Elements a unit; 0 where blocks have counts that are not known here.
    pub count: u64,
    /// The type of the elements.
    pub dtype: DType,
}

/// The name, the category and the details of an event.
#[derive(Clone, Debug, PartialEq)]
pub struct OpText {
    /// The name, such as `reduce from 3`.
    pub name: String,
    /// The category: `step`, `post` or `wait`.
    pub category: &'static str,
    /// The details: the statement's place and text, peers, bytes, and the op.
    pub args: Vec<(&'static str, Json)>,
}

impl OpText {
    /// Describes an op, with the text of its statement where the source is there.
    pub fn of_op(schedule: &Schedule, id: OpId, data: Data, source: Option<&Source>) -> Self {
        let op = schedule.op(id);
        let mut args = place(schedule, op.at, source);
        let rank = schedule.streams[schedule.stream_of(id).index()].rank;
        let (name, category) = match op.kind {
            OpKind::Move => {
                let (name, peers) = of_move(schedule, op, rank);
                args.extend(peers);
                if let Some(operand) = schedule.dsts(op).first() {
                    let bytes = bytes(schedule, op, data, operand.region.index());
                    args.extend(bytes.map(|bytes| ("bytes", Json::Whole(bytes))));
                }
                (name, "step")
            }
            OpKind::Post | OpKind::Wait => {
                let channel = schedule.channel(op);
                let signal = text::signal_word(channel.kind);
                let (posts, peer) = match op.kind {
                    OpKind::Post => (true, channel.to),
                    _ => (false, channel.from),
                };
                let inner = channel.from == channel.to;
                let name = match (posts, inner) {
                    (true, true) => signal.to_owned(),
                    (true, false) => format!("{signal} to {peer}"),
                    (false, true) => format!("waits for {signal}"),
                    (false, false) => format!("waits for {signal} of {peer}"),
                };
                if !inner {
                    args.push(("peer", Json::Whole(peer.0.into())));
                }
                (name, if posts { "post" } else { "wait" })
            }
        };
        args.push(("op", Json::Text(text::op(schedule, op))));
        Self { name, category, args }
    }

    /// Describes the work of a rank on a statement, or on several that were fused.
    pub fn of_statement(
        schedule: &Schedule,
        rank: RankId,
        at: SpanId,
        source: Option<&Source>,
    ) -> Self {
        let mut args = place(schedule, at, source);
        let moves = || {
            schedule.ops.iter().zip(0..).filter(|(op, _)| op.at == at && op.kind == OpKind::Move)
        };
        let owner = |id: u32| schedule.streams[schedule.stream_of(OpId(id)).index()].rank;
        // Any rank may make a part of a result that all ranks have.
        let found = moves().find(|(_, id)| owner(*id) == rank).or_else(|| moves().next());
        let found = found.map(|(op, _)| op);
        let name = found.map_or("step".to_owned(), |op| {
            let (name, peers) = of_move(schedule, op, rank);
            args.extend(peers);
            name
        });
        Self { name, category: "step", args }
    }
}

/// Returns the place of a statement and its text.
fn place(schedule: &Schedule, at: SpanId, source: Option<&Source>) -> Vec<(&'static str, Json)> {
    let mut args = Vec::new();
    let place = schedule.place(at);
    if !place.is_empty() {
        args.push(("line", Json::Text(place)));
    }
    let lines = schedule.lines(at);
    let statement = |line: &u32| {
        let text = source?.line(*line)?.split("//").next()?.trim();
        (!text.is_empty()).then(|| text.to_owned())
    };
    let statements: Vec<String> = lines.iter().filter_map(statement).collect();
    if !statements.is_empty() {
        args.push(("statement", Json::Text(statements.join(" "))));
    }
    args
}

/// Returns the name of a move of a rank, and its peers.
fn of_move(schedule: &Schedule, op: &Op, rank: RankId) -> (String, Option<(&'static str, Json)>) {
    let verb = if op.srcs > 1 { "reduce" } else { "copy" };
    let others = |operands: &[crate::schedule::Operand]| -> BTreeSet<u32> {
        operands.iter().map(|operand| operand.rank.0).filter(|other| *other != rank.0).collect()
    };
    let (from, to) = (others(schedule.srcs(op)), others(schedule.dsts(op)));
    let words = |word: &str, ranks: &BTreeSet<u32>| match ranks.len() {
        0 => String::new(),
        1..=3 => {
            let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
            format!(" {word} {}", ranks.join(", "))
        }
        several => format!(" {word} {several} ranks"),
    };
    let name = format!("{verb}{}{}", words("from", &from), words("to", &to));
    let mut peers: Vec<u32> = from.union(&to).copied().collect();
    let peer = match peers.len() {
        0 => None,
        1 => peers.pop().map(|peer| ("peer", Json::Whole(peer.into()))),
        _ => Some(("peers", Json::list(peers))),
    };
    (name, peer)
}

/// Returns the bytes of a region.
fn bytes(schedule: &Schedule, op: &Op, data: Data, region: usize) -> Option<u64> {
    debug_assert_eq!(op.kind, OpKind::Move);
    let region = &schedule.regions[region];
    let element = schedule.element_bytes(region, data.dtype);
    let known = data.count > 0 || schedule.elements.is_some();
    known.then(|| schedule.extent(region, data.count).1 * element)
}
