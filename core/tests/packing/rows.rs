//! Machines whose optimum is known.

use roundelay_core::collective::Collective::{
    AllGather, AllReduce, AllToAll, Broadcast, Reduce, ReduceScatter,
};
use roundelay_core::ids::RankId;
use roundelay_core::topology::Topology;
use roundelay_synthesis::packing::pack;
use roundelay_topology::Fabric;

use super::{algbw, machines, packed};

/// The trees of each root, and the speed with its share of the bound.
fn gather(topology: &Fabric, trees: Option<u32>) -> (u64, String) {
    let packing = packed(topology, AllGather, RankId(0), trees);
    let depth = packing.trees.iter().map(|tree| tree.tree.depth()).max();
    println!("{}: depth {depth:?}, {} trees", topology.name(), packing.trees.len());
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

/// Where direct sends fit, all trees are stars.
#[test]
fn stars_under_switches() {
    for text in ["crossbar(8)", "spine_leaf(4, 4, 2)", "full_mesh(8)"] {
        let topology: Topology = text.parse().unwrap();
        let packing = packed(&topology, AllGather, RankId(0), None);
        assert!(packing.trees.iter().all(|tree| tree.tree.depth() == 1), "{text}");
        assert_eq!(packing.per_byte, packing.bound);
    }
}

/// 128 ranks behind leaves take seconds.
#[test]
#[ignore = "long"]
fn large_topologies_reach_their_bound() {
    assert_eq!(gather(&machines::mi250(2), None), (83, "354.133 100 %".to_owned()));
    for text in [
        "ring(64)",
        "islands(16, 8, 200GB/s, 2us, 25GB/s, 5us)",
        "full_mesh(128)",
        "spine_leaf(16, 8, 4)",
        "spine_leaf(16, 8, 4, 2)",
    ] {
        let topology: Topology = text.parse().unwrap();
        for collective in [AllGather, ReduceScatter, Broadcast, Reduce] {
            let start = std::time::Instant::now();
            let packing = pack(&topology, topology.nranks(), collective, RankId(0), None).unwrap();
            let depth = packing.trees.iter().map(|tree| tree.tree.depth()).max();
            println!("{collective} on {text}: depth {depth:?}, {:?}", start.elapsed());
            assert_eq!(packing.per_byte, packing.bound, "{collective} on {text}");
        }
    }
}

#[test]
fn runs_that_do_not_fit_are_refused() {
    let mesh: Topology = "full_mesh(4)".parse().unwrap();
    let code = |nranks, collective, root, trees| {
        let packing = pack(&mesh, nranks, collective, RankId(root), trees);
        packing.map(|packing| packing.trees.len()).map_err(|problem| problem.code.as_str())
    };
    assert_eq!(code(5, AllGather, 0, None), Err("E0604"));
    assert_eq!(code(4, Broadcast, 4, None), Err("E0204"));
    assert_eq!(code(0, AllGather, 0, None), Err("E0204"));
    assert_eq!(code(4, AllToAll, 0, None), Err("E0211"));
    assert_eq!(code(4, Reduce, 0, Some(0)), Err("E0211"));
    assert_eq!(code(1, AllGather, 0, None), Ok(1));
}

/// Ranks that are not in the run forward nothing: half of a ring is a line.
#[test]
fn other_ranks_forward_nothing() {
    let ring: Topology = "ring(8)".parse().unwrap();
    let packing = pack(&ring, 4, AllGather, RankId(0), None).unwrap();
    assert_eq!(packing.per_byte.to_string(), "3/4");
    let apart =
        pack(&"torus([2, 4])".parse::<Topology>().unwrap(), 3, AllGather, RankId(0), None).unwrap();
    assert_eq!(apart.per_byte.to_string(), "2/3");
}

/// Trees exchange edges until they are shallow.
#[test]
fn trees_are_shallow() {
    let depth =
        |topology: &Fabric, collective| packed(topology, collective, RankId(0), None).depth();
    assert_eq!(depth(&"full_mesh(8) without (0, 1)".parse::<Topology>().unwrap(), AllReduce), 3);
    assert_eq!(depth(&"spine_leaf(8, 8, 4, 2)".parse::<Topology>().unwrap(), AllGather), 4);
    assert_eq!(depth(&machines::dgx1(), AllGather), 2);
    assert_eq!(depth(&machines::a100(2), AllGather), 4);
}
