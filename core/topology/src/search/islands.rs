//! A ring that leaves an island only after all its ranks: ranks that are joined by a better kind of link follow each
//! other, and the ring crosses to the next island once.
//!
//! Any ring would do for an algorithm; this one loads the slow links least.

use super::hamilton::is_ring;
use super::pairs::Pairs;
use roundelay_base::ids::RankId;

/// An entry into an island, and the part of the ring before it.
#[derive(Clone, Copy)]
struct Entrance {
    entry: RankId,
    /// Entry and exit of the island before.
    before: Option<(RankId, RankId)>,
}

/// Returns a ring over `pairs` through the islands that `better` pairs make, in order of their first ranks. `None`
/// where there is one island, one of them lacks a link inside, or the islands in that order are not joined.
pub(super) fn ring(better: &Pairs, pairs: &Pairs) -> Option<Vec<RankId>> {
    let islands = islands(better);
    if islands.len() < 2 || islands.iter().any(|island| !complete(better, island)) {
        return None;
    }
    let found = islands[0].iter().find_map(|start| entrances(&islands, pairs, *start))?;
    let mut order = Vec::new();
    for (island, (entry, exit)) in islands.iter().zip(found) {
        order.push(entry);
        order.extend(island.iter().copied().filter(|r| *r != entry && *r != exit));
        if exit != entry {
            order.push(exit);
        }
    }
    let first = order.iter().position(|rank| *rank == RankId(0))?;
    order.rotate_left(first);
    is_ring(pairs, &order).then_some(order)
}

/// Returns entry and exit of each island, for a ring that enters the first at `start`.
fn entrances(
    islands: &[Vec<RankId>],
    pairs: &Pairs,
    start: RankId,
) -> Option<Vec<(RankId, RankId)>> {
    let mut layers = vec![vec![Entrance { entry: start, before: None }]];
    for (i, island) in islands.iter().enumerate() {
        let next = &islands[(i + 1) % islands.len()];
        let mut reached: Vec<Entrance> = Vec::new();
        for entrance in &layers[i] {
            // Exits are tried from the far end, so that an island is walked in order.
            for exit in island.iter().rev().filter(|r| **r != entrance.entry || island.len() == 1) {
                for entry in next.iter().filter(|entry| pairs.has(*exit, **entry)) {
                    if reached.iter().all(|known| known.entry != *entry) {
                        let before = Some((entrance.entry, *exit));
                        reached.push(Entrance { entry: *entry, before });
                    }
                }
            }
            if reached.len() == next.len() {
                break;
            }
        }
        layers.push(reached);
    }
    let mut entry = start;
    let mut found = Vec::new();
    for layer in layers[1..].iter().rev() {
        let entrance = layer.iter().find(|entrance| entrance.entry == entry)?;
        let (came, exit) = entrance.before?;
        found.push((came, exit));
        entry = came;
    }
    found.reverse();
    (entry == start).then_some(found)
}

/// Returns the connected sets of ranks, each in order.
fn islands(pairs: &Pairs) -> Vec<Vec<RankId>> {
    let mut seen = vec![false; pairs.nranks() as usize];
    let mut islands = Vec::new();
    for rank in pairs.ranks() {
        if seen[rank.index()] {
            continue;
        }
        seen[rank.index()] = true;
        let mut island = vec![rank];
        let mut at = 0;
        while let Some(&member) = island.get(at) {
            at += 1;
            for to in pairs.out(member) {
                if !std::mem::replace(&mut seen[to.index()], true) {
                    island.push(to);
                }
            }
        }
        island.sort_unstable();
        islands.push(island);
    }
    islands
}

fn complete(pairs: &Pairs, island: &[RankId]) -> bool {
    island.iter().all(|a| island.iter().all(|b| a == b || pairs.has(*a, *b)))
}
