//! The report of a failed proof: rank, step, region and source line of every place that matters, the missing edge of
//! the order, and a correction.

mod demands;
mod index;
mod memory_faults;
mod results;
mod signal_faults;

use std::cell::OnceCell;
use std::fmt::Write as _;

use index::Index;

use super::piece::{named_op, piece_text};
use super::ranks::RankOp;
use super::signals::Signals;
use crate::diagnostics::{self, Finding, NamedOp};
use crate::ids::{OpId, RankId, SpanId};
use crate::schedule::{OpKind, Operand, Region, Schedule, SignalKind};
use crate::units::plural;

/// The most ranks listed before `…`.
const LISTED: usize = 8;

/// The kind of access of an op to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The op reads.
    Read,
    /// The op writes; where it folds into memory, it reads the memory too.
    Write,
}

impl Access {
    /// Returns the verb of the access in messages: `reads` or `writes`.
    pub const fn verb(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
        }
    }
}

/// The report of findings of a schedule.
pub(crate) struct Reporter<'s> {
    schedule: &'s Schedule,
    signals: Signals,
    index: OnceCell<Index>,
}

impl<'s> Reporter<'s> {
    pub(crate) fn new(schedule: &'s Schedule) -> Self {
        Self { schedule, signals: Signals::default(), index: OnceCell::new() }
    }

    /// Returns the reporter for a runtime with the given signals.
    pub(super) fn with(self, signals: Signals) -> Self {
        Self { signals, ..self }
    }

    fn index(&self) -> &Index {
        self.index.get_or_init(|| Index::new(self.schedule))
    }

    fn at(&self, op: OpId) -> SpanId {
        self.schedule.op(op).at
    }

    fn rank(&self, op: OpId) -> RankId {
        self.schedule.streams[self.schedule.stream_of(op).index()].rank
    }

    /// Returns the place of an op, such as `rank 2 (stream 1), step 3, line 12`: a step is counted in moves of the
    /// stream.
    pub(in crate::verify) fn place(&self, op: OpId) -> String {
        self.place_of(self.op_of(op))
    }

    /// Returns an op of the rank of its stream.
    fn op_of(&self, op: OpId) -> RankOp {
        RankOp { op, rank: self.rank(op) }
    }

    fn place_of(&self, op: RankOp) -> String {
        let (lane, step) = self.step_of(op);
        format!("{lane}, step {step}, line {}", self.line(op.op))
    }

    /// Adds the ops that the notes name by their places, in the order of the notes.
    pub(in crate::verify) fn naming(
        &self,
        mut finding: Finding,
        ops: impl IntoIterator<Item = OpId>,
    ) -> Finding {
        finding.ops.extend(ops.into_iter().map(|op| self.named(op, self.place(op))));
        finding
    }

    /// Returns an op of a rank, by its place.
    fn named_op_of(&self, op: RankOp) -> NamedOp {
        NamedOp { rank: op.rank, ..self.named(op.op, self.place_of(op)) }
    }

    /// Returns an op that notes name in these words.
    fn named(&self, op: OpId, name: String) -> NamedOp {
        named_op(self.schedule, op, name)
    }

    fn line(&self, op: OpId) -> u32 {
        self.schedule.location(self.at(op)).line
    }

    /// Returns the rank and stream of an op, and its step.
    pub(in crate::verify) fn step(&self, op: OpId) -> (String, usize) {
        self.step_of(self.op_of(op))
    }

    fn step_of(&self, RankOp { op, rank }: RankOp) -> (String, usize) {
        let stream = self.schedule.streams[self.schedule.stream_of(op).index()];
        let step = (self.index().moves(op) - self.index().moves(stream.first)) as usize;
        let lane =
            if stream.index == 0 { String::new() } else { format!(" (stream {})", stream.index) };
        (format!("rank {rank}{lane}"), step)
    }

