//! Pages of packed trees on random topologies: each compiles, is proved, and runs over the links of its topology.

use roundelay_topology::Fabric;
use std::sync::Arc;
use std::time::Instant;

use roundelay_core::collective::Collective::{
    self, AllGather, AllReduce, Broadcast, Reduce, ReduceScatter,
};
use roundelay_core::dtype::DType;
use roundelay_core::ids::RankId;
use roundelay_core::optimize::join;
use roundelay_core::prove;
use roundelay_simulate::{Machine, simulate};
use roundelay_synthesis::packing::{Packing, pack, pack_at_once};
use roundelay_synthesis::tree_page::TreesPage;

use crate::graphs::{even, topology};
use crate::sources::algorithms;
use fastrand::Rng;

/// The collectives, by turns.
const ALL: [Collective; 5] = [AllGather, ReduceScatter, Broadcast, Reduce, AllReduce];
/// Elements of a simulated run.
const COUNT: u64 = 1 << 16;

/// Proves the page of a packing, and simulates its run.
fn proved(topology: &Fabric, collective: Collective, root: RankId, packing: &Packing) {
    let n = topology.nranks();
    let head = &[];
    let page = TreesPage { collective, root, packing, topology: None, slices: 2, head }.text();
    let algorithm = algorithms("packed.coll", &page).remove(0);
    let proved = prove(&algorithm, n);
    let proved = proved.unwrap_or_else(|found| panic!("{found:#?}\n{page}"));
    let machine = Machine::new(Arc::new(topology.clone().into()));
    let elements = COUNT / u64::from(n) * u64::from(n);
    // It refuses a move between ranks that are not linked.
    let run = simulate(&join(proved.schedule()), &machine, elements, DType::F32, false);
    let run = run.unwrap_or_else(|found| panic!("{found:#?}\n{page}"));
    assert!(n == 1 || run.seconds > 0.0);
}

/// Packs trees on random topologies, one collective each by turns, and proves their pages.
fn run(seed: u64, times: usize, most: u32) {
    let mut random = Rng::with_seed(seed);
    let start = Instant::now();
    let (mut tried, mut evens, mut best, mut largest) = (0, 0, 0, (0, 0, 0));
    while tried < times {
        let Some(topology) = topology(&mut random).filter(|t| t.nranks() <= most) else { continue };
        let n = topology.nranks();
        let collective = ALL[tried % ALL.len()];
        let root = RankId(random.u32(..n));
        // Few trees, of a third of the topologies.
        let trees = Some(1 + random.u64(..4) as u32).filter(|_| tried % 3 == 0);
        let even = even(&topology);
        tried += 1;
        let both = collective == AllReduce && tried % 2 == 0;
        let found = if both {
            pack_at_once(&topology, n, trees)
        } else {
            pack(&topology, n, collective, root, trees)
        };
        let packing = match found {
            Ok(packing) => packing,
            // Trees need ways through switches that send what they receive; of AllReduce, in both directions.
            Err(problem) => {
                assert!(!even || collective == AllReduce, "seed {seed}: {problem}: {topology:?}");
                let code = problem.code.as_str();
                assert_eq!(code, "E0603", "seed {seed}: {problem}: {topology:?}");
                continue;
            }
        };
        evens += usize::from(even);
        assert!(packing.per_byte >= packing.bound, "seed {seed}: {collective} on {topology:?}");
        if even && trees.is_none() && collective != AllReduce {
            assert_eq!(
                packing.per_byte, packing.bound,
                "seed {seed}: {collective} on {topology:?}"
            );
            best += 1;
        }
        largest = largest.max((packing.trees.len(), n, tried));
        proved(&topology, collective, root, &packing);
    }
    println!(
        "seed {seed}: {tried} tried, {evens} even, {best} at the bound, the most trees {largest:?}, {:?}",
        start.elapsed()
    );
    assert!(best > tried / 5);
}

#[test]
fn pages_of_random_topologies_are_proved() {
    run(1, 60, 16);
}

#[test]
#[ignore = "long"]
fn many_pages_of_random_topologies_are_proved() {
    for seed in 2..12 {
        run(seed, 1000, 16);
    }
}
