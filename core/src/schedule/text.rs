//! The text form of a schedule: one op a line, readable, and read back exactly.
//!
//! ```text
//! schedule RingAllReduce AllReduce nranks 2 root 0
//! file "ring.coll"
//! at 0 = 11:5..11:37
//! at 1 = 13:9..13:24
//! rank 0 stream 0
//!   copy 0.input[0..1] -> 0.output[0..1] @0
//!   post ack 0->1 @1
//!   wait ack 1->0 @2
//!   fold 0.output[1/2..1], 1.output[1/2..1] -> 0.output[1/2..1] @3
//! ```
//!
//! With a count for each block, a unit is one element, and `elements R input 5 at 0 output 12 at 0` gives the lengths of
//! a rank's buffers, and the places of both in its one buffer in place.
//!
//! `R.buffer[lo..hi]` is a region of rank R; `R.slots#2@1/4[1/4..1/2]` lies in slot 2 of a scratch buffer, whose data
//! began at 1/4 of its source buffer. `fold a, b -> c` is c = b op a. `at` lines give the places of statements in that
//! file, as line:column, numbered from 0; a statement without a line has no known place. After them, `at 7 = 2, 0, 5`
//! is the set of statements of an op that stands for several, as the optimizer makes it; the first statement is the one
//! to name. Tables are read in the order of first use, as the builder makes them.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use super::demands::Demands;
use super::interner::Interner;
use super::{Buffer, Channel, Op, OpKind, Operand, Region, Schedule, Scratch, SignalKind, Stream};
use crate::collective::Collective;
use crate::ids::{LaneId, OpId, RankId, RegionId, ScratchId, SpanId};
pub use crate::line::TextError;
use crate::line::{number, quote, unquote};
use crate::rational::Rat;
use crate::source::Location;

const KINDS: [(SignalKind, &str); 7] = [
    (SignalKind::Ack, "ack"),
    (SignalKind::Data, "data"),
    (SignalKind::Head, "head"),
    (SignalKind::Tail, "tail"),
    (SignalKind::Fork, "fork"),
    (SignalKind::Join, "join"),
    (SignalKind::Local, "local"),
];

/// Prints the schedule as text.
pub fn print(schedule: &Schedule) -> String {
    let mut out = String::new();
    write(schedule, &mut out).expect("a string grows");
    out
}

fn write(schedule: &Schedule, out: &mut String) -> fmt::Result {
    let Schedule { algorithm, collective, nranks, root, .. } = schedule;
    let mark = if schedule.out_of_place { " out_of_place" } else { "" };
    let multiple = match schedule.multiple {
        1 => String::new(),
        multiple => format!(" multiple {multiple}"),
    };
    writeln!(out, "schedule {algorithm} {collective} nranks {nranks} root {root}{multiple}{mark}")?;
    for Scratch { name, slots, width, wide } in &schedule.scratch {
        let wide = if *wide { " wide" } else { "" };
        writeln!(out, "scratch {name} slots {slots} width {width}{wide}")?;
    }
    if let Some(lengths) = &schedule.elements {
        for (rank, (from, to)) in lengths.in_place.iter().enumerate() {
            let (input, output) = (lengths.input[rank], lengths.output[rank]);
            writeln!(out, "elements {rank} input {input} at {from} output {output} at {to}")?;
        }
    }
    if !schedule.file.is_empty() {
        writeln!(out, "file {}", quote(&schedule.file))?;
    }
    for (id, place) in schedule.locations.iter().enumerate() {
        writeln!(out, "at {id} = {}", location_text(*place))?;
    }
    for (id, set) in (schedule.locations.len()..).zip(&schedule.origins) {
        let all: Vec<String> = set.iter().map(SpanId::to_string).collect();
        writeln!(out, "at {id} = {}", all.join(", "))?;
    }
    for stream in &schedule.streams {
        writeln!(out, "rank {} stream {}", stream.rank, stream.index)?;
        for op in &schedule.ops[stream.first.index()..][..stream.len as usize] {
            writeln!(out, "  {} @{}", self::op(schedule, op), op.at)?;
        }
    }
    Ok(())
}

/// Returns the word for a kind of signal.
pub fn signal_name(kind: SignalKind) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == kind).map_or("", |(_, name)| name)
}

