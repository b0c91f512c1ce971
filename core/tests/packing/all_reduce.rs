//! Trees of AllReduce, up and then down, or both at once.

use roundelay_core::collective::Collective::AllReduce;
use roundelay_core::ids::RankId;
use roundelay_core::topology::Topology;
use roundelay_machines::links;
use roundelay_synthesis::packing::pack_at_once;
use roundelay_topology::Fabric;

use super::{machines, packed};

/// Time for each byte, and the share of the bound.
fn row(topology: &Fabric, trees: Option<u32>) -> String {
    let packing = packed(topology, AllReduce, RankId(0), trees);
    format!("{} {:.1} %", packing.per_byte, 100.0 * packing.share())
}

#[test]
fn shares_reach_the_bound_of_partitions() {
    let rows = [
        ("full_mesh(1)", "0 100.0 %"),
        ("full_mesh(8)", "1/4 100.0 %"),
        ("full_mesh(8) without (0, 1)", "7/27 100.0 %"),
        ("full_mesh(8) without (0, 1) without (2, 3)", "7/26 100.0 %"),
        ("full_mesh(8) without (0, 1) without (0, 2)", "7/26 100.0 %"),
        ("ring(8)", "7/8 100.0 %"),
        ("torus([4, 4])", "15/32 100.0 %"),
        ("spine_leaf(2, 4, 2)", "7/4 100.0 %"),
        ("islands(2, 4)", "7/8 100.0 %"),
        ("crossbar(8)", "7/4 100.0 %"),
        ("groups([8, 4], 25GB/s, 2us, 5GB/s, 7us)", "1/20000000000 100.0 %"),
    ];
    for (text, expected) in rows {
        assert_eq!(row(&text.parse::<Topology>().unwrap(), None), expected, "{text}");
    }
    // Trees that are few carry equal parts of the buffer.
    assert_eq!(
        row(&"full_mesh(8) without (0, 1)".parse::<Topology>().unwrap(), Some(4)),
        "1/2 51.9 %"
    );
}

#[test]
fn shares_on_machines() {
    assert_eq!(row(&machines::dgx1(), None), "7/24 100.0 %");
    assert_eq!(row(&machines::mi250(1), None), "7/1200 100.0 %");
    assert_eq!(row(&machines::a100(1), None), "7/1200 100.0 %");
    assert_eq!(row(&machines::a100(2), None), "3/520 100.0 %");
}

/// A link that is free while data goes up carries data down, so each link is full: no AllReduce is faster. For few trees,
/// the second row is theirs up and then down.
#[test]
fn up_and_down_at_once_reaches_the_bound() {
    let slow = links::read("slow", "ranks 4\n0 -- 1 1\n0 -- 3 3\n1 -- 3 2\n2 -- 3 3\n").unwrap();
    let at_once = |topology: &Fabric, trees| {
        let packing = pack_at_once(topology, topology.nranks(), trees).unwrap();
        format!("{} {:.1} %", packing.per_byte, 100.0 * packing.share())
    };
    assert_eq!(row(&slow, None), "2/5 83.3 %");
    assert_eq!(at_once(&slow, None), "1/3 100.0 %");
    let mesh = "full_mesh(8) without (0, 1)".parse::<Topology>().unwrap();
    assert_eq!(at_once(&mesh, Some(3)), "1/3 77.8 %");
    assert_eq!(row(&mesh, Some(3)), "2/3 38.9 %");
}

/// One rank of a machine sends to the other machines, and another one receives. Where the best parts of links are not
/// found, data goes up and down as in ReduceScatter and AllGather, and at once.
#[test]
fn links_of_one_direction_are_used_both_ways() {
    let packing = pack_at_once(&machines::ndv2(4), 32, None).unwrap();
    assert_eq!(format!("{} {:.1} %", packing.per_byte, 100.0 * packing.share()), "3/25 100.0 %");
    assert!(!packing.up.is_empty(), "other trees up than down");
}
