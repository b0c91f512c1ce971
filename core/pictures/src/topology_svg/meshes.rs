//! Circles of many ranks that are joined all to all. A disc represents their cables, since their lines could not be
//! told apart. Cables that differ from the most common kind are drawn as lines, and missing cables are marked.

use std::collections::BTreeMap;

use super::node_places::DrawnLayout;
use super::pairs::{Pair, Pairs, quality};
use roundelay_core::ids::RankId;
use roundelay_core::rational::Rat;
use roundelay_topology::{Fabric, LinkKind, NodeId};

/// The most ranks for which every cable is a line.
const FEW: usize = 16;
/// The most missing cables that are drawn.
const MISSING: usize = 400;

/// The cables of a part of the picture that are drawn as a disc.
#[derive(Debug)]
pub(super) struct Mesh {
    pub(super) block: usize,
    /// The text in the middle.
    pub(super) words: Vec<String>,
    /// The number of cables that the disc represents.
    pub(super) cables: usize,
    /// Pairs of ranks that are not joined.
    pub(super) missing: Vec<(RankId, RankId)>,
}

/// The kind of a cable, and its bandwidth and latency in each direction.
type Sort = (LinkKind, Option<(Rat, u64)>, Option<(Rat, u64)>);

fn sort(kind: LinkKind, pair: &Pair<'_>) -> Sort {
    let of = |link: Option<&roundelay_topology::Link>| link.map(|l| (l.capacity, l.latency));
    (kind, of(pair.there), of(pair.back))
}

/// Removes the cables of meshes from `pairs`, and returns the meshes.
pub(super) fn take(topology: &Fabric, layout: &DrawnLayout, pairs: &mut Pairs<'_>) -> Vec<Mesh> {
    let mut meshes = Vec::new();
    for block in (0..layout.blocks.len()).filter(|b| layout.blocks[*b].round) {
        let inside = |node: NodeId| layout.block[node.index()] == block;
        let ranks: Vec<_> = topology.ranks().filter(|rank| inside((*rank).into())).collect();
        let full = ranks.len() * ranks.len().saturating_sub(1) / 2;
        if ranks.len() <= FEW || pairs.len() * 4 < full * 3 {
            continue;
        }
        let within = |(a, b, _): &(NodeId, NodeId, LinkKind)| {
            [a, b].into_iter().all(|node| inside(*node) && topology.is_rank(*node))
        };
        let mut sorts: BTreeMap<Sort, usize> = BTreeMap::new();
        for (ends, pair) in pairs.iter().filter(|(ends, _)| within(ends)) {
            *sorts.entry(sort(ends.2, pair)).or_default() += 1;
        }
        let Some((common, count)) = sorts.into_iter().max_by_key(|(_, count)| *count) else {
            continue;
        };
        if count * 4 < full * 3 {
            continue;
        }
        let joined = |a: RankId, b: RankId| {
            let (a, b) = (NodeId::from(a), NodeId::from(b));
            let low = (a.min(b), a.max(b), common.0);
            pairs.contains_key(&low) || topology.out(a).iter().any(|link| link.to == b)
        };
        let each = ranks.iter().enumerate();
        let missing = each.flat_map(|(i, a)| ranks[i + 1..].iter().map(move |b| (*a, *b)));
        let mut missing: Vec<_> = missing.filter(|(a, b)| !joined(*a, *b)).collect();
        let mut words = vec!["all to all".to_owned()];
        let of = if count == full { String::new() } else { format!(" of {full}") };
        words.push(format!("{count}{of} cables"));
        words.extend(each_way(topology, &common));
        if missing.len() > MISSING {
            words.push(format!("{} are missing, and not marked", missing.len()));
            missing.clear();
        }
        pairs.retain(|ends, pair| !within(ends) || sort(ends.2, pair) != common);
        meshes.push(Mesh { block, words, cables: count, missing });
    }
    meshes
}

/// Returns the quality of all cables, if it is equal in both directions.
fn each_way(topology: &Fabric, (_, there, back): &Sort) -> Option<String> {
    let (capacity, latency) = there.filter(|_| there == back)?;
    Some(format!("{} each way", quality(topology, capacity, latency)))
}

/// Returns a disc for the cables within a part, if these are too many for lines.
pub(super) fn crowd(block: usize, cables: usize) -> Mesh {
    let words = vec![format!("{cables} cables"), "that are not drawn".to_owned()];
    Mesh { block, words, cables, missing: Vec::new() }
}
