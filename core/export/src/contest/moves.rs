//! Moves of a copy engine: one source and one destination, copied or reduced.

use roundelay_core::diagnostics::{Code, Finding};
use roundelay_core::ids::RankId;
use roundelay_core::schedule::{Op, Operand, Schedule};

/// The operation of a copy engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Act {
    Copy,
    Reduce,
}

/// A move of one source to one destination.
pub(super) type Single = (Act, Operand, Operand);

/// Splits `op` of `rank` into single moves: reductions of the sources in one destination, in their order, and copies of
/// the result to the other destinations.
pub(super) fn singles(
    schedule: &Schedule,
    rank: RankId,
    op: &Op,
) -> Result<Vec<Single>, Vec<Finding>> {
    let (srcs, dsts) = (schedule.srcs(op), schedule.dsts(op));
    let is =
        |a: &Operand, b: &Operand| a.rank == b.rank && schedule.region(*a) == schedule.region(*b);
    // A destination that is also a source needs no copy of it.
    let held = dsts.iter().find_map(|dst| Some((srcs.iter().position(|src| is(src, dst))?, *dst)));
    let mut singles = Vec::new();
    let into = match held {
        Some((0, into)) => {
            singles.extend(srcs[1..].iter().map(|src| (Act::Reduce, *src, into)));
            into
        }
        // An executor's reductions commute.
        Some((1, into)) => {
            let others = srcs[..1].iter().chain(&srcs[2..]);
            singles.extend(others.map(|src| (Act::Reduce, *src, into)));
            into
        }
        Some(_) => {
            let title = "a reduction whose destination is one of its later sources";
            let finding = Finding::new(Code::NotExportable, op.at, title)
                .note("a copy engine folds its source into what the destination holds")
                .help("let the destination be the first source, as `reduce(src, dst)` does");
            return Err(vec![finding]);
        }
        None => {
            // The rank's own destination if there is one; the other operands are reduced on their way to it.
            let near = dsts.iter().find(|dst| dst.rank == rank);
            let into = *near.unwrap_or(&dsts[0]);
            singles.push((Act::Copy, srcs[0], into));
            singles.extend(srcs[1..].iter().map(|src| (Act::Reduce, *src, into)));
            into
        }
    };
    singles.extend(dsts.iter().filter(|dst| !is(dst, &into)).map(|dst| (Act::Copy, into, *dst)));
    Ok(singles)
}
