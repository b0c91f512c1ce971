//! Makes packed trees shallower: two trees of equal weight exchange their edges to a rank, so that all links carry what
//! they did.

use super::switches::Edge;
use super::trees::Batch;

/// The most passes over all pairs of trees.
const PASSES: usize = 16;
/// The most pairs of trees and ranks of a pass.
const PAIRS: usize = 1 << 28;

/// Lowers the sum of the squares of the depths of all ranks in all trees, until no exchange of two edges lowers it.
pub(super) fn lower(batches: &mut [Batch], edges: &[Edge], nranks: usize) {
    if batches.len().pow(2).saturating_mul(nranks) > PAIRS {
        return;
    }
    let mut growths: Vec<Growth> = batches.iter().map(|batch| Growth::new(batch, edges)).collect();
    for _ in 0..PASSES {
        let mut changed = false;
        for rank in 0..nranks {
            for a in 0..batches.len() {
                for b in a + 1..batches.len() {
                    let (one, other) = (&batches[a], &batches[b]);
                    if one.weight != other.weight || [one.root, other.root].contains(&rank) {
                        continue;
                    }
                    let (from, to) = (edges[one.edge[rank]].from, edges[other.edge[rank]].from);
                    if growths[a].cost(rank, from, to) + growths[b].cost(rank, to, from) >= 0
                        || growths[a].is_below(to, rank, one, edges)
                        || growths[b].is_below(from, rank, other, edges)
                    {
                        continue;
                    }
                    let kept = batches[a].edge[rank];
                    batches[a].edge[rank] = std::mem::replace(&mut batches[b].edge[rank], kept);
                    for tree in [a, b] {
                        batches[tree].sort(edges);
                        growths[tree] = Growth::new(&batches[tree], edges);
                    }
                    changed = true;
                }
            }
        }
        if !changed {
            return;
        }
    }
}

/// The depth of each rank in a tree; the number of ranks at and below it, and the sum of their depths.
struct Growth {
    depth: Vec<i64>,
    size: Vec<i64>,
    sum: Vec<i64>,
}

impl Growth {
    fn new(batch: &Batch, edges: &[Edge]) -> Self {
        let nranks = batch.edge.len();
        let (mut depth, mut size) = (vec![0; nranks], vec![1; nranks]);
        for (rank, edge) in batch.edges() {
            depth[rank] = depth[edges[edge].from] + 1;
        }
        let mut sum = depth.clone();
        for (rank, edge) in batch.edges().rev() {
            size[edges[edge].from] += size[rank];
            sum[edges[edge].from] += sum[rank];
        }
        Self { depth, size, sum }
    }

    /// The change of the sum of squares if a rank gets another parent.
    fn cost(&self, rank: usize, parent: usize, other: usize) -> i64 {
        let more = self.depth[other] - self.depth[parent];
        more * (more * self.size[rank] + 2 * self.sum[rank])
    }

    /// Whether a rank is at or below another.
    fn is_below(&self, mut rank: usize, other: usize, batch: &Batch, edges: &[Edge]) -> bool {
        while self.depth[rank] > self.depth[other] {
            rank = edges[batch.edge[rank]].from;
        }
        rank == other
    }
}
