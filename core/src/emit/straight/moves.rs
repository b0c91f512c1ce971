//! A move as lines of `copy` and `reduce`.

use super::regions::{Regions, Stretch};
use super::unfit;
use crate::diagnostics::Finding;
use crate::ids::RankId;
use crate::schedule::Operand;

/// The lines of a move of `rank`: of its sources and its destinations.
pub(super) fn moves(
    regions: &Regions<'_>,
    rank: RankId,
    (srcs, dsts): (&[Operand], &[Operand]),
) -> Result<String, Box<Finding>> {
    let all: Vec<Operand> = srcs.iter().chain(dsts).copied().collect();
    let stretches: Vec<Stretch> = all.iter().map(|operand| regions.stretch(*operand)).collect();
    let steps = steps(&all, &stretches, srcs.len())?;
    let mut text = String::new();
    for part in regions.parts(&stretches) {
        let name = |at: &usize| {
            let operand = all[*at];
            let name = regions.name(operand, Some(part));
            if operand.rank == rank {
                format!("local.{name}")
            } else {
                format!("p{}.{name}", operand.rank)
            }
        };
        for step in &steps {
            text.push_str(&match step {
                Step::Copy(src, dsts) => format!("copy({}, {});\n", name(src), list(dsts, name)),
                Step::Reduce(srcs, dst) => {
                    format!("reduce({}, {});\n", list(srcs, name), name(dst))
                }
            });
        }
    }
    Ok(text)
}

/// A line, with the numbers of its operands.
enum Step {
    /// From one to others.
    Copy(usize, Vec<usize>),
    /// Of some into one.
    Reduce(Vec<usize>, usize),
}

fn list(all: &[usize], name: impl Fn(&usize) -> String) -> String {
    match all {
        [one] => name(one),
        _ => format!("[{}]", all.iter().map(name).collect::<Vec<_>>().join(", ")),
    }
}

/// What a move is done in, where the first `nsrcs` operands are its sources.
///
/// The language reduces into what the destination holds. Where the first source is no destination, it is copied to one
/// that no other source lies in; or, of two sources, the first is reduced into the second.
fn steps(all: &[Operand], stretches: &[Stretch], nsrcs: usize) -> Result<Vec<Step>, Box<Finding>> {
    let same = |a: usize, b: usize| all[a].rank == all[b].rank && stretches[a] == stretches[b];
    let meets = |a: usize, b: usize| all[a].rank == all[b].rank && stretches[a].meets(stretches[b]);
    let dsts = nsrcs..all.len();
    let others = |but: usize| dsts.clone().filter(|at| !same(*at, but)).collect::<Vec<_>>();
    let mut steps = Vec::new();
    let from = if nsrcs == 1 {
        0
    } else if dsts.clone().any(|dst| same(dst, 0)) {
        steps.push(Step::Reduce((1..nsrcs).collect(), 0));
        0
    } else if let Some(dst) = dsts.clone().find(|dst| !(1..nsrcs).any(|src| meets(*dst, src))) {
        steps.push(Step::Copy(0, vec![dst]));
        steps.push(Step::Reduce((1..nsrcs).collect(), dst));
        dst
    } else if nsrcs == 2 && dsts.clone().any(|dst| same(dst, 1)) {
        steps.push(Step::Reduce(vec![0], 1));
        1
    } else {
        return Err(unfit("a sum of several regions is written over a part of one of them"));
    };
    let rest = others(from);
    if !rest.is_empty() {
        steps.push(Step::Copy(from, rest));
    }
    Ok(steps)
}
