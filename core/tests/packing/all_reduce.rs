//! Trees of AllReduce, up and down at once.

use roundelay_core::collective::Collective::AllReduce;
use roundelay_core::ids::RankId;
use roundelay_core::topology::Topology;

use super::{machines, packed};

/// Time for each byte, the sum of the weights, and the share of the bound.
fn row(topology: &Topology, trees: Option<u32>) -> String {
    let start = std::time::Instant::now();
    let packing = packed(topology, AllReduce, RankId(0), trees);
    let depth = packing.trees.iter().map(|t| t.tree.depth()).max().unwrap();
    println!(
        "{}: {} sum {} trees {} depth {depth} share {:.5} {:?}",
        topology.name(),
        packing.per_byte,
        packing.per_root,
        packing.trees.len(),
        packing.share(),
        start.elapsed()
    );
    format!("{} {:.0} %", packing.per_byte, 100.0 * packing.share())
}

#[test]
fn unequal_shards_of_broken_meshes() {
    let rows = [
        ("full_mesh(8)", "1/4 100 %"),
        ("full_mesh(8) without (0, 1)", "7/27 100 %"),
        ("full_mesh(8) without (0, 1) without (2, 3)", "7/26 100 %"),
        ("full_mesh(8) without (0, 1) without (0, 2)", "7/26 100 %"),
        ("ring(8)", "7/4 100 %"),
        ("torus([4, 4])", ""),
        ("spine_leaf(2, 4, 2)", ""),
        ("islands(2, 4)", ""),
        ("crossbar(8)", ""),
        ("groups([8, 4], 25GB/s, 2us, 5GB/s, 7us)", ""),
    ];
    for (text, expected) in rows {
        let got = row(&text.parse().unwrap(), None);
        println!("   WANT {expected} GOT {got}");
    }
    row(&"full_mesh(8) without (0, 1)".parse().unwrap(), Some(4));
    row(&machines::dgx1(), None);
    row(&machines::mi250(1), None);
    row(&machines::a100(1), None);
    row(&machines::a100(2), None);
}