    /// Returns the signal of an op, such as `RxAck from rank 3`.
    fn signal(&self, op: OpId) -> String {
        let op = self.schedule.op(op);
        let channel = self.schedule.channel(op);
        let lane = match self.schedule.lanes.get(channel.lane.index()) {
            Some(lane) if !lane.is_empty() && channel.from != channel.to => {
                let values: Vec<_> = lane.iter().map(ToString::to_string).collect();
                format!(" in lane {}", values.join(", "))
            }
            _ => String::new(),
        };
        let name = match (op.kind, channel.kind) {
            (OpKind::Post, SignalKind::Ack) => "TxAck",
            (OpKind::Post, SignalKind::Data) => "TxDataSignal",
            (_, SignalKind::Ack) => "RxAck",
            (_, SignalKind::Data) => "RxDataSignal",
            (OpKind::Post, SignalKind::Head) => {
                return format!("a free slot of the fifo to rank {}{lane}", channel.to);
            }
            (_, SignalKind::Head) => {
                return format!("a free slot of the fifo to rank {}{lane}", channel.from);
            }
            (OpKind::Post, SignalKind::Tail) => {
                return format!("data in the fifo to rank {}{lane}", channel.to);
            }
            (_, SignalKind::Tail) => {
                return format!("data in the fifo from rank {}{lane}", channel.from);
            }
            (OpKind::Post, SignalKind::Fork) => return format!("fork of stream {}", channel.lane),
            (OpKind::Post, SignalKind::Join) => return format!("join of stream {}", channel.lane),
            (_, SignalKind::Local) => {
                let streams = self.schedule.lanes.get(channel.lane.index());
                let [from, to] = streams.map_or([0, 0], |lane| match lane[..] {
                    [from, to] => [from, to],
                    _ => [0, 0],
                });
                return match op.kind {
                    OpKind::Post => format!("the word of stream {from} to stream {to}"),
                    _ => format!("the word of stream {from}"),
                };
            }
            (_, SignalKind::Fork) => return "start of the parallel block".to_owned(),
            (_, SignalKind::Join) => return format!("end of stream {}", channel.lane),
        };
        match op.kind {
            OpKind::Post => format!("{name} to rank {}{lane}", channel.to),
            _ => format!("{name} from rank {}{lane}", channel.from),
        }
    }

    /// Returns a rank's region, such as `rank 3 output[1/4..2/4]`.
    fn region(&self, rank: RankId, region: &Region) -> String {
        format!("rank {rank} {}", piece_text(self.schedule, region))
    }

    /// Adds how the author wrote `operand`: the operand of the op that is it or overlaps it.
    fn as_written(&self, mut finding: Finding, op: OpId, operand: Operand) -> Finding {
        let this = self.schedule.op(op);
        let region = self.schedule.region(operand);
        let all = self.schedule.srcs(this).iter().chain(self.schedule.dsts(this));
        let all: Vec<&Operand> = all.collect();
        let exact = all.iter().position(|other| **other == operand);
        let index = exact.or_else(|| {
            all.iter().position(|other| {
                let there = self.schedule.region(**other);
                let same = (there.buffer, there.slot) == (region.buffer, region.slot);
                other.rank == operand.rank && same && there.lo < region.hi && region.lo < there.hi
            })
        });
        finding.operands.extend(index.map(|index| diagnostics::Operand {
            region: self.operand(operand),
            at: this.at,
            index,
            of: all.len(),
            part: self.schedule.region(*all[index]) != region,
        }));
        finding
    }

    fn operand(&self, operand: Operand) -> String {
        self.region(operand.rank, self.schedule.region(operand))
    }
}

/// Returns the text after the word "rank": `s 0, 1, 2 and 5 more`, or ` 3`.
fn ranks(ranks: &[RankId]) -> String {
    let shown: Vec<_> = ranks.iter().take(LISTED).map(ToString::to_string).collect();
    let plural = plural(ranks.len());
    let more = match ranks.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{plural} {}{more}", shown.join(", "))
}

/// Returns a title and a line for each of `lines`, as one note; of many lines only the first few.
fn table(title: &str, lines: &[String]) -> String {
    let mut text = format!("{title}:");
    for line in lines.iter().take(LISTED) {
        text.push_str("\n  ");
        text.push_str(line);
    }
    if lines.len() > LISTED {
        let _ = write!(text, "\n  … and {} more", lines.len() - LISTED);
    }
    text
}