/// Returns the name of a signal as the author writes it, or a description for a signal of a fifo or a stream.
pub fn signal_word(kind: SignalKind) -> &'static str {
    match kind {
        SignalKind::Ack => "TxAck",
        SignalKind::Data => "TxDataSignal",
        SignalKind::Head => "credit",
        SignalKind::Tail => "data in the fifo",
        SignalKind::Fork => "fork",
        SignalKind::Join => "join",
        SignalKind::Local => "word between streams",
    }
}

/// Returns the kind of signal for a word.
pub fn signal_kind(name: &str) -> Result<SignalKind, String> {
    let kind = KINDS.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind);
    kind.ok_or_else(|| format!("no signal is called `{name}`"))
}

pub(crate) fn location_text(place: Location) -> String {
    let Location { line, column, end_line, end_column } = place;
    format!("{line}:{column}..{end_line}:{end_column}")
}

/// Returns an op as a line of the text form writes it, without its statement.
pub fn op(schedule: &Schedule, op: &Op) -> String {
    if op.kind == OpKind::Move {
        let list = |operands: &[Operand]| {
            let all: Vec<_> = operands.iter().map(|o| operand(schedule, *o)).collect();
            all.join(", ")
        };
        let (srcs, dsts) = (list(schedule.srcs(op)), list(schedule.dsts(op)));
        let name = match op.srcs {
            _ if op.switch => "switch",
            1 => "copy",
            _ if op.chain => "chain",
            _ => "fold",
        };
        let finish = if op.finish { " finish" } else { "" };
        return format!("{name} {srcs} -> {dsts}{finish}");
    }
    let name = if op.kind == OpKind::Post { "post" } else { "wait" };
    let Channel { from, to, kind, lane } = *schedule.channel(op);
    let kind_name = signal_name(kind);
    let place = match kind {
        SignalKind::Fork | SignalKind::Join => format!(" stream {lane}"),
        _ if schedule.lanes[lane.index()].is_empty() => String::new(),
        _ => {
            let values: Vec<_> =
                schedule.lanes[lane.index()].iter().map(ToString::to_string).collect();
            format!(" lane {}", values.join(","))
        }
    };
    format!("{name} {kind_name} {from}->{to}{place}")
}

/// Returns an operand as a line of the text form writes it.
pub fn operand(schedule: &Schedule, operand: Operand) -> String {
    let Region { buffer, slot, base, lo, hi } = *schedule.region(operand);
    let name = schedule.buffer_name(buffer);
    let slot = match buffer {
        Buffer::Scratch(_) => format!("#{slot}@{base}"),
        _ => String::new(),
    };
    format!("{}.{name}{slot}[{lo}..{hi}]", operand.rank)
}

/// Reads a text that [`print()`] wrote.
pub fn parse(text: &str) -> Result<Schedule, TextError> {
    let mut reader = ScheduleReader::default();
    for (index, line) in text.lines().enumerate() {
        let done = reader.line(line.trim());
        done.map_err(|reason| TextError { line: index + 1, reason })?;
    }
    let missing =
        || TextError { line: 1, reason: "expected `schedule NAME COLLECTIVE …`".into() };
    let mut schedule = reader.schedule.ok_or_else(missing)?;
    let ranks = schedule.elements.as_ref().map(|lengths| lengths.input.len());
    if ranks.is_some_and(|ranks| ranks != schedule.nranks as usize) {
        let reason = "expected a line `elements` for each rank, or none".into();
        return Err(TextError { line: 1, reason });
    }
    schedule.regions = reader.regions.items;
    schedule.channels = reader.channels.items;
    schedule.lanes = reader.lanes.items;
    Ok(schedule)
}

struct ScheduleReader {
    schedule: Option<Schedule>,
    regions: Interner<Region>,
    channels: Interner<Channel>,
    lanes: Interner<Vec<i64>>,
}

impl Default for ScheduleReader {
    fn default() -> Self {
        let mut lanes = Interner::default();
        lanes.intern(Vec::new());
        Self { schedule: None, regions: Interner::default(), channels: Interner::default(), lanes }
    }
}

fn split<'a>(text: &'a str, at: &str) -> Result<(&'a str, &'a str), String> {
    let (left, right) =
        text.split_once(at).ok_or_else(|| format!("expected `{at}` in `{text}`"))?;
    Ok((left.trim(), right.trim()))
}

