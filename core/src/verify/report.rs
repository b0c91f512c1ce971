//! What the proof says when it fails: rank, step, region and source line of every place that matters, the
//! ordering edge that is missing, and what would be right.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::values::{Leaf, ValueId, Values};
use crate::collective::Expected;
use crate::diagnostics::{Code, Finding};
use crate::ids::{OpId, RankId, SpanId};
use crate::schedule::legality::Illegal;
use crate::schedule::rational::Rat;
use crate::schedule::{Buffer, OpKind, Operand, Region, Schedule, SignalKind};

/// Ranks listed before `…`.
const LISTED: usize = 8;

/// How an op touches memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

impl Access {
    const fn verb(self) -> &'static str {
        match self {
            Self::Read => "reads",
            Self::Write => "writes",
        }
    }
}

pub(super) struct Reporter<'s> {
    schedule: &'s Schedule,
}

impl<'s> Reporter<'s> {
    pub(super) fn new(schedule: &'s Schedule) -> Self {
        Self { schedule }
    }

    fn at(&self, op: OpId) -> SpanId {
        self.schedule.op(op).at
    }

    fn rank(&self, op: OpId) -> RankId {
        self.schedule.streams[self.schedule.stream_of(op).index()].rank
    }

    /// `rank 2 (stream 1), step 3, line 12`: a step is counted in moves of the stream.
    pub(super) fn place(&self, op: OpId) -> String {
        let line = self.schedule.location(self.at(op)).line;
        let (lane, step) = self.step(op);
        format!("{lane}, step {step}, line {line}")
    }

    /// The rank and stream of an op, and its step.
    pub(super) fn step(&self, op: OpId) -> (String, usize) {
        let stream = self.schedule.streams[self.schedule.stream_of(op).index()];
        let before = &self.schedule.ops[stream.first.index()..op.index()];
        let step = before.iter().filter(|op| op.kind == OpKind::Move).count();
        let lane =
            if stream.index == 0 { String::new() } else { format!(" (stream {})", stream.index) };
        (format!("rank {}{lane}", stream.rank), step)
    }

