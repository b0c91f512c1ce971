//! Moves as lines of `copy` and `reduce`.

use std::fmt::Write as _;

use super::regions::{Regions, Stretch};
use super::unfit;
use roundelay_core::diagnostics::Finding;
use roundelay_core::ids::RankId;
use roundelay_core::schedule::{Op, Operand, Schedule};

/// A move between stretches of one length.
pub(super) struct Move {
    /// Its sources and then its destinations.
    all: Vec<Stretch>,
    /// The number of its sources.
    srcs: usize,
    /// Whether it rounds after each source: then each has a `reduce` of its own.
    chain: bool,
}

impl Move {
    pub(super) fn new(regions: &Regions<'_>, schedule: &Schedule, op: &Op) -> Self {
        let all = schedule.operands_of(op).iter().map(|operand| regions.stretch(*operand));
        Self { all: all.collect(), srcs: usize::from(op.srcs), chain: op.chain }
    }

    pub(super) fn copy(regions: &Regions<'_>, src: Operand, dst: Operand) -> Self {
        Self { all: vec![regions.stretch(src), regions.stretch(dst)], srcs: 1, chain: false }
    }

    /// Returns both moves as one, if `next` continues all stretches of this move and reads no data that this move
    /// writes.
    pub(super) fn and(&self, next: &Self) -> Option<Self> {
        let shape = |of: &Self| (of.srcs, of.all.len(), of.chain);
        if shape(self) != shape(next) {
            return None;
        }
        let both = self.all.iter().zip(&next.all).map(|(one, next)| one.and(*next));
        let all = both.collect::<Option<Vec<Stretch>>>()?;
        let (srcs, dsts) = all.split_at(self.srcs);
        let apart = |dst: &Stretch| srcs.iter().all(|src| src == dst || !src.meets(*dst));
        dsts.iter().all(apart).then_some(Self { all, srcs: self.srcs, chain: self.chain })
    }

    /// Returns the lines in which `rank` performs the move.
    pub(super) fn lines(
        &self,
        regions: &Regions<'_>,
        rank: RankId,
    ) -> Result<String, Box<Finding>> {
        let steps = self.steps()?;
        let mut text = String::new();
        for part in regions.parts(&self.all) {
            let name = |at: &usize| {
                let stretch = self.all[*at].part(part);
                let whose = match stretch.rank {
                    own if own == rank => "local".to_owned(),
                    peer => format!("p{peer}"),
                };
                format!("{whose}.{}", regions.name(stretch))
            };
            for step in &steps {
                let (word, from, to) = match step {
                    MoveStep::Copy(src, dsts) => ("copy", name(src), list(dsts, name)),
                    MoveStep::Reduce(srcs, dst) => ("reduce", list(srcs, name), name(dst)),
                };
                let _ = writeln!(text, "{word}({from}, {to});");
            }
        }
        Ok(text)
    }

    /// Returns the steps of the move.
    ///
    /// The language reduces into the destination's data. If the first source is not a destination, it is copied to a
    /// destination that overlaps no other source; or, of two sources, the first is reduced into the second.
    fn steps(&self) -> Result<Vec<MoveStep>, Box<Finding>> {
        let Self { all, srcs, chain } = self;
        let dsts = *srcs..all.len();
        let others = || (1..*srcs).collect::<Vec<_>>();
        let free = |dst: &usize| !(1..*srcs).any(|src| all[*dst].meets(all[src]));
        let mut steps = Vec::new();
        let from = if *srcs == 1 {
            0
        } else if all[dsts.clone()].contains(&all[0]) {
            steps.push(MoveStep::Reduce(others(), 0));
            0
        } else if let Some(dst) = dsts.clone().find(free) {
            steps.push(MoveStep::Copy(0, vec![dst]));
            steps.push(MoveStep::Reduce(others(), dst));
            dst
        } else if *srcs == 2 && all[dsts.clone()].contains(&all[1]) {
            steps.push(MoveStep::Reduce(vec![0], 1));
            1
        } else {
            return Err(unfit("a sum of several regions is written over a part of one of them"));
        };
        let rest: Vec<usize> = dsts.filter(|dst| all[*dst] != all[from]).collect();
        if !rest.is_empty() {
            steps.push(MoveStep::Copy(from, rest));
        }
        if *chain {
            let apart = |step| match step {
                MoveStep::Reduce(srcs, dst) => {
                    srcs.into_iter().map(|src| MoveStep::Reduce(vec![src], dst)).collect()
                }
                copy @ MoveStep::Copy(..) => vec![copy],
            };
            steps = steps.into_iter().flat_map(apart).collect();
        }
        Ok(steps)
    }
}

/// A step of a move, with the numbers of its operands.
enum MoveStep {
    /// Copies a source to some destinations.
    Copy(usize, Vec<usize>),
    /// Reduces some sources into one place.
    Reduce(Vec<usize>, usize),
}

fn list(all: &[usize], name: impl Fn(&usize) -> String) -> String {
    match all {
        [one] => name(one),
        _ => format!("[{}]", all.iter().map(name).collect::<Vec<_>>().join(", ")),
    }
}
