//! The meaning of a schedule for one count, element by element: the accesses to each, and the required results of a
//! run. Both oracles start from here; neither shares an idea with the verifier.
//!
//! Everything is an act that begins and ends, and simultaneous acts are wrong if one writes an element that another
//! touches. A move reads all its sources when it begins and writes all its destinations when it ends. A post writes one
//! end of a channel, a wait the other: streams at one end at once share a signal. And the caller of a rank, outside the
//! rank's runs, is one long act that writes its input and output.

use std::ops::Range;

use roundelay_core::collective::{Alias, Expected};
use roundelay_core::ids::{RankId, ScratchId};
use roundelay_core::schedule::{Buffer, Op, OpKind, Operand, Schedule};

use super::values::{GARBAGE, REPORTED, Values};
use super::{Kind, Objection};

/// Runs of the schedule, one after another.
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

    fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(place, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let next = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(64 * place + next)
            })
        })
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
pub struct Model<'s> {
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
    pub(super) input: Vec<Range<usize>>,
    pub(super) output: Vec<Range<usize>>,
    /// For each act the acts that must not be simultaneous with it.
    conflicts: Vec<Bits>,
}

impl<'s> Model<'s> {
    /// `in_place` marks the ranks whose input and output share memory.
    pub(super) fn new(schedule: &'s Schedule, count: u64, in_place: &[bool]) -> Self {
        let mut size = 0;
        let (mut input, mut output, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
        for rank in (0..schedule.nranks).map(RankId) {
            let elements = |buffer| schedule.elements(buffer, rank, count) as usize;
            let (ins, outs) = (elements(Buffer::Input), elements(Buffer::Output));
            let alias = if in_place[rank.index()] {
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
        // Memory, then both ends of each channel: the readers, and the writers.
        let mut cells =
            vec![[Vec::new(), Vec::new()]; self.size + 2 * self.schedule.channels.len()];
        for (act, what) in self.ops.iter().enumerate() {
            match what {
                What::Nothing => {}
                What::Post(channel) => cells[self.size + 2 * channel][1].push(act),
                What::Wait(channel) => cells[self.size + 2 * channel + 1][1].push(act),
                What::Move { srcs, dsts, len } => {
                    for (firsts, how) in [(srcs, 0), (dsts, 1)] {
                        let all = firsts.iter().flat_map(|at| *at..at + len);
                        all.for_each(|cell| cells[cell][how].push(act));
                    }
                }
            }
        }
        for rank in 0..self.ranks {
            let lent = self.input[rank].clone().chain(self.output[rank].clone());
            lent.for_each(|cell| cells[cell][1].push(self.caller(rank)));
        }
        let acts = self.ops.len() + self.ranks;
        let mut conflicts = vec![Bits::new(acts); acts];
        // Neighboring cells are mostly touched by equal acts.
        cells.dedup();
        for [reads, writes] in &cells {
            for write in writes {
                for other in reads.iter().chain(writes) {
                    conflicts[*write].add(*other);
                    conflicts[*other].add(*write);
                }
            }
        }
        conflicts
    }

    /// The acts that must not be at once with this one.
    pub(super) fn rivals(&self, act: usize) -> impl Iterator<Item = usize> {
        self.conflicts[act].iter()
    }

    /// The caller of a rank, as an act.
    pub(super) fn caller(&self, rank: usize) -> usize {
        self.ops.len() + rank
    }

    pub(super) fn conflict(&self, a: usize, b: usize) -> bool {
        self.conflicts[a].has(b)
    }

    /// Returns the objection if two acts that must not be simultaneous may be, in runs `i` and `j` of their ranks.
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

    /// Returns the fold of a move's sources, and the faults of the sources.
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
                match self.schedule.collective.expected_value(me, unit, self.schedule.root) {
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
