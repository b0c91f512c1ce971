//! Machines whose optimum is known.

use roundelay_core::collective::Collective::{AllGather, Broadcast, Reduce, ReduceScatter};
use roundelay_core::ids::RankId;
use roundelay_core::topology::Topology;

use super::{algbw, machines, packed};

fn gather(topology: &Topology, trees: Option<u32>) -> (u64, String) {
    let start = std::time::Instant::now();
    let packing = packed(topology, AllGather, RankId(0), trees);
    let depth = packing.trees.iter().map(|t| t.tree.depth()).max().unwrap();
    println!(
        "{} {trees:?}: k {} batches {} depth {depth} bw {:.3} share {:.3} {:?}",
        topology.name(),
        packing.per_root,
        packing.trees.len(),
        algbw(&packing),
        packing.share(),
        start.elapsed()
    );
    (packing.per_root, format!("{:.3} {:.0} %", algbw(&packing), 100.0 * packing.share()))
}

/// A mesh without a cable, by the number of trees.
#[test]
fn few_trees_of_a_broken_mesh() {
    let mesh: Topology = "full_mesh(8) without (0, 1)".parse().unwrap();
    let rows = [None, Some(4), Some(3), Some(2), Some(1)].map(|trees| gather(&mesh, trees));
    let expected = [
        (6, "6.857 100 %"),
        (4, "6.400 93 %"),
        (3, "6.000 88 %"),
        (2, "5.333 78 %"),
        (1, "4.000 58 %"),
    ];
    assert_eq!(rows, expected.map(|(trees, row)| (trees, row.to_owned())));
}

#[test]
fn machines_reach_their_bound() {
    let rows = [
        (machines::dgx1(), 6, "6.857"),
        (machines::ndv2(2), 1, "25.000"),
        (machines::ndv2(4), 1, "16.667"),
        (machines::dgx2_pair(), 10, "129.032"),
        (machines::a100(1), 1, "342.857"),
        (machines::a100(2), 13, "346.667"),
        (machines::mi250(1), 3, "342.857"),
    ];
    for (topology, trees, speed) in rows {
        let found = gather(&topology, None);
        assert_eq!(found, (trees, format!("{speed} 100 %")), "{}", topology.name());
    }
    assert_eq!(gather(&machines::mi250(1), Some(1)).1, "266.667 78 %");
    assert_eq!(gather(&machines::a100(2), Some(1)).1, "342.857 99 %");
}

#[test]
#[ignore]
fn large() {
    assert_eq!(gather(&machines::mi250(2), None), (83, "354.133 100 %".to_owned()));
    for text in [
        "full_mesh(64)",
        "crossbar(64)",
        "ring(64)",
        "spine_leaf(4, 4, 2)",
        "spine_leaf(8, 8, 4)",
        "spine_leaf(8, 8, 4, 2)",
        "islands(4, 8, 200GB/s, 2us, 25GB/s, 5us)",
        "islands(16, 8, 200GB/s, 2us, 25GB/s, 5us)",
        "full_mesh(128)",
        "spine_leaf(16, 8, 4)",
        "spine_leaf(16, 8, 4, 2)",
    ] {
        gather(&text.parse().unwrap(), None);
        for collective in [Broadcast, Reduce, ReduceScatter] {
            let start = std::time::Instant::now();
            packed(&text.parse().unwrap(), collective, RankId(0), None);
            println!("{collective} {:?}", start.elapsed());
        }
    }
}
