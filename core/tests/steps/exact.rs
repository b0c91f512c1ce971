//! Exact searches, against the rows of SCCL.

use roundelay_core::topology::Topology;
use roundelay_topology::Fabric;
use std::time::Instant;

use roundelay_core::collective::Collective::{
    self, AllGather, AllReduce, Broadcast, Reduce, ReduceScatter,
};
use roundelay_core::ids::RankId;
use roundelay_synthesis::steps::{Answer, Send, Size, exact};
use roundelay_topology::{Link, NodeId};

use super::proved;
use crate::packing::machines;

/// Asks for a schedule of all ranks, and proves the one that is found.
fn ask(
    topology: &Fabric,
    collective: Collective,
    (chunks, steps, rounds): (u32, u32, u32),
) -> Answer {
    let size = Size { chunks, steps, rounds };
    let start = Instant::now();
    let answer =
        exact(topology, topology.nranks(), collective, RankId(0), size, 2_000_000).unwrap();
    let word = match &answer {
        Answer::Found(_) => "sat",
        Answer::None => "unsat",
        Answer::Unknown => "unknown",
    };
    println!(
        "{} {collective} {chunks},{steps},{rounds}: {word} {:?}",
        topology.name(),
        start.elapsed()
    );
    if let Answer::Found(found) = &answer {
        proved(topology, found, 1 << 20);
        for rounds in found.up.iter().chain(&found.down) {
            assert!(rounds.rounds.len() <= steps as usize);
        }
    }
    answer
}

fn is_found(answer: &Answer) -> bool {
    matches!(answer, Answer::Found(_))
}

#[test]
fn rows_of_sccl() {
    let dgx1 = machines::dgx1();
    let ring: Topology = "ring(8)".parse().unwrap();
    for size in [(1, 2, 2), (2, 2, 3), (2, 3, 3), (3, 4, 4), (3, 3, 4)] {
        assert!(is_found(&ask(&dgx1, AllGather, size)), "{size:?}");
    }
    assert_eq!(ask(&dgx1, AllGather, (3, 2, 4)), Answer::None);
    assert_eq!(ask(&dgx1, AllGather, (1, 1, 7)), Answer::None);
    assert_eq!(ask(&dgx1, AllGather, (6, 3, 6)), Answer::None);
    assert!(is_found(&ask(&dgx1, Broadcast, (2, 2, 2))));
    assert!(is_found(&ask(&dgx1, Reduce, (2, 2, 2))));
    assert!(is_found(&ask(&dgx1, ReduceScatter, (2, 2, 3))));
    assert!(is_found(&ask(&dgx1, AllReduce, (1, 2, 2))));
    for size in [(1, 4, 4), (2, 4, 7)] {
        assert!(is_found(&ask(&ring, AllGather, size)), "{size:?}");
    }
    assert_eq!(ask(&ring, AllGather, (1, 3, 4)), Answer::None);
    assert_eq!(ask(&ring, AllGather, (2, 4, 6)), Answer::None);
}

#[test]
#[ignore = "long"]
fn long_rows_of_sccl() {
    let dgx1 = machines::dgx1();
    for size in [(4, 3, 5), (5, 3, 6), (6, 3, 5), (6, 3, 7)] {
        ask(&dgx1, if size.2 == 5 && size.0 == 6 { Broadcast } else { AllGather }, size);
    }
}

/// A link carries no more in a step than its rounds allow, and the rounds of all steps are those that were asked for.
#[test]
fn links_have_room() {
    let dgx1 = machines::dgx1();
    for (chunks, steps, rounds) in [(1, 2, 2), (2, 2, 3), (3, 3, 4)] {
        let Answer::Found(found) = ask(&dgx1, AllGather, (chunks, steps, rounds)) else { panic!() };
        let needed = found.down.unwrap().rounds.into_iter().map(|sends| {
            let load = |link: &Link| {
                let of =
                    |s: &&Send| (NodeId::from(s.from), NodeId::from(s.to)) == (link.from, link.to);
                (sends.iter().filter(of).count() as u64).div_ceil(link.capacity.num())
            };
            dgx1.links().iter().map(load).max().unwrap()
        });
        assert!(needed.sum::<u64>() <= u64::from(rounds));
    }
}

#[test]
fn a_budget_ends_the_search() {
    let size = Size { chunks: 3, steps: 2, rounds: 4 };
    let dgx1 = machines::dgx1();
    let answer = |conflicts| exact(&dgx1, 8, AllGather, RankId(0), size, conflicts).unwrap();
    assert_eq!(answer(100), Answer::Unknown);
    assert_eq!(answer(1_000_000), Answer::None);
}

#[test]
fn wrong_questions_are_refused() {
    let code = |text: &str, collective, root, (chunks, steps, rounds)| {
        let topology: Topology = text.parse().unwrap();
        let size = Size { chunks, steps, rounds };
        let n = topology.nranks();
        exact(&topology, n, collective, RankId(root), size, 1).unwrap_err().code.as_str()
    };
    assert_eq!(code("ring(9)", AllGather, 0, (1, 4, 4)), "E0601");
    assert_eq!(code("ring(8)", AllGather, 0, (1 << 20, 4, 1 << 21)), "E0601");
    assert_eq!(code("ring(8)", AllGather, 0, (0, 4, 4)), "E0211");
    assert_eq!(code("ring(8)", AllGather, 0, (1, 4, 3)), "E0211");
    assert_eq!(code("ring(8)", Collective::AllToAll, 0, (1, 4, 4)), "E0211");
    assert_eq!(code("ring(8)", Broadcast, 8, (1, 4, 4)), "E0204");
}

/// Switches: every chunk takes the port of its sender and that of its receiver.
#[test]
fn ports_of_a_switch_are_counted() {
    let crossbar: Topology = "crossbar(4)".parse().unwrap();
    assert!(is_found(&ask(&crossbar, AllGather, (1, 1, 3))));
    assert!(is_found(&ask(&crossbar, AllGather, (1, 2, 3))));
    assert_eq!(ask(&crossbar, AllGather, (1, 2, 2)), Answer::None);
    assert!(is_found(&ask(&crossbar, Broadcast, (1, 2, 2))));
    assert_eq!(ask(&crossbar, Broadcast, (1, 1, 2)), Answer::None);
}
