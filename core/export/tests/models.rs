//! What the models of runtimes share: values are sets of contributions, and clocks give the order.

use std::collections::BTreeMap;

/// The outcome of a program, the worse the later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    Right,
    /// Ends where each step is one message, and hangs where each chunk is.
    HangsWhenLarge,
    Wrong,
    Race,
    /// Two blocks use one end of a signal, in no order.
    Shared,
    Hangs,
    Refused,
}

pub(crate) type Sum = BTreeMap<(usize, usize), u32>;
pub(crate) type Clock = Vec<u32>;

/// An element of memory: its value, its last write and the reads since.
#[derive(Clone, Default)]
pub(crate) struct Cell {
    pub(crate) value: Option<Sum>,
    write: Option<(usize, u32)>,
    reads: Vec<(usize, u32)>,
}

impl Cell {
    /// Notes a read; whether it races.
    pub(crate) fn read(&mut self, by: usize, clock: &Clock) -> bool {
        self.reads.push((by, clock[by]));
        self.write.is_some_and(|(writer, when)| writer != by && clock[writer] < when)
    }

    /// Writes a value; whether the write races.
    pub(crate) fn write(&mut self, by: usize, clock: &Clock, value: Option<Sum>) -> bool {
        let unordered = |(other, when): &(usize, u32)| *other != by && clock[*other] < *when;
        let races = self.write.iter().chain(&self.reads).any(unordered);
        *self = Self { value, write: Some((by, clock[by])), reads: Vec::new() };
        races
    }
}

pub(crate) fn join(clock: &mut Clock, other: &Clock) {
    clock.iter_mut().zip(other).for_each(|(own, other)| *own = (*own).max(*other));
}

pub(crate) fn add(left: Option<Sum>, right: Option<Sum>) -> Option<Sum> {
    let (mut left, right) = left.zip(right)?;
    for (leaf, times) in right {
        *left.entry(leaf).or_insert(0) += times;
    }
    Some(left)
}
