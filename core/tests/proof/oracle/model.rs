//! What a schedule means for one count, element by element: who touches which, and what a run must leave
//! behind. Both oracles start from here; neither shares an idea with the verifier.
//!
//! Everything is an act that begins and ends, and acts at once are wrong if one writes what another touches.
//! A move reads all its sources when it begins and writes all its destinations when it ends. To post is to
//! write one end of a channel, to wait the other: streams at the same end at once share a signal. And the
//! caller of a rank, outside the rank's runs, is one long act that writes its input and output.

use std::ops::Range;

use roundelay_core::collective::{Alias, Expected};
use roundelay_core::ids::{RankId, ScratchId};
use roundelay_core::schedule::{Buffer, Op, OpKind, Operand, Schedule};

use super::values::{GARBAGE, REPORTED, Values};
use super::{Kind, Objection};

/// Runs of the schedule, one after the other.
pub(super) const RUNS: usize = 2;

/// A set of small numbers.
#[derive(Clone)]
pub(super) struct Bits(Vec<u64>);

impl Bits {
    pub(super) fn new(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }

    pub(super) fn add(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    pub(super) fn has(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    fn meets(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }
}

pub(super) enum What {
    Move {
        srcs: Vec<usize>,
        dsts: Vec<usize>,
        len: usize,
    },
    Post(usize),
    Wait(usize),
    /// A copy onto itself.
    Nothing,
}

/// An act is a number: an op of the schedule, or (beyond those) the caller of a rank.
pub(crate) struct Model<'s> {
    pub(super) schedule: &'s Schedule,
    pub(super) ops: Vec<What>,
    /// The acts of each stream.
    pub(super) streams: Vec<Range<usize>>,
    /// The rank of each stream.
    pub(super) rank_of: Vec<usize>,
    pub(super) ranks: usize,
    /// Elements of all memory.
    pub(super) size: usize,
    count: usize,
    input: Vec<Range<usize>>,
    output: Vec<Range<usize>>,
    /// For each act those that must not be at once with it.
    conflicts: Vec<Bits>,
}

impl<'s> Model<'s> {
    pub(super) fn new(schedule: &'s Schedule, count: u64, in_place: bool) -> Self {
        let mut size = 0;
        let (mut input, mut output, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
        for rank in (0..schedule.nranks).map(RankId) {
            let elements = |buffer| schedule.elements(buffer, rank, count) as usize;
            let (ins, outs) = (elements(Buffer::Input), elements(Buffer::Output));
            let alias = if in_place {
                schedule.collective.alias(rank, schedule.root)
            } else {
                Alias::Apart
            };
            let unit = |unit: u32| size + unit as usize * count as usize;
            let (i, o, both) = match alias {
                Alias::Apart => (size, size + ins, ins + outs),
                Alias::InputInOutput(at) => (unit(at), size, outs),
                Alias::OutputInInput(at) => (size, unit(at), ins),
            };
            input.push(i..i + ins);
            output.push(o..o + outs);
            size += both;
            for id in 0..schedule.scratch.len() {
                scratch.push(size);
                size += elements(Buffer::Scratch(ScratchId(id as u32)));
            }
        }
        let place = |o: &Operand| {
            let region = schedule.region(*o);
            let (first, len) = schedule.extent(region, count);
            let base = match region.buffer {
                Buffer::Input => input[o.rank.index()].start,
                Buffer::Output => output[o.rank.index()].start,
                Buffer::Scratch(id) => {
                    scratch[o.rank.index() * schedule.scratch.len() + id.index()]
                }
            };
            (base + first as usize, len as usize)
        };
        let what = |op: &Op| match op.kind {
            OpKind::Post => What::Post(op.arg as usize),
            OpKind::Wait => What::Wait(op.arg as usize),
            OpKind::Move => {
                let len = place(&schedule.srcs(op)[0]).1;
                let firsts = |all: &[Operand]| all.iter().map(|o| place(o).0).collect::<Vec<_>>();
                let (srcs, dsts) = (firsts(schedule.srcs(op)), firsts(schedule.dsts(op)));
                if srcs.len() == 1 && srcs == dsts {
                    What::Nothing
                } else {
                    What::Move { srcs, dsts, len }
                }
            }
        };
        let ops: Vec<What> = schedule.ops.iter().map(what).collect();
        let streams = schedule.streams.iter();
        let mut model = Self {
            schedule,
            ops,
            streams: streams
                .clone()
                .map(|s| s.first.index()..s.first.index() + s.len as usize)
                .collect(),
            rank_of: streams.map(|s| s.rank.index()).collect(),
            ranks: schedule.nranks as usize,
            size,
            count: count as usize,
            input,
            output,
            conflicts: Vec::new(),
        };
        model.conflicts = model.all_conflicts();
        model
    }

    fn all_conflicts(&self) -> Vec<Bits> {
        let width = self.size + 2 * self.schedule.channels.len();
        let cells = |firsts: &[usize], len: usize| {
            let mut bits = Bits::new(width);
            firsts.iter().flat_map(|at| *at..at + len).for_each(|i| bits.add(i));
            bits
        };
        let ops = self.ops.iter().map(|what| match what {
            What::Nothing => (cells(&[], 0), cells(&[], 0)),
            What::Post(channel) => (cells(&[], 0), cells(&[self.size + 2 * channel], 1)),
            What::Wait(channel) => (cells(&[], 0), cells(&[self.size + 2 * channel + 1], 1)),
            What::Move { srcs, dsts, len } => (cells(srcs, *len), cells(dsts, *len)),
        });
        let callers = self.input.iter().zip(&self.output).map(|(input, output)| {
            let mut both = cells(&[input.start], input.len());
            both.join(&cells(&[output.start], output.len()));
            (cells(&[], 0), both)
        });
        let (reads, writes): (Vec<_>, Vec<_>) = ops.chain(callers).unzip();
        let acts = writes.len();
        let at_once = |a: usize, b: usize| {
            writes[a].meets(&writes[b]) || writes[a].meets(&reads[b]) || reads[a].meets(&writes[b])
        };
        let row = |a: usize| {
            let mut row = Bits::new(acts);
            (0..acts).filter(|b| at_once(a, *b)).for_each(|b| row.add(b));
            row
        };
        (0..acts).map(row).collect()
    }

    /// The caller of a rank, as an act.
    pub(super) fn caller(&self, rank: usize) -> usize {
        self.ops.len() + rank
    }

    pub(super) fn conflict(&self, a: usize, b: usize) -> bool {
        self.conflicts[a].has(b)
    }

    /// What it is if two acts that must not be at once may be, in runs `i` and `j` of their ranks.
    pub(super) fn clash(&self, (a, i): (usize, usize), (b, j): (usize, usize)) -> Objection {
        let kind = if a.max(b) >= self.ops.len() {
            Kind::RaceWithCaller
        } else if !matches!(self.ops[a], What::Move { .. }) {
            Kind::SharedSignal
        } else if i == j {
            Kind::Race
        } else {
            Kind::RaceAcrossRuns
        };
        Objection { kind, why: format!("acts {a} of run {i} and {b} of run {j} may be at once") }
    }

    /// The fold of a move's sources, and what is wrong with them.
    pub(super) fn fold(
        &self,
        act: usize,
        memory: &[u32],
        values: &mut Values,
    ) -> (Vec<u32>, Option<Objection>) {
        let What::Move { srcs, len, .. } = &self.ops[act] else { return (Vec::new(), None) };
        let mut wrong = None;
        let mut fold = |i: usize| {
            let operands = srcs.iter().map(|src| match memory[src + i] {
                GARBAGE => {
                    let why = format!("op {act} reads garbage");
                    wrong = Some(Objection { kind: Kind::Garbage, why });
                    REPORTED
                }
                value => value,
            });
            operands.reduce(|folded, operand| values.sum(operand, folded)).unwrap_or(GARBAGE)
        };
        ((0..*len).map(&mut fold).collect(), wrong)
    }

    /// The end of a move.
    pub(super) fn store(&self, act: usize, folded: &[u32], memory: &mut [u32]) {
        if let What::Move { dsts, .. } = &self.ops[act] {
            for dst in dsts {
                memory[*dst..][..folded.len()].copy_from_slice(folded);
            }
        }
    }

    /// The caller of `rank` hands its buffers over for `run`.
    pub(super) fn enter(&self, rank: usize, run: usize, memory: &mut [u32], values: &mut Values) {
        memory[self.output[rank].clone()].fill(GARBAGE);
        for (i, at) in self.input[rank].clone().enumerate() {
            memory[at] = values.id([(self.leaf(run, rank, i), 1)].into());
        }
    }

    /// The caller of `rank` takes its buffers back after `run`: the result must stand there.
    pub(super) fn exit(
        &self,
        rank: usize,
        run: usize,
        memory: &mut [u32],
        values: &mut Values,
    ) -> Result<(), Objection> {
        let mut wrong = Ok(());
        for (i, at) in self.output[rank].clone().enumerate() {
            let (unit, element) = ((i / self.count) as u32, i % self.count);
            let me = RankId(rank as u32);
            let leaf = |rank, unit| self.leaf(run, rank, unit as usize * self.count + element);
            let leaves: Vec<u32> =
                match self.schedule.collective.expected(me, unit, self.schedule.root) {
                    Expected::Reduced { unit } => (0..self.ranks).map(|r| leaf(r, unit)).collect(),
                    Expected::Copied { rank, unit } => vec![leaf(rank.index(), unit)],
                };
            let right = values.id(leaves.into_iter().map(|leaf| (leaf, 1)).collect());
            if ![right, REPORTED].contains(&memory[at]) {
                let why = format!("element {i} of rank {rank} is wrong after run {run}");
                wrong = Err(Objection { kind: Kind::Result, why });
            }
        }
        for lent in [&self.input[rank], &self.output[rank]] {
            memory[lent.clone()].fill(GARBAGE);
        }
        wrong
    }

    fn leaf(&self, run: usize, rank: usize, element: usize) -> u32 {
        ((run * self.ranks + rank) << 16 | element) as u32
    }
}
