//! The control flow of a function, and which registers depend on which.

use std::collections::{BTreeSet, HashMap};

use crate::program::{Base, Function, Operand, Operation, Slot};

/// A function with the edges between its instructions.
pub(super) struct Flow<'f> {
    pub(super) function: &'f Function,
    before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
    /// The instructions that write each register.
    writers: HashMap<Slot, Vec<usize>>,
}

impl<'f> Flow<'f> {
    pub(super) fn new(function: &'f Function) -> Self {
        let many = function.instructions.len();
        let (mut before, mut after) = (vec![Vec::new(); many], vec![Vec::new(); many]);
        let mut writers: HashMap<Slot, Vec<usize>> = HashMap::new();
        for (at, instruction) in function.instructions.iter().enumerate() {
            let (target, goes_on) = match instruction.operation {
                Operation::Branch { target, .. } => (Some(target as usize), false),
                Operation::Return | Operation::Exit | Operation::Trap => (None, false),
                _ => (None, true),
            };
            let next = (goes_on || instruction.guard.is_some()).then_some(at + 1);
            for to in target.into_iter().chain(next).filter(|to| *to < many) {
                after[at].push(to);
                before[to].push(at);
            }
            for slot in results(&instruction.operation) {
                writers.entry(slot).or_default().push(at);
            }
        }
        Self { function, before, after, writers }
    }

    pub(super) fn after(&self, at: usize) -> &[usize] {
        &self.after[at]
    }

    /// Returns the instructions that are reached from the first one without passing one of `stops`.
    pub(super) fn reached_without(&self, stops: &BTreeSet<usize>) -> Vec<bool> {
        let mut reached = vec![false; self.after.len()];
        let mut next = vec![0];
        while let Some(at) = next.pop() {
            if at < reached.len() && !reached[at] {
                reached[at] = true;
                if !stops.contains(&at) {
                    next.extend(&self.after[at]);
                }
            }
        }
        reached
    }

    /// Returns the loops: for each instruction at which one begins, its instructions.
    pub(super) fn loops(&self) -> Vec<BTreeSet<usize>> {
        let mut found: HashMap<usize, BTreeSet<usize>> = HashMap::new();
        for (from, to) in self.back_edges() {
            let body = found.entry(to).or_insert_with(|| BTreeSet::from([to]));
            let mut next = vec![from];
            while let Some(at) = next.pop() {
                if body.insert(at) {
                    next.extend(&self.before[at]);
                }
            }
        }
        found.into_values().collect()
    }

    /// Returns the edges to an instruction that is on the way to their begin.
    fn back_edges(&self) -> Vec<(usize, usize)> {
        let mut edges = Vec::new();
        let (mut seen, mut open) = (vec![false; self.after.len()], vec![false; self.after.len()]);
        let mut way = vec![(0, 0)];
        while let Some((at, nth)) = way.pop() {
            if at >= seen.len() {
                continue;
            }
            (seen[at], open[at]) = (true, true);
            let Some(to) = self.after[at].get(nth) else {
                open[at] = false;
                continue;
            };
            way.push((at, nth + 1));
            if open[*to] {
                edges.push((at, *to));
            } else if !seen[*to] {
                way.push((*to, 0));
            }
        }
        edges
    }

    /// Returns the instructions on which registers depend, within `part` if it is given.
    pub(super) fn slice(
        &self,
        slots: impl IntoIterator<Item = Slot>,
        part: Option<&BTreeSet<usize>>,
    ) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut next: Vec<Slot> = slots.into_iter().collect();
        while let Some(slot) = next.pop() {
            for at in self.writers.get(&slot).into_iter().flatten() {
                if part.is_none_or(|part| part.contains(at)) && found.insert(*at) {
                    let instruction = &self.function.instructions[*at];
                    next.extend(sources(&instruction.operation));
                    next.extend(instruction.guard.map(|guard| guard.slot));
                }
            }
        }
        found
    }
}

/// Returns the registers that an operation writes.
pub(super) fn results(operation: &Operation) -> Vec<Slot> {
    match operation {
        Operation::Move { to, .. }
        | Operation::AddressOf { to, .. }
        | Operation::ToGeneric { to, .. }
        | Operation::FromGeneric { to, .. }
        | Operation::Join { to, .. }
        | Operation::Special { to, .. } => vec![*to],
        Operation::Unpack { to, .. } => to.iter().copied().flatten().collect(),
        Operation::Arithmetic(arithmetic) => vec![arithmetic.to],
        Operation::Load { to, .. } => to.iter().flatten().map(|(slot, _)| *slot).collect(),
        Operation::Barrier(barrier) => barrier.reduction.iter().map(|(_, to, ..)| *to).collect(),
        Operation::Shuffle(shuffle) => {
            [Some(shuffle.to), shuffle.valid].into_iter().flatten().collect()
        }
        Operation::Vote(vote) => vec![vote.to],
        _ => Vec::new(),
    }
}

/// Returns the registers whose values an operation's results depend on.
fn sources(operation: &Operation) -> Vec<Slot> {
    let of = |operands: &[Operand]| -> Vec<Slot> {
        let slot = |operand: &Operand| match operand {
            Operand::Slot(slot) => Some(*slot),
            Operand::Value(_) => None,
        };
        operands.iter().filter_map(slot).collect()
    };
    match operation {
        Operation::Move { from, .. }
        | Operation::ToGeneric { from, .. }
        | Operation::FromGeneric { from, .. }
        | Operation::Unpack { from, .. } => of(&[*from]),
        Operation::Join { from, .. } => of(from),
        Operation::Arithmetic(arithmetic) => of(&arithmetic.from),
        Operation::Load { access, .. } => match access.address.base {
            Base::Slot(slot) => vec![slot],
            _ => Vec::new(),
        },
        Operation::Barrier(barrier) => {
            barrier.reduction.map_or_else(Vec::new, |(_, _, from, _)| of(&[from]))
        }
        Operation::Shuffle(shuffle) => of(&[shuffle.from, shuffle.lane]),
        Operation::Vote(vote) => of(&[vote.from]),
        _ => Vec::new(),
    }
}
