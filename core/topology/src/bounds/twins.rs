//! Twins: ranks that cannot be told apart. One of them stands for all of its class in every question about the whole
//! graph.
//!
//! Two ranks are twins if exchanging them alone maps the graph to itself. That relation is an equivalence: exchanging
//! a and c is exchanging a and b, then b and c, then a and b again. So a flow or cut for one rank is a flow or cut of
//! equal value for its twins.

use std::collections::HashMap;

use crate::{Fabric, NodeId};
use roundelay_base::ids::RankId;

/// A link's other end, with its capacity and latency.
type End = (NodeId, roundelay_base::rational::Rat, u64);

/// The number of links, and their bandwidths.
type Outline = (usize, Vec<(u64, u64)>);

/// Returns the classes of twins among `ranks`, each in order; in order of their first rank. `fixed` stands for no
/// other rank, though another may stand for it.
pub fn classes(topology: &Fabric, ranks: &[RankId], fixed: Option<RankId>) -> Vec<Vec<RankId>> {
    let mut into: Vec<Vec<End>> = vec![Vec::new(); topology.nodes().len()];
    for link in topology.links() {
        into[link.to.index()].push((link.from, link.capacity, link.latency));
    }
    let out = |rank: RankId| -> Vec<End> {
        topology.out(rank.into()).iter().map(|l| (l.to, l.capacity, l.latency)).collect()
    };
    let mut classes: Vec<Vec<RankId>> = Vec::new();
    // Only ranks of equal degree and bandwidth can be twins.
    let mut alike: HashMap<Outline, Vec<usize>> = HashMap::new();
    for &rank in ranks {
        let ends = out(rank);
        let mut capacities: Vec<_> = ends.iter().map(|e| (e.1.num(), e.1.den())).collect();
        capacities.sort_unstable();
        capacities.dedup();
        let known = alike.entry((ends.len(), capacities)).or_default();
        let twin = known.iter().copied().find(|class| {
            let other = classes[*class][0];
            let both = |a: &[End], b: &[End]| same(a, b, rank, other);
            Some(other) != fixed
                && both(&ends, &out(other))
                && both(&into[rank.index()], &into[other.index()])
        });
        match twin {
            Some(class) => classes[class].push(rank),
            None => {
                known.push(classes.len());
                classes.push(vec![rank]);
            }
        }
    }
    classes
}

/// Whether the ends of `a`'s links are those of `b`'s, when a and b are exchanged.
fn same(ends_a: &[End], ends_b: &[End], a: RankId, b: RankId) -> bool {
    let (a, b) = (NodeId::from(a), NodeId::from(b));
    if ends_a.len() != ends_b.len() {
        return false;
    }
    let mut rest_a = ends_a.iter().filter(|e| e.0 != b);
    let mut rest_b = ends_b.iter().filter(|e| e.0 != a);
    let mutual = |ends: &[End], with: NodeId| -> Vec<_> {
        ends.iter().filter(|e| e.0 == with).map(|e| (e.1, e.2)).collect()
    };
    mutual(ends_a, b) == mutual(ends_b, a) && {
        loop {
            match (rest_a.next(), rest_b.next()) {
                (None, None) => break true,
                (x, y) if x == y => {}
                _ => break false,
            }
        }
    }
}
