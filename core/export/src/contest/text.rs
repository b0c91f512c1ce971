//! A class of sizes as C++: tables of peers and pieces, and a function for each stream.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::moves::{Act, singles};
use crate::repeats::{self, Column, RepeatNode, index, variable};
use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::ids::{RankId, SpanId};
use roundelay_core::rational::Rat;
use roundelay_core::schedule::{
    Buffer, Channel, Op, OpKind, Operand, Schedule, SignalKind, Stream,
};
use roundelay_core::syntax::Source;

/// A statement without its values, which are peers and pieces.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ContestKey {
    pub(super) line: u32,
    pub(super) what: MethodCall,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum MethodCall {
    /// A signal: a method of a stream that takes a number.
    Signal(&'static str),
    /// A signal: a method of a stream that takes no number.
    Bare(&'static str),
    /// A method of a stream that moves data; for source and destination the buffer, and whether another rank owns it.
    Move(&'static str, [(Buffer, bool); 2]),
}

pub(super) type Statement = (ContestKey, Vec<Vec<u64>>);

/// Ranks whose streams have the same statements, and each rank's values.
type RankShape = (Vec<ContestKey>, Vec<RankId>, Vec<Vec<Statement>>);

/// The most pieces of a unit: with as many units, no product of the generated code leaves 64 bits.
const MOST_PIECES: u64 = 1 << 24;

/// Writes the functions of one class.
pub(super) struct ContestWriter<'a> {
    schedule: &'a Schedule,
    source: Option<&'a Source>,
    /// The number of equal pieces of a unit for which all boundaries are whole.
    pub(super) pieces: u64,
    tables: Vec<String>,
    /// The tables' names by content.
    named: BTreeMap<String, String>,
}

impl<'a> ContestWriter<'a> {
    pub(super) fn new(
        schedule: &'a Schedule,
        source: Option<&'a Source>,
    ) -> Result<Self, Vec<Finding>> {
        let ends = schedule.regions.iter().flat_map(|region| [region.base, region.lo, region.hi]);
        let mut pieces = 1_u64;
        for end in ends {
            let times = Rat::new(end.den(), pieces).map_or(1, Rat::num);
            let finer = pieces.checked_mul(times).filter(|pieces| *pieces <= MOST_PIECES);
            pieces = finer.ok_or_else(|| {
                let title = "the buffers are cut at boundaries that no few equal pieces have";
                let finding = Finding::new(Code::NotExportable, SpanId(0), title)
                    .note(format!("more than {MOST_PIECES} pieces of a unit"))
                    .help("let the splits have numbers of pieces with a small common multiple");
                vec![finding]
            })?;
        }
        Ok(Self { schedule, source, pieces, tables: Vec::new(), named: BTreeMap::new() })
    }

    /// Returns the text of the tables, the streams' functions, and the function that enqueues them all.
    pub(super) fn class(mut self) -> Result<String, Vec<Finding>> {
        let schedule = self.schedule;
        let streams = schedule.streams.iter().map(|s| s.index + 1).max().unwrap_or(1);
        let mut functions = String::new();
        let mut calls = String::new();
        for index in 0..streams {
            let of_index = schedule.streams.iter().filter(|s| s.index == index && s.len > 0);
            let mut shapes: Vec<RankShape> = Vec::new();
            for stream in of_index {
                let statements = self.statements(stream)?;
                let keys: Vec<_> = statements.iter().map(|(key, _)| key.clone()).collect();
                match shapes.iter_mut().find(|(known, ..)| *known == keys) {
                    Some((_, ranks, all)) => {
                        ranks.push(stream.rank);
                        all.push(statements);
                    }
                    None => shapes.push((keys, vec![stream.rank], vec![statements])),
                }
            }
            let alone = shapes.len() == 1 && shapes[0].1.len() == schedule.nranks as usize;
            if !alone {
                let _ = writeln!(calls, "    switch (run.rank) {{");
            }
            for (nth, (_, ranks, all)) in shapes.into_iter().enumerate() {
                let name =
                    if alone { format!("Stream{index}") } else { format!("Stream{index}_{nth}") };
                self.function(&name, &ranks, all, &mut functions);
                if alone {
                    let _ = writeln!(calls, "    CHK_RET({name}(Lane(run, {index})));");
                    continue;
                }
                for rank in &ranks {
                    let _ = writeln!(calls, "    case {rank}:");
                }
                let _ =
                    writeln!(calls, "        CHK_RET({name}(Lane(run, {index})));\n        break;");
            }
            if !alone {
                calls += "    }\n";
            }
        }
        let mut tables = self.tables;
        if !tables.is_empty() {
            tables.push("\n".to_owned());
        }
        let tables = tables.join("\n");
        Ok(format!(
            "{tables}{functions}HcclResult Enqueue(Run& run) {{\n{calls}    return HCCL_SUCCESS;\n}}\n"
        ))
    }

    fn function(
        &mut self,
        name: &str,
        ranks: &[RankId],
        all: Vec<Vec<Statement>>,
        text: &mut String,
    ) {
        let mut by_rank: Vec<_> = all.into_iter().map(Vec::into_iter).collect();
        let mut nodes = Vec::new();
        while let Some((key, values)) = by_rank[0].next() {
            let mut columns: Vec<Column<Vec<u64>>> =
                values.into_iter().map(|value| vec![vec![value]]).collect();
            for other in &mut by_rank[1..] {
                let (_, values) = other.next().expect("ranks of a shape have equal statements");
                for (column, value) in columns.iter_mut().zip(values) {
                    column[0].push(value);
                }
            }
            nodes.push(RepeatNode::Once { key, columns });
        }
        let mut body = String::new();
        self.nodes(&repeats::found(nodes), ranks, &mut Vec::new(), &mut body);
        if ranks.len() < self.schedule.nranks as usize {
            let ranks: Vec<_> = ranks.iter().map(ToString::to_string).collect();
            let plural = if ranks.len() == 1 { "Rank" } else { "Ranks" };
            let _ = writeln!(text, "// {plural} {}.", ranks.join(", "));
        }
        let me = if body.contains("[me]") { "    const u32 me = lane.Rank();\n" } else { "" };
        let _ = writeln!(
            text,
            "HcclResult {name}(Lane lane) {{\n{me}{body}    return HCCL_SUCCESS;\n}}\n"
        );
    }

    /// Prints nodes; `loops` are the repetitions of the enclosing loops.
    fn nodes(
        &mut self,
        nodes: &[RepeatNode<ContestKey, Vec<u64>>],
        ranks: &[RankId],
        loops: &mut Vec<usize>,
        text: &mut String,
    ) {
        let indent = "    ".repeat(loops.len() + 1);
        let mut line = None;
        for node in nodes {
            match node {
                RepeatNode::Loop { times, body } => {
                    let var = variable(loops.len());
                    let _ =
                        writeln!(text, "{indent}for (u32 {var} = 0; {var} < {times}; ++{var}) {{");
                    loops.push(*times);
                    self.nodes(body, ranks, loops, text);
                    loops.pop();
                    let _ = writeln!(text, "{indent}}}");
                    line = None;
                }
                RepeatNode::Once { key, columns } => {
                    if line != Some(key.line) {
                        line = Some(key.line);
                        if let Some(said) = self.said(key.line) {
                            let _ = writeln!(text, "{indent}// {said}");
                        }
                    }
                    let statement = self.statement(key, columns, ranks, loops);
                    let _ = writeln!(text, "{indent}CHK_RET(lane.{statement});");
                }
            }
        }
    }

    /// Returns a line of the source, with its number.
    pub(super) fn said(&self, line: u32) -> Option<String> {
        if line == 0 {
            return None;
        }
        let text = self.source.and_then(|source| source.line(line)).unwrap_or_default();
        // A comment that ends in a backslash would continue in the next line.
        let text = text.trim().trim_end_matches('\\');
        Some(format!("{line}: {text}").trim_end_matches([':', ' ']).to_owned())
    }

    fn statement(
        &mut self,
        key: &ContestKey,
        columns: &[Column<Vec<u64>>],
        ranks: &[RankId],
        loops: &[usize],
    ) -> String {
        let mut values = columns.iter();
        let mut next = |writer: &mut Self| {
            let column = values.next().expect("a statement has a column for each value");
            writer.value(column, ranks, loops)
        };
        match &key.what {
            MethodCall::Bare(method) => format!("{method}()"),
            MethodCall::Signal(method) => format!("{method}({})", next(self)),
            MethodCall::Move(method, places) => {
                let places: Vec<_> = places
                    .iter()
                    .map(|(buffer, remote)| {
                        let buffer = match buffer {
                            Buffer::Input => "INPUT".to_owned(),
                            Buffer::Output => "OUTPUT".to_owned(),
                            Buffer::Scratch(id) => format!("SCRATCH + {id}"),
                        };
                        if *remote {
                            let peer = next(self);
                            format!("lane.Of({peer}, {buffer}, {})", next(self))
                        } else {
                            format!("lane.Mine({buffer}, {})", next(self))
                        }
                    })
                    .collect();
                format!("{method}({})", places.join(", "))
            }
        }
    }

    /// Returns an expression for one value of a statement; it has an index for the round and for the rank only if the
    /// value depends on them.
    fn value(&mut self, column: &Column<Vec<u64>>, ranks: &[RankId], loops: &[usize]) -> String {
        let by_round = column.iter().any(|members| *members != column[0]);
        let by_rank = column.iter().any(|members| members.iter().any(|v| *v != members[0]));
        let piece = column[0][0].len() > 1;
        let one = |value: &Vec<u64>| {
            if piece { format!("{{{}}}", list(value)) } else { value[0].to_string() }
        };
        let row = |members: &Vec<Vec<u64>>| {
            let mut row = vec![
                if piece { "{}".to_owned() } else { "0".to_owned() };
                self.schedule.nranks as usize
            ];
            for (rank, value) in ranks.iter().zip(members) {
                row[rank.index()] = one(value);
            }
            format!("{{{}}}", row.join(", "))
        };
        let times = column.len();
        let (ty, prefix) = if piece { ("Piece", "PIECE") } else { ("u32", "PEER") };
        let nranks = self.schedule.nranks;
        let (sizes, content) = match (by_round, by_rank) {
            (false, false) if piece => return format!("Piece{}", one(&column[0][0])),
            (false, false) => return one(&column[0][0]),
            (false, true) => (format!("[{nranks}]"), row(&column[0])),
            (true, false) => {
                let rounds: Vec<_> = column.iter().map(|members| one(&members[0])).collect();
                (format!("[{times}]"), format!("{{{}}}", rounds.join(", ")))
            }
            (true, true) => {
                let rounds: Vec<_> = column.iter().map(row).collect();
                (format!("[{times}][{nranks}]"), format!("{{\n    {},\n}}", rounds.join(",\n    ")))
            }
        };
        let content = format!("{sizes} = {content};");
        let name = match self.named.get(&content) {
            Some(name) => name.clone(),
            None => {
                let name = format!("{prefix}_{}", self.tables.len());
                self.tables.push(format!("const {ty} {name}{content}"));
                self.named.insert(content, name.clone());
                name
            }
        };
        let round = if by_round { format!("[{}]", index(loops)) } else { String::new() };
        let rank = if by_rank { "[me]" } else { "" };
        format!("{name}{round}{rank}")
    }

    /// Returns the statements of a stream, one for each step of the copy engine.
    pub(super) fn statements(&self, stream: &Stream) -> Result<Vec<Statement>, Vec<Finding>> {
        let mut statements = Vec::new();
        for op in &self.schedule.ops[stream.first.index()..][..stream.len as usize] {
            let line = self.schedule.location(op.at).line;
            if op.kind != OpKind::Move {
                let (what, values) = signal(stream, op, self.schedule.channel(op));
                statements.push((ContestKey { line, what }, values));
                continue;
            }
            for (act, src, dst) in singles(self.schedule, stream.rank, op)? {
                let mut values = Vec::new();
                let places = [src, dst].map(|operand| {
                    let remote = operand.rank != stream.rank;
                    if remote {
                        values.push(vec![operand.rank.0.into()]);
                    }
                    values.push(self.piece(operand));
                    (self.schedule.region(operand).buffer, remote)
                });
                let method = if act == Act::Copy { "Copy" } else { "Reduce" };
                statements
                    .push((ContestKey { line, what: MethodCall::Move(method, places) }, values));
            }
        }
        Ok(statements)
    }

    /// Returns low end, high end, slot and base.
    fn piece(&self, operand: Operand) -> Vec<u64> {
        let region = self.schedule.region(operand);
        let [lo, hi, base] =
            [region.lo, region.hi, region.base].map(|end| end.num() * (self.pieces / end.den()));
        vec![lo, hi, region.slot.into(), base]
    }
}

fn signal(stream: &Stream, op: &Op, channel: &Channel) -> (MethodCall, Vec<Vec<u64>>) {
    let post = op.kind == OpKind::Post;
    // The lane of a fork or join is the index of the slave stream.
    let with = |method, number: u32| (MethodCall::Signal(method), vec![vec![number.into()]]);
    let peer = if post { channel.to.0 } else { channel.from.0 };
    match (channel.kind, post) {
        (SignalKind::Ack | SignalKind::Head, true) => with("TxAck", peer),
        (SignalKind::Ack | SignalKind::Head, false) => with("RxAck", peer),
        (SignalKind::Data | SignalKind::Tail, true) => with("TxDataSignal", peer),
        (SignalKind::Data | SignalKind::Tail, false) => with("RxDataSignal", peer),
        (SignalKind::Fork, true) => with("Fork", channel.lane.0),
        (SignalKind::Join, false) => with("Join", channel.lane.0),
        (SignalKind::Fork, false) => (MethodCall::Bare("Begin"), Vec::new()),
        (SignalKind::Join, true) => {
            debug_assert!(stream.index > 0, "the main stream has no parent");
            (MethodCall::Bare("End"), Vec::new())
        }
        (SignalKind::Local, _) => unreachable!("no program has a local signal"),
    }
}

fn list(values: &[u64]) -> String {
    // Pieces of input or output have slot and base 0; for these two numbers the text relies on the default.
    let shown = if values[2..].iter().all(|value| *value == 0) { &values[..2] } else { values };
    shown.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