    /// `RxAck from rank 3`
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
            (OpKind::Post, SignalKind::Fork) => return format!("fork of stream {}", channel.lane),
            (OpKind::Post, SignalKind::Join) => return format!("join of stream {}", channel.lane),
            (_, SignalKind::Fork) => return "start of the parallel block".to_owned(),
            (_, SignalKind::Join) => return format!("end of stream {}", channel.lane),
        };
        match op.kind {
            OpKind::Post => format!("{name} to rank {}{lane}", channel.to),
            _ => format!("{name} from rank {}{lane}", channel.from),
        }
    }

    /// `rank 3 output[1/4..2/4]`
    fn region(&self, rank: RankId, region: &Region) -> String {
        let slot = match region.buffer {
            Buffer::Scratch(id) if self.schedule.scratch[id.index()].slots > 1 => {
                format!(" slot {}", region.slot)
            }
            _ => String::new(),
        };
        let name = self.schedule.buffer_name(region.buffer);
        let (lo, hi) = common(region.lo, region.hi);
        format!("rank {rank} {name}{slot}[{lo}..{hi}]")
    }

    fn operand(&self, operand: Operand) -> String {
        self.region(operand.rank, self.schedule.region(operand))
    }

    // ---- signals ----------------------------------------------------------------------------

    pub(super) fn deadlock(&self, cycle: &[OpId], stuck: usize) -> Finding {
        let ranks: Vec<_> = cycle.iter().map(|op| self.rank(*op).to_string()).collect();
        let mut finding = Finding::new(
            Code::Deadlock,
            self.at(cycle[0]),
            format!("deadlock: ranks {} wait for each other in a cycle", ranks.join(", ")),
        )
        .label(format!("rank {} never gets past this wait", ranks[0]));
        for (i, op) in cycle.iter().enumerate() {
            let next = self.rank(cycle[(i + 1) % cycle.len()]);
            finding = finding.note(format!(
                "{}: waits for {}, which rank {next} posts only after its own wait",
                self.place(*op),
                self.signal(*op)
            ));
        }
        if stuck > cycle.len() {
            finding =
                finding.note(format!("{} streams wait behind this cycle", stuck - cycle.len()));
        }
        finding.help(
            "post before you wait: on every rank, the signal that the peer waits for comes first",
        )
    }

    pub(super) fn unmatched_wait(&self, op: OpId) -> Finding {
        let channel = self.schedule.channel(self.schedule.op(op));
        let post = match channel.kind {
            SignalKind::Ack => "TxAck",
            _ => "TxDataSignal",
        };
        Finding::new(
            Code::UnmatchedWait,
            self.at(op),
            format!("rank {} waits for {} that is never posted", channel.to, self.signal(op)),
        )
        .label("waits for ever")
        .note(self.place(op))
        .help(format!(
            "rank {} must post one `{post}` to rank {} for each wait",
            channel.from, channel.to
        ))
    }

    /// `in all: 2 posts at line 17, 4 waits at lines 11 and 18`.
    pub(super) fn tally(&self, channel: u32) -> String {
        let ends = [(OpKind::Post, "post"), (OpKind::Wait, "wait")].map(|(kind, name)| {
            let ops = self.schedule.ops.iter().filter(|op| op.kind == kind && op.arg == channel);
            let all: Vec<u32> = ops.map(|op| self.schedule.location(op.at).line).collect();
            let lines: BTreeSet<u32> = all.iter().copied().collect();
            let lines: Vec<_> = lines.iter().take(LISTED).map(ToString::to_string).collect();
            let n = all.len();
            let plural = |n: usize| if n == 1 { "" } else { "s" };
            let at = match lines.len() {
                0 => String::new(),
                m => format!(" at line{} {}", plural(m), lines.join(" and ")),
            };
            format!("{n} {name}{}{at}", plural(n))
        });
        format!("between these two ranks: {}", ends.join(", "))
    }

    pub(super) fn left_over(&self, op: OpId) -> Finding {
        let channel = self.schedule.channel(self.schedule.op(op));
        let wait = match channel.kind {
            SignalKind::Ack => "RxAck",
            _ => "RxDataSignal",
        };
        Finding::new(
            Code::LeftOverSignal,
            self.at(op),
            format!("rank {} posts {} that nobody waits for", channel.from, self.signal(op)),
        )
        .label("left over at the end of the run")
        .note(self.place(op))
        .note("the next run would take it for its own, and run ahead of its peer")
        .help(format!("rank {} must wait for it: `{wait}` from rank {}", channel.to, channel.from))
    }

    pub(super) fn shared_signal(&self, first: OpId, second: OpId) -> Finding {
        let mut finding = Finding::new(
            Code::SharedSignal,
            self.at(second),
            format!("two streams of rank {} share {}", self.rank(second), self.signal(second)),
        )
        .label("this stream and another are not ordered")
        .note(format!("one at {}, one at {}", self.place(first), self.place(second)))
        .note("which of them meets which signal would depend on time")
        .help("let the streams differ in the values of their `parallel` variables: those name the lane");
        finding.others.push((self.at(first), "and this one".to_owned()));
        finding
    }

    /// A broken rule under the code that the builder would give it.
    pub(super) fn illegal(&self, illegal: &Illegal) -> Finding {
        let code = match illegal.rule {
            "input" => Code::InputWritten,
            "local" => Code::NoLocalOperand,
            "lengths" => Code::LengthMismatch,
            "overlap" => Code::RepeatedDestination,
            "signal ends" => Code::SelfSignal,
            _ => Code::OutOfBounds,
        };
        let title = format!("this breaks the rule `{}`: {}", illegal.rule, illegal.demands);
        let Some(at) = illegal.at else { return Finding::new(code, SpanId(0), title) };
        let finding =
            Finding::new(code, self.at(at), title).label("broken here").note(self.place(at));
        if illegal.rule != "bounds" && code == Code::OutOfBounds {
            return finding;
        }
        let op = self.schedule.op(at);
        let operands = self.schedule.srcs(op).iter().chain(self.schedule.dsts(op));
        let names: Vec<_> = operands.map(|operand| self.operand(*operand)).collect();
        finding.note(format!("its operands are {}", names.join(", ")))
    }

    // ---- memory -----------------------------------------------------------------------------

    pub(super) fn uninitialised(&self, at: OpId, operand: Operand) -> Finding {
        let mut finding = Finding::new(
            Code::UninitialisedRead,
            self.at(at),
            format!("{} is read, and nothing was written to it", self.operand(operand)),
        )
        .label("reads garbage")
        .note(self.place(at));
        if self.schedule.region(operand).buffer == Buffer::Output {
            finding =
                finding.help("an output begins undefined: `copy(local.input, local.output)` first");
        }
        finding
    }

    pub(super) fn slot_length(
        &self,
        at: OpId,
        operand: Operand,
        held: Option<(Rat, Rat)>,
    ) -> Finding {
        let held = held.map_or("nothing".to_owned(), |(lo, hi)| {
            let (lo, hi) = common(lo, hi);
            format!("[{lo}..{hi}]")
        });
        Finding::new(
            Code::SlotLength,
            self.at(at),
            format!("{} is not what the slot holds", self.operand(operand)),
        )
        .label("read with another length than was written")
        .note(format!("the slot holds {held} of the buffer its data came from"))
        .note(self.place(at))
        .help("read a slot into the same piece that was written to it")
    }

    pub(super) fn race(
        &self,
        (first, first_access): (OpId, Access),
        (second, access): (OpId, Access),
        operand: Operand,
        across: bool,
    ) -> Finding {
        let (a, b) = (self.rank(first), self.rank(second));
        let region = self.operand(operand);
        let (code, when) =
            if across { (Code::ScratchRace, " of the run before") } else { (Code::Race, "") };
        let title = format!(
            "race on {region}: rank {b} {} it while rank {a}{when} {} it",
            access.verb(),
            first_access.verb()
        );
        let mut finding = Finding::new(code, self.at(second), title)
            .label(format!("rank {b} {} here", access.verb()))
            .note(format!("{} and {} are not ordered", self.place(first), self.place(second)));
        finding
            .others
            .push((self.at(first), format!("rank {a}{when} {} here", first_access.verb())));
        if a == b && !across {
            return finding.help("streams of one rank run at once: give them disjoint regions");
        }
        finding
            .note(format!(
                "the missing edge: a signal from rank {a} after its op to rank {b} before its op{}",
                if across { " in the next run" } else { "" }
            ))
            .help(format!(
                "let rank {a} post to rank {b} after the one, and rank {b} wait for it before the other"
            ))
    }

    pub(super) fn before_enter(&self, at: OpId, operand: Operand, access: Access) -> Finding {
        let (me, owner) = (self.rank(at), operand.rank);
        Finding::new(
            Code::RaceWithCaller,
            self.at(at),
            format!(
                "rank {me} {} {} before rank {owner} has entered the collective",
                access.verb(),
                self.operand(operand)
            ),
        )
        .label(format!("rank {owner}'s caller may still be writing this buffer"))
        .note(self.place(at))
        .note(format!("the missing edge: a signal from rank {owner} to rank {me} before this op"))
        .help(format!(
            "let rank {owner} post `TxAck` to rank {me}, and rank {me} wait for it (`RxAck`)"
        ))
    }

    pub(super) fn after_exit(
        &self,
        op: OpId,
        access: Access,
        owner: RankId,
        buffer: Buffer,
    ) -> Finding {
        let me = self.rank(op);
        let this = self.schedule.op(op);
        let operands = self.schedule.srcs(this).iter().chain(self.schedule.dsts(this));
        let region = operands
            .filter(|o| o.rank == owner)
            .find(|o| !matches!(self.schedule.region(**o).buffer, Buffer::Scratch(_)))
            .map_or_else(
                || format!("rank {owner} {}", self.schedule.buffer_name(buffer)),
                |o| self.operand(*o),
            );
        Finding::new(
            Code::RaceWithCaller,
            self.at(op),
            format!("rank {owner} may return while rank {me} still {} {region}", access.verb()),
        )
        .label(format!("rank {owner}'s caller may overwrite the block while this runs"))
        .note(self.place(op))
        .note("inside one run this is clean; it goes wrong when the caller reuses its buffer at once")
        .note(format!("the missing edge: a signal from rank {me} after this op to rank {owner} before it returns"))
        .help(format!(
            "let rank {me} post `TxDataSignal` to rank {owner}, and rank {owner} wait for it (`RxDataSignal`)"
        ))
    }

    pub(super) fn too_fine(per_unit: u32) -> Finding {
        Finding::new(
            Code::StepLimit,
            SpanId(0),
            format!("a unit is cut at {per_unit} places, more than a proof can hold"),
        )
        .help("use fewer, larger pieces")
    }

    pub(super) fn too_many_streams(&self) -> Finding {
        let streams = self.schedule.streams.len();
        Finding::new(
            Code::StepLimit,
            SpanId(0),
            format!("{streams} streams know more of each other than a proof can hold"),
        )
        .note("it keeps for each stream how far it has heard of every other")
        .help("use fewer ranks, or fewer streams a rank")
    }

    // ---- results ----------------------------------------------------------------------------

    /// `expected` comes with the cell within its unit and the number of cells of a unit.
    pub(super) fn wrong_result(
        &self,
        rank: RankId,
        region: &Region,
        (expected, cell, per_unit): (Expected, u32, u32),
        (value, writer): (ValueId, Option<OpId>),
        values: &Values,
    ) -> Finding {
        let name = self.region(rank, region);
        let Some(writer) = writer.filter(|_| value.is_value()) else {
            let wants = match expected {
                Expected::Reduced { .. } => "the reduction of all ranks".to_owned(),
                Expected::Copied { rank, .. } => format!("rank {rank}'s input"),
            };
            // In place, what nobody wrote still holds the input.
            let title = if value.is_value() {
                format!("{name} still holds this rank's input, not {wants}")
            } else {
                format!("{name} is never written")
            };
            return Finding::new(Code::WrongResult, SpanId(0), title)
                .label("in this algorithm")
                .note(format!("at the end it must hold {wants}"));
        };
        let got = values.contributions(value);
        let (wanted, from) = match expected {
            Expected::Reduced { unit } => {
                ((0..self.schedule.nranks).map(RankId).collect(), unit * per_unit + cell)
            }
            Expected::Copied { rank, unit } => (vec![rank], unit * per_unit + cell),
        };
        let times = |rank: RankId| got.get(&Leaf { rank, cell: from }).copied().unwrap_or(0);
        let missing: Vec<RankId> = wanted.iter().copied().filter(|r| times(*r) == 0).collect();
        let twice: Vec<RankId> = wanted.iter().copied().filter(|r| times(*r) > 1).collect();
        let foreign: Vec<&Leaf> =
            got.keys().filter(|l| l.cell != from || !wanted.contains(&l.rank)).collect();
        let mut what = Vec::new();
        if !missing.is_empty() {
            what.push(format!("lacks the contribution of rank{}", ranks(&missing)));
        }
        if !twice.is_empty() {
            what.push(format!("counts rank{} more than once", ranks(&twice)));
        }
        if !foreign.is_empty() {
            let ranks_of: Vec<RankId> = {
                let mut all: Vec<_> = foreign.iter().map(|l| l.rank).collect();
                all.dedup();
                all
            };
            what.push(format!("holds data that belongs elsewhere, from rank{}", ranks(&ranks_of)));
        }
        // A double count is to blame where it first happened, anything else where the cell was written last.
        let blamed =
            if twice.is_empty() { writer } else { values.first_double(value).unwrap_or(writer) };
        let mut finding = Finding::new(
            Code::WrongResult,
            self.at(blamed),
            format!("wrong result: {name} {}", what.join(", and ")),
        )
        .label(if twice.is_empty() { "last written here" } else { "counted again here" })
        .note(self.place(blamed));
        if blamed != writer {
            finding = finding.note(format!("written last at {}", self.place(writer)));
        }
        let mut held = String::new();
        for (leaf, times) in got.iter().take(LISTED) {
            let times = match *times {
                1 => String::new(),
                u64::MAX => " x2^64 or more".to_owned(),
                times => format!(" x{times}"),
            };
            let other = if leaf.cell == from { "" } else { " (another piece)" };
            let _ = write!(
                held,
                "{}rank {}{other}{times}",
                if held.is_empty() { "" } else { ", " },
                leaf.rank
            );
        }
        if got.len() > LISTED {
            held.push_str(", …");
        }
        finding.note(format!("it holds: {held}"))
    }
}

/// `s 0, 1, 2 and 5 more`, or ` 3`: what comes after the word rank.
fn ranks(ranks: &[RankId]) -> String {
    let shown: Vec<_> = ranks.iter().take(LISTED).map(ToString::to_string).collect();
    let plural = if ranks.len() == 1 { "" } else { "s" };
    let more = match ranks.len().saturating_sub(LISTED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{plural} {}{more}", shown.join(", "))
}

/// Both boundaries over one denominator: `1/4..2/4` reads better than `1/4..1/2`.
fn common(lo: Rat, hi: Rat) -> (String, String) {
    let den = lo.den().max(hi.den());
    if den == 1 || !den.is_multiple_of(lo.den()) || !den.is_multiple_of(hi.den()) {
        return (lo.to_string(), hi.to_string());
    }
    let over = |at: Rat| format!("{}/{den}", at.num() * (den / at.den()));
    (over(lo), over(hi))
}
