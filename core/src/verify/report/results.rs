//! The findings of results: the contribution that is missing, double or out of place, and the history of the wrong
//! piece.

use super::{LISTED, Reporter, ranks, table};
use crate::collective::Expected;
use crate::diagnostics::{Code, Finding};
use crate::ids::{OpId, RankId, SpanId};
use crate::schedule::{Operand, Region};
use crate::verify::blame::{BlamePath, Trace};
use crate::verify::values::{CellValue, Double, Leaf, ValueId, Values};

/// The traces of contributions, and of the piece that is wrong.
type Traces<'t> = &'t dyn Fn(Leaf) -> Trace;

/// The label of the last write of a wrong piece.
const WRITTEN: &str = "last written here";

impl Reporter<'_> {
    /// Returns the history of the values of a piece.
    fn history(
        &self,
        name: &str,
        writes: &[(OpId, ValueId)],
        cell: u32,
        values: &Values,
    ) -> String {
        let line = |(at, value): &(OpId, ValueId)| {
            let op = self.schedule.op(*at);
            let verb = if op.srcs > 1 { "reduces" } else { "copies" };
            let owner = self.schedule.dsts(op).first().map(|dst| dst.rank);
            let mut from: Vec<RankId> = self.schedule.srcs(op).iter().map(|src| src.rank).collect();
            from.retain(|rank| Some(*rank) != owner);
            let from = match &from[..] {
                [] => String::new(),
                others => format!(" from rank{}", ranks(others)),
            };
            let held = if value.is_value() {
                Self::held(*value, cell, values)
            } else {
                "garbage".to_owned()
            };
            format!("{} {verb}{from}: it holds {held}", self.place(*at))
        };
        let lines: Vec<_> = writes.iter().map(line).collect();
        table(&format!("the history of {name}"), &lines)
    }

    /// Returns the contributions of a value, such as `rank 0, rank 2 x2, rank 3 (another piece)`; `from` is the cell of
    /// the inputs that belongs here.
    fn held(value: ValueId, from: u32, values: &Values) -> String {
        let all = values.contributions(value);
        let one = |(leaf, times): (&Leaf, &u64)| {
            let times = match *times {
                1 => String::new(),
                u64::MAX => " x2^64 or more".to_owned(),
                times => format!(" x{times}"),
            };
            let other = if leaf.cell == from { "" } else { " (another piece)" };
            format!("rank {}{other}{times}", leaf.rank)
        };
        let mut parts: Vec<_> = all.iter().take(LISTED).map(one).collect();
        if all.len() > LISTED {
            parts.push("…".to_owned());
        }
        parts.join(", ")
    }

    /// Adds the op that brought the contribution first, and the op that brought it again.
    fn counted_twice(&self, mut finding: Finding, double: Double) -> Finding {
        let Double { op, rank, before } = double;
        let this = self.schedule.op(op);
        let me = self.rank(op);
        let does = match self.schedule.dsts(this).first() {
            Some(dst) if dst.rank != me => format!("rank {me} pushes it to rank {}", dst.rank),
            _ => format!("rank {me} adds it"),
        };
        let Some(before) = before else {
            return finding
                .note(format!("rank {rank}'s contribution is there already, and {does} once more"))
                .help("reduce only what the destination does not hold yet");
        };
        finding = finding.note(format!(
            "rank {rank}'s contribution came at {}, and {does} once more",
            self.place(before)
        ));
        finding = self.naming(finding, [before]);
        if self.at(before) == self.at(op) {
            return finding.help("this statement brings the same contribution in two rounds, or from two ranks: let one of them leave it out");
        }
        finding.others.push((self.at(before), "it came here already".to_owned()));
        finding.help("two ops bring the same contribution: keep one of the two")
    }

    /// Returns the ops that leave out the contribution of `rank`, with their labels, the op to blame first. Copies only
    /// pass on their data: a sum is to blame where it was made; where there is no sum, the op where the contribution
    /// was last seen is to blame.
    fn left_out(rank: RankId, trace: Trace) -> Vec<(OpId, String)> {
        let contribution = format!("rank {rank}'s contribution");
        let Trace { way, added, made } = trace;
        if let Some(made) = made {
            return vec![(made, format!("this sum lacks {contribution}"))];
        }
        let added = added.map(|op| (op, format!("{contribution} was added here last")));
        let seen = way.map(|way| match way {
            BlamePath::Ends(op) => (op, format!("{contribution} comes no farther than this")),
            BlamePath::Lost(op) => (op, format!("{contribution} is overwritten here")),
        });
        added.into_iter().chain(seen).collect()
    }

    /// Returns the operand by which an op writes the region.
    fn writes(&self, op: OpId, rank: RankId, region: &Region) -> Option<Operand> {
        let within = |dst: &&Operand| {
            let there = self.schedule.region(**dst);
            let same = dst.rank == rank && there.buffer == region.buffer;
            same && there.lo < region.hi && region.lo < there.hi
        };
        self.schedule.dsts(self.schedule.op(op)).iter().find(within).copied()
    }

    /// Returns the finding of a piece that no op wrote, where its data went another way.
    fn not_written(
        &self,
        name: &str,
        expected: Expected,
        value: ValueId,
        way: Option<BlamePath>,
    ) -> Finding {
        let wants = match expected {
            Expected::Reduced { .. } => "the reduction of all ranks".to_owned(),
            Expected::Copied { rank, .. } => format!("rank {rank}'s input"),
        };
        // In place, a piece that no op wrote still holds the input.
        let title = if value.is_value() {
            format!("{name} still holds this rank's input, not {wants}")
        } else {
            format!("{name} is never written")
        };
        let finding = match way {
            Some(BlamePath::Ends(op)) => {
                let finding = Finding::new(Code::WrongResult, self.at(op), title)
                    .label(format!("{wants} comes no farther than this"))
                    .note(self.place(op));
                self.naming(finding, [op])
            }
            _ => Finding::new(Code::WrongResult, SpanId(0), title).label("in this algorithm"),
        };
        let finding = finding.note(format!("at the end it must hold {wants}"));
        if self.schedule.nranks > 1 {
            return finding;
        }
        finding.help("with one rank the output is the input: `copy(local.input, local.output)`")
    }

    /// Returns the finding of a wrong result. `expected` comes with the cell within its unit and the number of cells of
    /// a unit.
    pub(in crate::verify) fn wrong_result(
        &self,
        rank: RankId,
        region: &Region,
        (expected, cell, per_unit): (Expected, u32, u32),
        (value, writer): (ValueId, Option<OpId>),
        (history, trace): (&[(OpId, ValueId)], Traces<'_>),
        values: &Values,
    ) -> Finding {
        let name = self.region(rank, region);
        let Some(writer) = writer.filter(|_| value.is_value()) else {
            let way = match expected {
                Expected::Copied { rank: from, unit } if from != rank => {
                    trace(Leaf { rank: from, cell: unit * per_unit + cell }).way
                }
                _ => None,
            };
            return self.not_written(&name, expected, value, way);
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
        // A double count is to blame where it first happened, any other mistake where the cell was written last.
        let double = if twice.is_empty() { None } else { values.first_double(value) };
        let absent = missing.first().filter(|_| twice.is_empty() && foreign.is_empty());
        let mut told = match (double, absent) {
            (Some(double), _) => vec![(double.op, "counted again here".to_owned())],
            (None, Some(&rank)) => Self::left_out(rank, trace(Leaf { rank, cell: from })),
            (None, None) => Vec::new(),
        };
        if double.is_none() {
            told.push((writer, WRITTEN.to_owned()));
        }
        let (blamed, label) = told.remove(0);
        let mut finding = Finding::new(
            Code::WrongResult,
            self.at(blamed),
            format!("wrong result: {name} {}", what.join(", and ")),
        )
        .label(label)
        .note(self.place(blamed));
        finding = self.naming(finding, [blamed]);
        if let Some(double) = double {
            finding = self.counted_twice(finding, double);
        } else if let Some(dst) = self.writes(writer, rank, region) {
            finding = self.as_written(finding, writer, dst);
            for told in &mut finding.operands {
                told.part |= self.schedule.region(dst) != region;
                told.region.clone_from(&name);
            }
        }
        if blamed != writer {
            finding = finding.note(format!("written last at {}", self.place(writer)));
            finding = self.naming(finding, [writer]);
        }
        for (op, label) in told {
            let at = self.at(op);
            if at != finding.at && finding.others.iter().all(|(known, _)| *known != at) {
                finding.others.push((at, label));
            }
        }
        if history.is_empty() {
            return finding.note(format!("it holds: {}", Self::held(value, from, values)));
        }
        let ops = history.iter().take(LISTED).map(|(op, _)| *op);
        self.naming(finding.note(self.history(&name, history, from, values)), ops)
    }
}
