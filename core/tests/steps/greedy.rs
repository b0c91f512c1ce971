//! Schedules of greedy matching.

use roundelay_core::topology::Topology;
use roundelay_topology::Fabric;
use std::time::Instant;

use roundelay_core::collective::Collective::{
    self, AllGather, AllReduce, Broadcast, Reduce, ReduceScatter,
};
use roundelay_core::ids::RankId;
use roundelay_synthesis::steps::{SendList, Spread, greedy};
use roundelay_topology::bounds::bound;

use super::proved;
use crate::packing::graphs::topology;
use crate::packing::machines;
use fastrand::Rng;

const ALL: [Collective; 5] = [AllGather, ReduceScatter, AllReduce, Broadcast, Reduce];

fn send_list(topology: &Fabric, collective: Collective, chunks: u32, bytes: u64) -> SendList {
    greedy(topology, topology.nranks(), collective, RankId(0), chunks, bytes, 1).unwrap()
}

/// Machines, each with the least share of the bound that an AllGather of six chunks a rank reaches.
#[test]
fn machines_of_all_kinds() {
    let parse = |text: &str| Fabric::from(text.parse::<Topology>().unwrap());
    let all = [
        (machines::dgx1(), 0.66),
        (parse("ring(8)"), 0.99),
        (parse("full_mesh(8) without (0, 1)"), 0.99),
        (parse("islands(2, 8)"), 0.99),
        (parse("islands(2, 8, 100GB/s, 1us, 12GB/s, 5us)"), 0.4),
        (parse("groups([4, 4], 100GB/s, 1us, 25GB/s, 3us)"), 0.4),
        (parse("crossbar(6)"), 0.99),
        (parse("torus([4, 4])"), 0.95),
        (machines::ndv2(2), 0.0),
        (machines::dgx2_pair(), 0.0),
        (machines::a100(2), 0.4),
        (machines::mi250(1), 0.4),
    ];
    let bytes = 1 << 20;
    for (topology, least) in all {
        let (name, n) = (topology.name(), topology.nranks());
        for (collective, chunks) in ALL.into_iter().flat_map(|c| [(c, 1), (c, 6)]) {
            let list = send_list(&topology, collective, chunks, bytes / u64::from(chunks));
            let Some(seconds) = proved(&topology, &list, bytes) else { continue };
            if (collective, chunks) == (AllGather, 6) {
                let bound = bound(&topology, n, collective, RankId(0)).unwrap();
                let share = bound.seconds(bytes * u64::from(n)) / seconds;
                println!("{name}: {share:.3}");
                assert!(share >= least, "{name}: {share}");
            }
        }
    }
}

/// Proves schedules of all collectives on random topologies with switches and uneven links.
fn random(seed: u64, times: u32) {
    let mut random = Rng::with_seed(seed);
    let mut tried = 0;
    while tried < times {
        let Some(topology) = topology(&mut random).filter(|t| t.nranks() <= 12) else { continue };
        tried += 1;
        let n = topology.nranks();
        let root = RankId(random.u32(..n));
        let chunks = 1 + random.u64(..3) as u32;
        let collective = ALL[random.u64(..5) as usize];
        let found = greedy(&topology, n, collective, root, chunks, 1 << 10, seed).unwrap();
        assert_eq!(greedy(&topology, n, collective, root, chunks, 1 << 10, seed).unwrap(), found);
        for spread in found.up.iter().chain(&found.down) {
            spread.check().unwrap();
        }
        proved(&topology, &found, 1 << 12);
    }
}

#[test]
fn random_topologies() {
    random(1, 300);
}

#[test]
#[ignore = "long"]
fn many_random_topologies() {
    for seed in 2..12 {
        random(seed, 1000);
    }
}

#[test]
fn a_seed_decides() {
    let topology = machines::mi250(1);
    let list = |seed| greedy(&topology, 16, AllGather, RankId(0), 2, 1 << 10, seed).unwrap();
    assert_eq!(list(7), list(7));
    assert_ne!(list(7), list(8));
}

#[test]
fn wrong_rounds_are_told() {
    let found = send_list(&machines::dgx1(), AllGather, 1, 1 << 10).down.unwrap();
    found.check().unwrap();
    let told = |change: fn(&mut Spread)| {
        let mut wrong = found.clone();
        change(&mut wrong);
        wrong.check().unwrap_err().to_string()
    };
    let missing = told(|wrong| wrong.rounds.last_mut().unwrap().truncate(1));
    assert!(missing.contains("does not reach all ranks"), "{missing}");
    let early = told(|wrong| wrong.rounds.rotate_left(1));
    assert!(early.contains("the sender lacks the chunk"), "{early}");
    let at_once = told(|wrong| wrong.rounds = vec![wrong.rounds.concat()]);
    assert!(at_once.contains("the sender lacks the chunk"), "{at_once}");
    let twice = told(|wrong| wrong.rounds.push(wrong.rounds[0].clone()));
    assert!(twice.contains("the receiver has the chunk"), "{twice}");
}

#[test]
fn wrong_questions_are_refused() {
    let ring: Topology = "ring(8)".parse().unwrap();
    let code = |n, collective, root, chunks| {
        let problem = greedy(&ring, n, collective, RankId(root), chunks, 1 << 10, 1).unwrap_err();
        problem.code.as_str()
    };
    assert_eq!(code(9, AllGather, 0, 1), "E0604");
    assert_eq!(code(8, Broadcast, 8, 1), "E0204");
    assert_eq!(code(8, AllGather, 0, 0), "E0211");
    assert_eq!(code(8, Collective::AllToAll, 0, 1), "E0211");
    assert_eq!(code(8, AllGather, 0, 1 << 20), "E0601");
    // The way between the first two ranks passes through the third.
    let line: Topology = "full_mesh(3) without (0, 1)".parse().unwrap();
    let problem = greedy(&line, 2, AllGather, RankId(0), 1, 1 << 10, 1).unwrap_err();
    assert_eq!(problem.code.as_str(), "E0603");
    // A run of one rank sends nothing.
    let one = greedy(&line, 1, AllReduce, RankId(0), 2, 1 << 10, 1).unwrap();
    assert_eq!(one.down.unwrap().rounds.len(), 0);
}

#[test]
fn one_rank_alone() {
    let one: Topology = "full_mesh(1)".parse().unwrap();
    for collective in ALL {
        assert_eq!(proved(&one, &send_list(&one, collective, 2, 1 << 10), 1 << 10), Some(0.0));
    }
}

#[test]
#[ignore = "timings"]
fn many_ranks() {
    let shapes = [
        "ring(64)",
        "full_mesh(64)",
        "crossbar(64)",
        "torus([8, 8])",
        "islands(8, 8, 100GB/s, 1us, 12GB/s, 5us)",
        "spine_leaf(8, 8, 4, 2)",
        "groups([32, 32], 100GB/s, 1us, 25GB/s, 3us)",
    ];
    for shape in shapes {
        let topology: Topology = shape.parse().unwrap();
        for chunks in [1, 4] {
            let start = Instant::now();
            let list = send_list(&topology, AllGather, chunks, 1 << 20);
            let took = start.elapsed();
            let start = Instant::now();
            let rounds = list.down.as_ref().unwrap().rounds.len();
            println!(
                "{shape} x{chunks}: {took:?} {rounds} rounds, page of {} bytes",
                list.page("Found").len()
            );
            if chunks == 1 {
                let seconds = proved(&topology, &list, 1 << 20).unwrap();
                println!("{shape} {seconds:.3e} s; proof and simulation {:?}", start.elapsed());
            }
        }
    }
}
