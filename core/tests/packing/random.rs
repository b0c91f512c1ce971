//! Random topologies with switches and uneven links.

use roundelay_core::collective::Collective::{
    AllGather, AllReduce, Broadcast, Reduce, ReduceScatter,
};
use roundelay_core::ids::RankId;
use roundelay_synthesis::packing::{pack, pack_at_once};

use super::graphs::{even, topology};
use super::{check, packed};
use fastrand::Rng;

fn run(seed: u64, times: u32) {
    let mut random = Rng::with_seed(seed);
    let (mut tried, mut evens, mut at_once, mut reached) = (0, 0, [0, 0], 0);
    let mut shares = Vec::new();
    while tried < times {
        let Some(topology) = topology(&mut random) else { continue };
        tried += 1;
        let n = topology.nranks();
        let root = RankId(random.u32(..n));
        let trees = Some(1 + random.u64(..4) as u32);
        let even = even(&topology);
        evens += u32::from(even);
        if topology.links().len() < 100 {
            match pack(&topology, n, AllReduce, root, None) {
                Ok(packing) => check(&topology, AllReduce, root, &packing),
                // Trees up and then down need ways in both directions.
                Err(problem) => {
                    assert_eq!(problem.code.as_str(), "E0603", "seed {seed}: {topology:?}");
                }
            }
            for trees in [None, trees] {
                let found = match (pack_at_once(&topology, n, trees), trees) {
                    (Err(problem), Some(_)) if problem.code.as_str() == "E0603" => continue,
                    (found, _) => {
                        found.unwrap_or_else(|p| panic!("seed {seed}: {p}: {topology:?}"))
                    }
                };
                check(&topology, AllReduce, root, &found);
                let least = found.per_byte == found.bound;
                // All partitions are tried for their bound, and links that are equal both ways reach it.
                if trees.is_none() && n <= 10 {
                    let equal = topology.links() == topology.reverse().links();
                    assert!(least || !equal, "seed {seed}: {found:?} on {topology:?}");
                    at_once[usize::from(equal)] += 1;
                    reached += u32::from(least && !equal);
                    shares.push(found.share());
                }
            }
        }
        for collective in [AllGather, ReduceScatter, Broadcast, Reduce] {
            // A part of the links of other switches: most often all that they are good for.
            if !even {
                let found = packed(&topology, collective, root, None);
                shares.push(found.share());
                continue;
            }
            let best = packed(&topology, collective, root, None);
            assert_eq!(best.per_byte, best.bound, "seed {seed}: {collective} on {topology:#?}");
            let few = packed(&topology, collective, root, trees);
            assert!(few.per_byte >= best.per_byte);
        }
    }
    let below = shares.iter().filter(|share| **share < 1.0);
    println!(
        "seed {seed}: {evens} even of {tried}; at once {at_once:?}, {reached} of the first at the bound; \
         of {} uneven ones below it: {:.3?}",
        shares.len(),
        below.collect::<Vec<_>>(),
    );
    // No algorithm may reach the bound where a switch would have to copy.
    assert!(reached * 10 >= at_once[0] * 9 && shares.iter().all(|share| *share > 0.5));
    assert!(evens > tried / 2 && at_once[1] > tried / 10);
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