impl ScheduleReader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        if word.is_empty() {
            return Ok(());
        }
        if word == "schedule" {
            if self.schedule.is_some() {
                return Err("a second schedule begins here".into());
            }
            self.schedule = Some(header(rest)?);
            return Ok(());
        }
        let Some(schedule) = &mut self.schedule else {
            return Err("expected `schedule NAME COLLECTIVE …` first".into());
        };
        match word {
            "scratch" => {
                let (name, rest) = split(rest, " slots ")?;
                let (slots, width) = split(rest, " width ")?;
                let (width, wide) = match width.strip_suffix(" wide") {
                    Some(width) => (width, true),
                    None => (width, false),
                };
                let (name, slots, width) = (name.into(), number(slots)?, rational(width)?);
                schedule.scratch.push(Scratch { name, slots, width, wide });
            }
            "elements" => {
                let words: Vec<&str> = rest.split_whitespace().collect();
                let [rank, "input", input, "at", from, "output", output, "at", to] = words[..]
                else {
                    return Err("expected `elements R input N at N output N at N`".into());
                };
                let lengths = schedule.elements.get_or_insert_default();
                let lengths = Arc::make_mut(lengths);
                if number::<usize>(rank)? != lengths.input.len() {
                    return Err(format!("expected `elements {}`", lengths.input.len()));
                }
                lengths.input.push(number(input)?);
                lengths.output.push(number(output)?);
                lengths.in_place.push((number(from)?, number(to)?));
            }
            "file" => schedule.file = unquote(rest)?.into(),
            "at" => {
                let (id, place) = split(rest, "=")?;
                let next = schedule.locations.len() + schedule.origins.len();
                if number::<usize>(id)? != next {
                    return Err(format!("expected `at {next}`, found `at {id}`"));
                }
                if place.contains("..") && schedule.origins.is_empty() {
                    schedule.locations.push(location(place)?);
                } else {
                    schedule.origins.push(several(place, schedule.locations.len())?);
                }
            }
            "rank" => {
                let (rank, index) = split(rest, " stream ")?;
                let first = OpId(schedule.ops.len() as u32);
                let stream =
                    Stream { rank: RankId(number(rank)?), index: number(index)?, first, len: 0 };
                schedule.streams.push(stream);
            }
            "copy" | "fold" | "chain" | "switch" | "post" | "wait" => {
                let (rest, at) = rest.rsplit_once('@').ok_or("expected `@STATEMENT` at the end")?;
                let at = SpanId(number(at.trim())?);
                let op = match word {
                    "post" => self.signal(OpKind::Post, rest, at)?,
                    "wait" => self.signal(OpKind::Wait, rest, at)?,
                    _ => self.data(word, rest, at)?,
                };
                let schedule = self.schedule.as_mut().ok_or("no schedule")?;
                let stream =
                    schedule.streams.last_mut().ok_or("expected `rank R stream S` first")?;
                stream.len += 1;
                schedule.ops.push(op);
            }
            other => return Err(format!("no line begins with `{other}`")),
        }
        Ok(())
    }

    fn signal(&mut self, kind: OpKind, text: &str, at: SpanId) -> Result<Op, String> {
        let mut words = text.split_whitespace();
        let name = words.next().ok_or("expected a kind of signal")?;
        let signal = signal_kind(name)?;
        let (from, to) = split(words.next().unwrap_or(""), "->")?;
        let lane = match words.collect::<Vec<_>>()[..] {
            [] => LaneId(0),
            ["stream", stream] => LaneId(number(stream)?),
            ["lane", values] => {
                let values = values.split(',').map(number).collect::<Result<Vec<i64>, _>>()?;
                LaneId(self.lanes.intern(values))
            }
            _ => return Err("expected `lane V,V` or `stream S`".into()),
        };
        let (from, to) = (RankId(number(from)?), RankId(number(to)?));
        let arg = self.channels.intern(Channel { from, to, kind: signal, lane });
        Ok(Op::new(kind, at, arg))
    }

    fn data(&mut self, word: &str, text: &str, at: SpanId) -> Result<Op, String> {
        let text = text.trim();
        let (text, finish) = match text.strip_suffix(" finish") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let (srcs, dsts) = split(text, "->")?;
        let srcs = srcs.split(", ").map(|o| self.operand(o)).collect::<Result<Vec<_>, _>>()?;
        let dsts = dsts.split(", ").map(|o| self.operand(o)).collect::<Result<Vec<_>, _>>()?;
        let switch = word == "switch";
        if !switch && (word == "copy") != (srcs.len() == 1) {
            return Err(format!("a `{word}` of {} sources", srcs.len()));
        }
        let count = |operands: &[Operand]| {
            u8::try_from(operands.len()).map_err(|_| "too many operands".to_owned())
        };
        let schedule = self.schedule.as_mut().ok_or("no schedule")?;
        let arg = schedule.operands.len() as u32;
        let (chain, kind) = (word == "chain", OpKind::Move);
        let (of, to) = (count(&srcs)?, count(&dsts)?);
        let op = Op { kind, srcs: of, dsts: to, finish, chain, switch, at, arg };
        schedule.operands.extend(srcs);
        schedule.operands.extend(dsts);
        Ok(op)
    }

    fn operand(&mut self, text: &str) -> Result<Operand, String> {
        let (rank, rest) = split(text, ".")?;
        let (name, interval) = split(rest, "[")?;
        let interval = interval.strip_suffix(']').ok_or("expected `]` after a region")?;
        let (lo, hi) = split(interval, "..")?;
        let (name, slot, base) = match name.split_once('#') {
            Some((name, slot)) => {
                let (slot, base) = split(slot, "@")?;
                (name, number(slot)?, rational(base)?)
            }
            None => (name, 0, Rat::ZERO),
        };
        let schedule = self.schedule.as_ref().ok_or("no schedule")?;
        let buffer = match name {
            "input" => Buffer::Input,
            "output" => Buffer::Output,
            _ => {
                let id = schedule.scratch.iter().position(|s| s.name == name);
                let id = id.ok_or_else(|| format!("no buffer is called `{name}`"))?;
                Buffer::Scratch(ScratchId(id as u32))
            }
        };
        let region = Region { buffer, slot, base, lo: rational(lo)?, hi: rational(hi)? };
        let region = RegionId(self.regions.intern(region));
        Ok(Operand { rank: RankId(number(rank)?), region })
    }
}

