//! Twins: ranks that cannot be told apart. One of them stands for all of its class in every question about the whole
//! graph.
//!
//! Two ranks are twins if exchanging them alone maps the graph to itself. That relation is an equivalence: exchanging
//! a and c is exchanging a and b, then b and c, then a and b again. So a flow or cut for one rank is a flow or cut of
//! equal value for its twins.

use std::collections::HashMap;

use crate::ids::RankId;
use crate::topology::{NodeId, Topology};

/// A link's other end, with its capacity and latency.
type End = (NodeId, crate::rational::Rat, u64);

/// The number of links, and their bandwidths.
type Outline = (usize, Vec<(u64, u64)>);

/// Returns the classes of twins among `ranks`, each in order; in order of their first rank. `fixed` stands for no
/// other rank, though another may stand for it.
pub(super) fn classes(
    topology: &Topology,
    ranks: &[RankId],
    fixed: Option<RankId>,
) -> Vec<Vec<RankId>> {
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

#[cfg(test)]
mod tests {
    use super::classes;
    use crate::ids::RankId;
    use crate::rational::Rat;
    use crate::topology::draft::Draft;
    use crate::topology::{Link, LinkKind, NodeId, Topology};

    fn directed(links: &[(u32, u32, u64, u64)], nranks: u64) -> Topology {
        let mut draft = Draft::new("test", nranks, true).unwrap();
        for (from, to, capacity, latency) in links {
            let (from, to, latency) = (NodeId(*from), NodeId(*to), *latency);
            let capacity = Rat::whole(*capacity);
            draft.link(Link { from, to, kind: LinkKind::NvLink, capacity, latency }).unwrap();
        }
        draft.build().unwrap()
    }

    fn swapped(topology: &Topology, a: u32, b: u32) -> Vec<(u32, u32, Rat, u64)> {
        let map = |node: NodeId| match node.0 {
            n if n == a => b,
            n if n == b => a,
            n => n,
        };
        let mut links: Vec<_> = topology
            .links()
            .iter()
            .map(|l| (map(l.from), map(l.to), l.capacity, l.latency))
            .collect();
        links.sort_unstable();
        links
    }

    /// Two ranks share a class exactly where exchanging them maps the graph to itself.
    #[test]
    fn twins_are_those_that_may_change_places() {
        let mut state = 3_u64;
        let mut below = |n: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % n
        };
        let mut pairs = 0;
        for _ in 0..400 {
            let n = 2 + below(4) as u32;
            // Nearly all links are equal, so that one difference decides.
            let mut links = Vec::new();
            for from in 0..n {
                for to in (0..n).filter(|to| *to != from) {
                    links.push((from, to, 1 + u64::from(below(9) == 0), u64::from(below(12) == 0)));
                }
            }
            let topology = directed(&links, n.into());
            let ranks: Vec<_> = (0..n).map(RankId).collect();
            let classes = classes(&topology, &ranks, None);
            let class = |r: u32| classes.iter().position(|c| c.contains(&RankId(r)));
            for a in 0..n {
                for b in 0..a {
                    let twins = swapped(&topology, a, b) == swapped(&topology, a, a);
                    assert_eq!(class(a) == class(b), twins, "{a} and {b} of {topology:#?}");
                    pairs += usize::from(twins);
                }
            }
        }
        assert!(pairs > 200, "only {pairs} twins among the dice");
    }

    #[test]
    fn what_is_fixed_stands_for_nobody_else() {
        let mesh: Topology = "full_mesh(4)".parse().unwrap();
        let ranks: Vec<_> = (0..4).map(RankId).collect();
        let names = |fixed| {
            let classes = classes(&mesh, &ranks, fixed).into_iter();
            classes.map(|c| c.into_iter().map(|r| r.0).collect::<Vec<_>>()).collect::<Vec<_>>()
        };
        assert_eq!(names(None), [vec![0, 1, 2, 3]]);
        assert_eq!(names(Some(RankId(0))), [vec![0], vec![1, 2, 3]]);
        assert_eq!(names(Some(RankId(2))), [vec![0, 1, 2, 3]]);
    }
}
