//! Twins against the definition: exchanging them maps the graph to itself.

use fastrand::Rng;
use roundelay_core::ids::RankId;
use roundelay_core::rational::Rat;
use roundelay_core::topology::Topology;
use roundelay_topology::Fabric;
use roundelay_topology::bounds::twins::classes;
use roundelay_topology::draft::Draft;
use roundelay_topology::{Link, LinkKind, NodeId};

fn directed(links: &[(u32, u32, u64, u64)], nranks: u64) -> Fabric {
    let mut draft = Draft::new("test", nranks, true).unwrap();
    for (from, to, capacity, latency) in links {
        let (from, to, latency) = (NodeId(*from), NodeId(*to), *latency);
        let capacity = Rat::whole(*capacity);
        draft.link(Link { from, to, kind: LinkKind::NvLink, capacity, latency }).unwrap();
    }
    draft.build().unwrap()
}

fn swapped(topology: &Fabric, a: u32, b: u32) -> Vec<(u32, u32, Rat, u64)> {
    let map = |node: NodeId| match node.0 {
        n if n == a => b,
        n if n == b => a,
        n => n,
    };
    let mut links: Vec<_> =
        topology.links().iter().map(|l| (map(l.from), map(l.to), l.capacity, l.latency)).collect();
    links.sort_unstable();
    links
}

/// Two ranks share a class exactly where exchanging them maps the graph to itself.
#[test]
fn twins_are_those_that_may_change_places() {
    let mut random = Rng::with_seed(3);
    let mut below = |n| random.u64(..n);
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
