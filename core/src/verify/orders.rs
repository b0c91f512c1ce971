//! The order in which each piece of each output is reduced, without the schedule that it was found in: the result of an
//! optimizing pass must reduce in an equal order, or its results would have other bits.

use rustc_hash::FxHashMap;

use super::layout::{Cells, MemoryLayout};
use super::values::ValueId;
use super::values::orders::{Commuted, CommutedFold};
use crate::ids::RankId;
use crate::rational::Rat;
use crate::schedule::{Buffer, Schedule};

/// The values that the outputs of a replay hold, in one mode.
pub(super) struct Results<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) cells: &'a Cells,
    pub(super) layout: &'a MemoryLayout,
    /// The value of each cell.
    pub(super) memory: &'a [ValueId],
}

impl Results<'_> {
    /// Returns the cells of a rank's output.
    pub(super) fn of(&self, rank: RankId) -> &[ValueId] {
        let units = self.schedule.units(Buffer::Output, rank).floor() as u32;
        let len = (units * self.cells.per_unit) as usize;
        &self.memory[self.layout.buffer(rank, Buffer::Output) as usize..][..len]
    }
}

/// An output as stretches with one order each: the end of the stretch, and its fold.
type Stretches = Vec<(Rat, u32)>;

/// The order of reduction of every piece of every output, where the collective reduces, in every mode. Operands of one
/// fold are taken in either order, as all reduce ops commute bit for bit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Orders {
    /// The two operands of each fold, which come before it, and whether it rounds. Numbers below `leaves` are ranks'
    /// contributions.
    folds: Vec<CommutedFold>,
    leaves: u32,
    /// The outputs; equal neighbors are stored once.
    outputs: Vec<Stretches>,
    /// The output of each rank out of place, and then in place where the orders may differ there.
    of: Vec<Vec<usize>>,
    /// Whether averages are divided at the end, after their sums are rounded.
    divided_at_end: bool,
}

