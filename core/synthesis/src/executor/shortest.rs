//! Shortest trees of several roots that together load all links alike. Packed trees use links as well as any, but may be
//! deep, and each level costs a beat.

use std::collections::{BTreeMap, BTreeSet};

use roundelay_core::ids::RankId;
use roundelay_core::topology::Topology;
use roundelay_topology::search::disjoint_trees::SpanningTree;

use super::waves::Weighted;

/// The most parts of the data that trees are chosen for, one after the other.
const PARTS: u32 = 512;

/// The roots of trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Roots {
    /// The ranks that are the nearest to all others.
    Central,
    /// All ranks.
    All,
}

/// The ranks by their distance from the first one.
type Levels = Vec<Vec<RankId>>;

/// Returns shortest trees with weights, over links with both directions; none where these do not join all ranks.
///
/// Part by part, the root and the parents are taken whose links cost the least: a link costs twice as much for each part
/// that it has. Of all numbers of parts, the one is taken whose fullest link has the least share of the data.
pub fn trees(topology: &Topology, roots: Roots) -> Vec<Weighted> {
    let nranks = topology.nranks() as usize;
    let ranks: Vec<RankId> = topology.ranks().collect();
    let both = |a: RankId, b: RankId| topology.are_linked(a, b) && topology.are_linked(b, a);
    let row = |a: &RankId| ranks.iter().map(|b| both(*a, *b)).collect();
    let linked: Vec<Vec<bool>> = ranks.iter().map(row).collect();
    let all: Option<Vec<Levels>> = ranks.iter().map(|root| levels(&linked, *root)).collect();
    let Some(mut all) = all else { return Vec::new() };
    if roots == Roots::Central {
        let least = all.iter().map(Vec::len).min();
        all.retain(|levels| Some(levels.len()) == least);
    }
    let mut load = vec![vec![0_u32; nranks]; nranks];
    let mut chosen: Vec<SpanningTree> = Vec::new();
    let (mut best, mut parts) = (f64::INFINITY, 0);
    for part in 1..=PARTS {
        let trees = all.iter().map(|levels| cheapest(&linked, levels, &load));
        let next = trees.reduce(|best, tree| if tree.0 < best.0 { tree } else { best });
        let Some((_, tree)) = next else { break };
        for (rank, parent) in tree.parent.iter().enumerate() {
            if let Some(parent) = parent {
                load[rank][parent.index()] += 1;
                load[parent.index()][rank] += 1;
            }
        }
        chosen.push(tree);
        let fullest = load.iter().flatten().max().copied().unwrap_or(0);
        let share = f64::from(fullest) / f64::from(part);
        if share < best * 0.9999 {
            (best, parts) = (share, part as usize);
        }
    }
    let mut weights: BTreeMap<(RankId, Vec<Option<RankId>>), u64> = BTreeMap::new();
    for tree in chosen.into_iter().take(parts) {
        *weights.entry((tree.root, tree.parent)).or_default() += 1;
    }
    let tree = |((root, parent), weight)| (SpanningTree { root, parent }, weight);
    weights.into_iter().map(tree).collect()
}

/// Returns the levels of a root; `None` where a rank is not reached.
fn levels(linked: &[Vec<bool>], root: RankId) -> Option<Levels> {
    let ranks = (0..linked.len() as u32).map(RankId);
    let mut rest: BTreeSet<RankId> = ranks.filter(|rank| *rank != root).collect();
    let mut levels = vec![vec![root]];
    while !rest.is_empty() {
        let last = &levels[levels.len() - 1];
        let near = |rank: &RankId| last.iter().any(|above| linked[above.index()][rank.index()]);
        let next: Vec<RankId> = rest.iter().copied().filter(near).collect();
        if next.is_empty() {
            return None;
        }
        rest.retain(|rank| !next.contains(rank));
        levels.push(next);
    }
    Some(levels)
}

/// Returns the shortest tree of a root that costs the least, and its cost. Of equal parents, roots take different ones.
fn cheapest(linked: &[Vec<bool>], levels: &Levels, load: &[Vec<u32>]) -> (f64, SpanningTree) {
    let (nranks, root) = (load.len(), levels[0][0]);
    let mut parents = vec![None; nranks];
    let mut cost = 0.0;
    for (above, level) in levels.iter().zip(&levels[1..]) {
        for rank in level {
            let turned = |of: RankId| (of.index() + nranks - root.index()) % nranks;
            let loaded = |of: RankId| load[of.index()][rank.index()];
            let near = |above: &RankId| linked[above.index()][rank.index()];
            let near = above.iter().copied().filter(near);
            let parent = near.min_by_key(|above| (loaded(*above), turned(*above)));
            cost += parent.map_or(0.0, |parent| f64::from(loaded(parent)).exp2());
            parents[rank.index()] = parent;
        }
    }
    (cost, SpanningTree { root, parent: parents })
}
