//! Flows and components against petgraph, on graphs too large to look at every cut.

use std::fmt::Write as _;

use petgraph::algo::{ford_fulkerson, kosaraju_scc};
use petgraph::graph::{DiGraph, NodeIndex};
use roundelay_topology::flow::{Network, UNLIMITED};

use fastrand::Rng;

#[test]
fn flows_are_those_of_another_library() {
    let mut random = Rng::with_seed(5);
    for _ in 0..60 {
        let nodes = 2 + random.u64(..40) as usize;
        let mut ours = Network::new(nodes);
        let mut theirs = DiGraph::<(), u64>::new();
        let index: Vec<NodeIndex> = (0..nodes).map(|_| theirs.add_node(())).collect();
        for _ in 0..random.u64(..6 * nodes as u64) {
            let (from, to) =
                (random.u64(..nodes as u64) as usize, random.u64(..nodes as u64) as usize);
            let capacity = random.u64(..1_000_000);
            if from != to {
                ours.arc(from, to, capacity.into());
                theirs.add_edge(index[from], index[to], capacity);
            }
        }
        let (expected, _) = ford_fulkerson(&theirs, index[0], index[nodes - 1]);
        assert_eq!(ours.max_flow(0, nodes - 1, UNLIMITED), u128::from(expected));
        // The cut that it names is as small as the flow is large.
        let side = ours.reach(0);
        let crossing = theirs
            .raw_edges()
            .iter()
            .filter(|e| side[e.source().index()] && !side[e.target().index()]);
        assert_eq!(crossing.map(|e| e.weight).sum::<u64>(), expected);
        assert_eq!(ours.max_flow(0, nodes - 1, 7), u128::from(expected.min(7)));
    }
}

#[test]
fn components_are_those_of_another_library() {
    let mut random = Rng::with_seed(17);
    let mut parts_seen = 0;
    for _ in 0..200 {
        let n = 2 + random.u64(..12);
        let cuts: Vec<_> =
            (0..random.u64(..n * n)).map(|_| (random.u64(..n), random.u64(..n))).collect();
        let mut text = format!("full_mesh({n})");
        let mut cut = vec![vec![false; n as usize]; n as usize];
        for (a, b) in cuts {
            if a != b && !cut[a as usize][b as usize] {
                (cut[a as usize][b as usize], cut[b as usize][a as usize]) = (true, true);
                let _ = write!(text, " without ({a}, {b})");
            }
        }
        let mut theirs = DiGraph::<(), ()>::new();
        let index: Vec<NodeIndex> = (0..n).map(|_| theirs.add_node(())).collect();
        for a in 0..n as usize {
            for b in 0..n as usize {
                if a != b && !cut[a][b] {
                    theirs.add_edge(index[a], index[b], ());
                }
            }
        }
        let expected = kosaraju_scc(&theirs).len();
        match text.parse::<roundelay_core::topology::Topology>() {
            Ok(_) => assert_eq!(expected, 1, "{text}"),
            Err(problem) => {
                let title = format!(
                    "the topology falls into {expected} parts that cannot reach each other"
                );
                assert_eq!(problem.title, title, "{text}");
                parts_seen += 1;
            }
        }
    }
    assert!(parts_seen > 20, "the dice gave {parts_seen} graphs in parts");
}
