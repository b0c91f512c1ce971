//! Random topologies with switches and uneven links.

use roundelay_core::collective::Collective::{
    AllGather, AllReduce, Broadcast, Reduce, ReduceScatter,
};
use roundelay_core::ids::RankId;
use roundelay_core::topology::packing::pack;

use super::graphs::{even, topology};
use super::{check, packed};
use crate::dice::Random;

fn run(seed: u64, times: u32) {
    let mut random = Random(seed);
    let (mut tried, mut evens) = (0, 0);
    while tried < times {
        let Some(topology) = topology(&mut random) else { continue };
        tried += 1;
        let n = topology.nranks();
        let root = RankId(random.below(n.into()) as u32);
        let trees = Some(1 + random.below(4) as u32);
        let even = even(&topology);
        evens += u32::from(even);
        let joined = |collective| match pack(&topology, n, collective, root, None) {
            Ok(packing) => check(&topology, collective, root, &packing),
            // Trees need ways through switches that send what they receive; of AllReduce, in both directions.
            Err(problem) => {
                assert_eq!(problem.code.as_str(), "E0603", "seed {seed}: {topology:?}");
            }
        };
        if topology.links().len() < 100 {
            joined(AllReduce);
        }
        for collective in [AllGather, ReduceScatter, Broadcast, Reduce] {
            if !even {
                joined(collective);
                continue;
            }
            let best = packed(&topology, collective, root, None);
            assert_eq!(best.per_byte, best.bound, "seed {seed}: {collective} on {topology:#?}");
            let few = packed(&topology, collective, root, trees);
            assert!(few.per_byte >= best.per_byte);
        }
    }
    println!("seed {seed}: {evens} even of {tried}");
    assert!(evens > tried / 2);
}

#[test]
fn even_switches_reach_the_bound() {
    run(1, 100);
}

#[test]
#[ignore = "long"]
fn many() {
    for seed in 2..12 {
        run(seed, 1000);
    }
}