impl Orders {
    pub(super) fn new(modes: &[Results<'_>], commuted: &Commuted) -> Self {
        let leaves = modes.first().map_or(0, |results| results.schedule.nranks);
        let mut orders = Self { leaves, ..Self::default() };
        for results in modes {
            let of = (0..leaves).map(|rank| orders.output(results, RankId(rank), commuted));
            let of = of.collect();
            orders.of.push(of);
        }
        orders.keep(&commuted.folds);
        orders
    }

    /// Returns the orders with averages that are divided at the end.
    pub(super) fn divided_at_end(&self) -> Self {
        Self { divided_at_end: true, ..self.clone() }
    }

    /// Returns the number of the output that a rank holds.
    fn output(&mut self, results: &Results<'_>, rank: RankId, commuted: &Commuted) -> usize {
        let mut stretches = Stretches::new();
        for (cell, value) in (0..).zip(results.of(rank)) {
            let (class, end) = (commuted.class[value.expr as usize], cell + 1);
            match stretches.last_mut() {
                Some(last) if last.1 == class => last.0 = results.cells.boundary(end),
                _ => stretches.push((results.cells.boundary(end), class)),
            }
        }
        // Mostly all ranks hold equal outputs: one list serves equal neighbors.
        if self.outputs.last() != Some(&stretches) {
            self.outputs.push(stretches);
        }
        self.outputs.len() - 1
    }

    /// Takes over the folds that outputs use, and renumbers them.
    fn keep(&mut self, all: &[CommutedFold]) {
        let leaves = self.leaves as usize;
        let mut used = vec![false; leaves + all.len()];
        for (_, fold) in self.outputs.iter().flatten() {
            used[*fold as usize] = true;
        }
        for at in (0..all.len()).rev() {
            if used[leaves + at] {
                all[at].0.iter().for_each(|operand| used[*operand as usize] = true);
            }
        }
        let mut number: Vec<u32> = (0..self.leaves).collect();
        number.resize(used.len(), u32::MAX);
        for (at, (operands, rounds)) in all.iter().enumerate().filter(|(at, _)| used[leaves + at]) {
            number[leaves + at] = self.leaves + self.folds.len() as u32;
            let [a, b] = operands.map(|operand| number[operand as usize]);
            self.folds.push(([a.min(b), a.max(b)], *rounds));
        }
        for (_, fold) in self.outputs.iter_mut().flatten() {
            *fold = number[*fold as usize];
        }
    }

    /// Returns the most orders in which ranks reduce one piece in one mode, where all of them hold it.
    pub fn of_one_piece(&self) -> usize {
        self.of.iter().map(|of| self.of_one_piece_in(of)).max().unwrap_or(0)
    }

    fn of_one_piece_in(&self, of: &[usize]) -> usize {
        let mut used = of.to_vec();
        used.sort_unstable();
        used.dedup();
        let mut ends: Vec<Rat> =
            used.iter().flat_map(|at| &self.outputs[*at]).map(|(end, _)| *end).collect();
        ends.sort_unstable();
        ends.dedup();
        let mut next: Vec<_> = used.iter().map(|at| self.outputs[*at].iter().peekable()).collect();
        let mut most = 0;
        for end in ends {
            let mut folds: Vec<u32> = Vec::with_capacity(next.len());
            for stretches in &mut next {
                folds.extend(stretches.peek().map(|(_, fold)| *fold));
                stretches.next_if(|(until, _)| *until <= end);
            }
            folds.sort_unstable();
            folds.dedup();
            most = most.max(folds.len());
        }
        most
    }

    /// Returns a rank and the end of a stretch of its output where `other` is reduced in another order, in either mode, or
    /// where an average is divided at the end in one of both, if there is such a stretch.
    pub fn differs(&self, other: &Self) -> Option<(RankId, Rat)> {
        if self.divided_at_end != other.divided_at_end {
            return Some((RankId(0), Rat::ZERO));
        }
        let known: FxHashMap<CommutedFold, u32> =
            self.folds.iter().copied().zip(self.leaves..).collect();
        let mut number: Vec<u32> = (0..self.leaves).collect();
        for (operands, rounds) in &other.folds {
            let [a, b] = operands.map(|operand| number[operand as usize]);
            let same = known.get(&([a.min(b), a.max(b)], *rounds));
            number.push(same.copied().unwrap_or(u32::MAX));
        }
        // Pairs of outputs that were compared already.
        let mut equal = FxHashMap::default();
        for mode in 0..self.of.len().max(other.of.len()) {
            let (ours, theirs) = (self.of_mode(mode), other.of_mode(mode));
            if ours.len() != theirs.len() {
                return Some((RankId(0), Rat::ZERO));
            }
            for (rank, pair) in (0..).map(RankId).zip(ours.iter().zip(theirs)) {
                let compare =
                    || first_difference(&self.outputs[*pair.0], &other.outputs[*pair.1], &number);
                if let Some(end) = *equal.entry(pair).or_insert_with(compare) {
                    return Some((rank, end));
                }
            }
        }
        None
    }

    /// Returns the outputs of the ranks in a mode: the outputs of the last known mode, where this mode has none of its
    /// own.
    fn of_mode(&self, mode: usize) -> &[usize] {
        self.of.get(mode).or(self.of.last()).map_or(&[], Vec::as_slice)
    }
}

/// Returns the end of the first stretch that differs; `number` maps the folds of `theirs` to folds of `ours`.
fn first_difference(ours: &Stretches, theirs: &Stretches, number: &[u32]) -> Option<Rat> {
    let (mut ours, mut theirs) = (ours.iter().peekable(), theirs.iter().peekable());
    while let (Some((end, fold)), Some((other_end, other))) = (ours.peek(), theirs.peek()) {
        if *fold != number[*other as usize] {
            return Some(*end.min(other_end));
        }
        let (ended, other_ended) = (end <= other_end, other_end <= end);
        if ended {
            ours.next();
        }
        if other_ended {
            theirs.next();
        }
    }
    ours.chain(theirs).next().map(|(end, _)| *end)
}