fn rational(text: &str) -> Result<Rat, String> {
    text.parse().map_err(|()| format!("expected a fraction, found `{text}`"))
}

pub(crate) fn location(text: &str) -> Result<Location, String> {
    let (start, end) = split(text, "..")?;
    let ((line, column), (end_line, end_column)) = (split(start, ":")?, split(end, ":")?);
    Ok(Location {
        line: number(line)?,
        column: number(column)?,
        end_line: number(end_line)?,
        end_column: number(end_column)?,
    })
}

/// Reads the numbers of two or more of `statements` statements.
fn several(text: &str, statements: usize) -> Result<Box<[SpanId]>, String> {
    let one = |text: &str| {
        let at = SpanId(number(text)?);
        if at.index() < statements { Ok(at) } else { Err(format!("there is no statement {at}")) }
    };
    let all: Box<[SpanId]> = text.split(", ").map(one).collect::<Result<_, String>>()?;
    if all.len() < 2 {
        return Err(format!("expected a place as `LINE:COLUMN..LINE:COLUMN`, found `{text}`"));
    }
    Ok(all)
}

fn header(text: &str) -> Result<Schedule, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let expected = || Err("expected `schedule NAME COLLECTIVE nranks N root R`".into());
    let [name, collective, "nranks", nranks, "root", root, ref marks @ ..] = words[..] else {
        return expected();
    };
    let (multiple, mark) = match *marks {
        [] => ("1", false),
        ["out_of_place"] => ("1", true),
        ["multiple", multiple] => (multiple, false),
        ["multiple", multiple, "out_of_place"] => (multiple, true),
        _ => return expected(),
    };
    let collective = Collective::from_name(collective)
        .ok_or_else(|| format!("no collective is called `{collective}`"))?;
    Ok(Schedule {
        elements: None,
        algorithm: name.into(),
        collective,
        nranks: number(nranks)?,
        root: RankId(number(root)?),
        out_of_place: mark,
        multiple: number(multiple)?,
        scratch: Vec::new(),
        streams: Vec::new(),
        ops: Vec::new(),
        operands: Vec::new(),
        regions: Vec::new(),
        channels: Vec::new(),
        lanes: Vec::new(),
        locations: Vec::new(),
        origins: Vec::new(),
        file: "".into(),
        demands: Demands::default(),
    })
}
