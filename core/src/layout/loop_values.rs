//! The values of loop variables at the ops that a finding names. A schedule does not keep them: when a mistake is told,
//! the ranks of these ops are laid out once more, and the walk tells the values as it passes the ops.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Algorithm;
use super::builder::{Builder, Watch};
use super::interning::{Limits, Tables};
use crate::diagnostics::{Finding, NamedOp};
use crate::ids::RankId;
use crate::topology::Topology;

/// Returns the finding with the values of loop variables behind each op that its notes name, such as
/// `rank 2, step 1, line 12 (round = 1, b = 3)`. `topology` is the one that the run was placed on, if it is not the
/// algorithm's own.
#[must_use]
pub fn with_loop_values<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
    topology: Option<&Arc<Topology>>,
    mut finding: Finding,
) -> Finding {
    let ops = std::mem::take(&mut finding.ops);
    let ranks: BTreeSet<RankId> = ops.iter().map(|op| op.rank).collect();
    let mut known: Vec<(NamedOp, Option<String>)> = Vec::new();
    for rank in ranks {
        let of_rank = ops.iter().filter(|op| op.rank == rank).cloned();
        known.extend(values_at(algorithm, nranks, topology, rank, of_rank));
    }
    // The notes name the ops in this order, so that equal names are told apart.
    let (mut note, mut from) = (0, 0);
    for op in ops {
        let found = (note..finding.notes.len()).find_map(|index| {
            let from = if index == note { from } else { 0 };
            Some((index, end_of(&op.name, &finding.notes[index], from)?))
        });
        let Some((index, end)) = found else { continue };
        (note, from) = (index, end);
        let values =
            known.iter().find(|(known, _)| *known == op).and_then(|(_, values)| values.as_ref());
        if let Some(values) = values {
            let text = format!(" ({values})");
            finding.notes[index].insert_str(end, &text);
            from += text.len();
        }
    }
    finding
}

/// Returns the end of `name` in `note`, at or behind `from`; `line 1` is no part of `line 12`.
fn end_of(name: &str, note: &str, from: usize) -> Option<usize> {
    let ends = note[from..].match_indices(name).map(|(at, _)| from + at + name.len());
    let mut whole = ends.filter(|end| !note[*end..].starts_with(|c: char| c.is_ascii_digit()));
    whole.next()
}

/// Returns the ops of a rank, each with the values at it.
fn values_at<A: Algorithm + ?Sized>(
    algorithm: &A,
    nranks: u32,
    topology: Option<&Arc<Topology>>,
    rank: RankId,
    ops: impl Iterator<Item = NamedOp>,
) -> Vec<(NamedOp, Option<String>)> {
    let mut tables = Tables::new(algorithm.name(), algorithm.collective(), nranks, Limits::FULL);
    tables.placed = topology.or(algorithm.placed_on()).cloned();
    let mut builder = Builder::new(&mut tables, rank);
    builder.watch = Some(Watch::new(ops));
    let built = builder.on_placed().and_then(|()| algorithm.build(&mut builder));
    // A schedule that another pass has changed has other ops at these places.
    let whole = built.and_then(|()| builder.end_fifo()).is_ok();
    let watch = builder.watch.take().filter(|_| whole);
    let lens: Vec<usize> = builder.into_streams().iter().map(Vec::len).collect();
    let mut wanted = watch.map_or_else(Vec::new, |watch| watch.wanted);
    wanted.retain(|(op, _)| lens.get(op.stream as usize) == Some(&(op.of as usize)));
    wanted
}
