//! One ring: exact where the search says so, a proof where there is none, and found where it must be found.

use super::{RCCL, cables, graph, shape, topology};
use fastrand::Rng;
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_core::topology::Topology;
use roundelay_topology::search::hamilton::{How, RingSearch, all_rings, is_ring, ring};
use roundelay_topology::search::pairs::Pairs;
use roundelay_topology::search::proof::NoRing;
use roundelay_topology::search::ring_around;
use roundelay_topology::shape::{Shape, ShapeKind};

/// Every ring, by trying every order.
fn by_permutation(pairs: &Pairs) -> Vec<Vec<RankId>> {
    fn extend(pairs: &Pairs, path: &mut Vec<RankId>, found: &mut Vec<Vec<RankId>>) {
        if path.len() == pairs.nranks() as usize && is_closed(pairs, path) {
            found.push(path.clone());
        }
        for rank in pairs.ranks() {
            if !path.contains(&rank) {
                path.push(rank);
                extend(pairs, path, found);
                path.pop();
            }
        }
    }
    fn is_closed(pairs: &Pairs, path: &[RankId]) -> bool {
        let n = path.len();
        n == 1 || (0..n).all(|i| pairs.has(path[i], path[(i + 1) % n]))
    }
    let mut found = Vec::new();
    extend(pairs, &mut vec![RankId(0)], &mut found);
    found
}

/// Holds a proof against the graph without believing the search.
fn holds(pairs: &Pairs, proof: &NoRing) -> bool {
    let both = pairs.cables();
    match proof {
        NoRing::DeadEnd { rank, cables } => {
            let need = if pairs.nranks() == 2 { 1 } else { 2 };
            both.out(*rank).eq(cables.iter().copied()) && cables.len() < need
        }
        NoRing::Unreachable { from, to } => {
            let mut seen = vec![*from];
            let mut at = 0;
            while at < seen.len() {
                let next: Vec<_> = pairs.out(seen[at]).filter(|r| !seen.contains(r)).collect();
                seen.extend(next);
                at += 1;
            }
            !seen.contains(to)
        }
        NoRing::Crowded { senders, receivers } => {
            receivers.len() < senders.len()
                && senders.iter().all(|s| pairs.out(*s).all(|r| receivers.contains(&r)))
        }
        NoRing::Cut { removed, parts } => {
            let mut seen: Vec<_> = removed.clone();
            for part in parts {
                if seen.contains(part) {
                    return false;
                }
                let mut at = seen.len();
                seen.push(*part);
                while at < seen.len() {
                    let next: Vec<_> = both.out(seen[at]).filter(|r| !seen.contains(r)).collect();
                    seen.extend(next);
                    at += 1;
                }
            }
            parts.len() > removed.len()
        }
        NoRing::Exhausted { nranks } => *nranks == pairs.nranks(),
    }
}

fn agrees(pairs: &Pairs) {
    let all = by_permutation(pairs);
    assert_eq!(all_rings(pairs, usize::MAX).as_ref(), Some(&all), "{pairs:?}");
    match ring(pairs) {
        RingSearch::Found { order, how } => {
            assert_eq!((Some(&order), how), (all.first(), How::Exact), "{pairs:?}");
        }
        RingSearch::None { proof } => {
            assert!(all.is_empty() && holds(pairs, &proof), "{pairs:?} {proof}");
        }
        RingSearch::GaveUp { .. } => panic!("{pairs:?}"),
    }
}

#[test]
fn every_graph_of_five_cables_or_four_ranks() {
    for bits in 0..1_u32 << 12 {
        let all = (0..4).flat_map(|a| (0..4).map(move |b| (a, b))).filter(|(a, b)| a != b);
        let list: Vec<_> =
            all.enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, p)| p).collect();
        agrees(&Pairs::from_list(4, &list));
    }
    for bits in 0..1_u32 << 10 {
        let all = (0..5).flat_map(|a| (a + 1..5).map(move |b| (a, b)));
        let list: Vec<_> =
            all.enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, p)| p).collect();
        agrees(&cables(5, &list));
    }
}

#[test]
fn random_graphs_of_up_to_seven_ranks() {
    let mut random = Rng::with_seed(1);
    for round in 0..1500 {
        let n = 1 + round % 7;
        let percent = 30 + random.u64(..60);
        agrees(&graph(&mut random, n, percent, round % 2 == 0));
    }
}

#[test]
fn few_ranks() {
    assert_eq!(ring(&Pairs::none(1)).order(), Some(vec![RankId(0)]));
    assert!(matches!(ring(&Pairs::from_list(2, &[(0, 1)])), RingSearch::None { .. }));
    assert!(ring(&cables(2, &[(0, 1)])).order().is_some());
    assert!(matches!(
        ring(&cables(3, &[(0, 1), (1, 2)])),
        RingSearch::None { proof: NoRing::DeadEnd { rank: RankId(0), .. } }
    ));
}

#[test]
fn the_partial_mesh_has_five_rings() {
    let pairs = cables(8, &RCCL);
    let all = all_rings(&pairs, usize::MAX).unwrap();
    assert!(all.iter().all(|r| is_ring(&pairs, r)));
    assert_eq!(all.iter().filter(|r| r[1] < r[7]).count(), 5);
    assert_eq!(all.len(), 10);
    assert_eq!(all_rings(&pairs, 3).unwrap(), all[..3]);
    let expected: Vec<_> = [0, 1, 3, 2, 4, 5, 7, 6].map(RankId).to_vec();
    assert_eq!(ring(&pairs).order(), Some(expected));
}

#[test]
fn the_broken_mesh() {
    let broken = Shape::full_mesh(8).without(0, 1).build().unwrap();
    let pairs = Pairs::direct(&broken, 8);
    let twisted: Vec<_> = [1, 2, 3, 4, 5, 6, 0, 7].map(RankId).to_vec();
    assert!(is_ring(&pairs, &twisted));
    assert!(!is_ring(&pairs, &pairs.ranks().collect::<Vec<_>>()));
    assert!(!is_ring(&pairs, &twisted[..7]));
    let found = ring_around(&broken, 8).unwrap();
    assert!(is_ring(&pairs, &found));
    assert_eq!(found, [0, 2, 1, 3, 4, 5, 6, 7].map(RankId));
    assert_eq!(ring_around(&broken, 9).unwrap_err().code, Code::TopologyTooSmall);
    let none = ring_around(&Shape::full_mesh(3).without(0, 1).build().unwrap(), 3).unwrap_err();
    assert_eq!(none.code, Code::NoRing);
    assert_eq!(none.notes, ["rank 0 is joined to rank 2 only; a ring needs two neighbors"]);
    assert!(none.help.is_some());
}

#[test]
fn rings_prefer_cables_to_the_network() {
    let pods = topology(ShapeKind::Groups, &[4, 4], &[20, 5]);
    assert!(is_ring(&Pairs::direct(&pods, 8), &ring_around(&pods, 8).unwrap()));
    let mesh = shape(ShapeKind::Groups, &[4], &[20]).without(0, 1).build().unwrap();
    assert_eq!(ring_around(&mesh, 4).unwrap(), [0, 2, 1, 3].map(RankId));
    assert_eq!(ring_around(&pods, 4).unwrap(), [0, 1, 2, 3].map(RankId));
}

fn petersen() -> Pairs {
    let outer = (0..5).map(|i| (i, (i + 1) % 5));
    let inner = (0..5).map(|i| (5 + i, 5 + (i + 2) % 5));
    cables(10, &outer.chain(inner).chain((0..5).map(|i| (i, i + 5))).collect::<Vec<_>>())
}

#[test]
fn petersen_has_none() {
    assert_eq!(ring(&petersen()), RingSearch::None { proof: NoRing::Exhausted { nranks: 10 } });
}

/// Graphs of 24 ranks on which a search that only tries walks for hours.
#[test]
fn hard_graphs_of_24() {
    let sides: Vec<_> = (0..11).flat_map(|a| (11..24).map(move |b| (a, b))).collect();
    let clique =
        |from: u32| (from..from + 12).flat_map(move |a| (a + 1..from + 12).map(move |b| (a, b)));
    let bridge: Vec<_> = clique(0).chain(clique(12)).chain([(11, 12)]).collect();
    let two_cables: Vec<_> = bridge.iter().copied().chain([(0, 23)]).collect();
    for (graph, exists) in
        [(cables(24, &sides), false), (cables(24, &bridge), false), (cables(24, &two_cables), true)]
    {
        match ring(&graph) {
            RingSearch::Found { order, how } => {
                assert!(exists && how == How::Exact && is_ring(&graph, &order));
            }
            RingSearch::None { proof } => {
                assert!(
                    !exists && holds(&graph, &proof) && !matches!(proof, NoRing::Exhausted { .. })
                );
            }
            RingSearch::GaveUp { .. } => panic!(),
        }
    }
    // Two copies of Petersen's graph and a square between them: the table has to decide.
    let copy = |at: u32| move |(a, b): (u32, u32)| (a + at, b + at);
    let one: Vec<_> = petersen()
        .ranks()
        .flat_map(|a| petersen().out(a).map(move |b| (a.0, b.0)).collect::<Vec<_>>())
        .collect();
    let mut twice: Vec<_> =
        one.iter().copied().map(copy(0)).chain(one.iter().copied().map(copy(10))).collect();
    twice.extend([(20, 21), (21, 22), (22, 23), (23, 20), (20, 0), (21, 1), (22, 10), (23, 11)]);
    let graph = cables(24, &twice);
    match ring(&graph) {
        RingSearch::Found { order, .. } => assert!(is_ring(&graph, &order)),
        RingSearch::None { proof } => assert!(holds(&graph, &proof)),
        RingSearch::GaveUp { .. } => panic!(),
    }
}

#[test]
fn a_complete_graph_minus_edges() {
    let mut random = Rng::with_seed(7);
    for _ in 0..20 {
        let pairs = graph(&mut random, 24, 70, true);
        assert!(is_ring(&pairs, &ring(&pairs).order().unwrap()));
    }
}

/// Random cubic graphs almost always have a ring, and a greedy walk hardly ever finds it.
#[test]
fn cubic_graphs() {
    let mut random = Rng::with_seed(3);
    for n in [24, 48, 64] {
        let mut chords: Vec<u32> = (0..n).collect();
        random.shuffle(&mut chords);
        let mut names: Vec<u32> = (0..n).collect();
        random.shuffle(&mut names);
        let around = (0..n).map(|i| (names[i as usize], names[(i as usize + 1) % n as usize]));
        let list: Vec<_> = around.chain(chords.chunks(2).map(|c| (c[0], c[1]))).collect();
        let pairs = cables(n, &list);
        assert!(is_ring(&pairs, &ring(&pairs).order().unwrap()), "{n}");
    }
}

#[test]
fn beyond_24_it_is_found_and_said() {
    let mut random = Rng::with_seed(5);
    let graphs = [
        Pairs::direct(&topology(ShapeKind::Torus, &[8, 8], &[]), 64),
        Pairs::direct(&topology(ShapeKind::Torus, &[5, 7], &[]), 35),
        Pairs::direct(&topology(ShapeKind::Torus, &[32, 32], &[]), 1024),
        Pairs::direct(&topology(ShapeKind::Torus, &[4, 4, 4], &[]), 64),
        Pairs::direct(&topology(ShapeKind::Islands, &[8, 8], &[300, 25]), 64),
        graph(&mut random, 256, 90, true),
        graph(&mut random, 1024, 99, true),
        graph(&mut random, 256, 50, false),
    ];
    for pairs in graphs {
        match ring(&pairs) {
            RingSearch::Found { order, how } => {
                assert!(is_ring(&pairs, &order));
                assert_eq!(how, How::Heuristic);
                assert_eq!(ring(&pairs).order(), Some(order));
            }
            other => panic!("{} ranks: {other:?}", pairs.nranks()),
        }
    }
}

#[test]
fn beyond_24_a_proof_or_giving_up() {
    let clique =
        |from: u32| (from..from + 20).flat_map(move |a| (a + 1..from + 20).map(move |b| (a, b)));
    let bridge: Vec<_> = clique(0).chain(clique(20)).chain([(0, 20)]).collect();
    assert!(matches!(ring(&cables(40, &bridge)), RingSearch::None { proof: NoRing::Cut { .. } }));
    let sides: Vec<_> = (0..20).flat_map(|a| (20..41).map(move |b| (a, b))).collect();
    assert!(matches!(
        ring(&cables(41, &sides)),
        RingSearch::None { proof: NoRing::Crowded { .. } }
    ));
    let mut three: Vec<_> = clique(0).chain(clique(20)).chain(clique(40)).collect();
    three.extend((0..60).filter(|r| ![0, 20].contains(r)).flat_map(|r| [(0, r), (20, r)]));
    // Three cliques held together by two ranks: no proof that is cheap, and no ring.
    let three: Vec<_> =
        three.into_iter().filter(|(a, b)| a / 20 == b / 20 || [0, 20].contains(a)).collect();
    let answer = ring(&cables(60, &three));
    assert!(!matches!(answer, RingSearch::Found { .. }), "{answer:?}");
}

/// Over islands the ring crosses as often as there are islands, and each crossing is a link.
#[test]
fn a_ring_sees_all_of_an_island_before_it_leaves() {
    for (text, islands) in [
        ("islands(2, 8)", 2),
        ("islands(3, 4)", 3),
        ("islands(4, 2)", 4),
        ("islands(8, 8, 200GB/s, 1us, 25GB/s)", 8),
        ("islands(64, 16)", 64),
        ("groups([8, 4])", 2),
        ("groups([1, 1, 3])", 3),
        ("groups([5, 1, 7, 2])", 4),
    ] {
        let topology: Topology = text.parse().unwrap();
        let n = topology.nranks();
        let order = ring_around(&topology, n).unwrap();
        assert!(is_ring(&Pairs::direct(&topology, n), &order), "{text}: {order:?}");
        let group = |rank: &RankId| topology.nodes()[rank.index()].group;
        let next = order.iter().cycle().skip(1);
        let crossings = order.iter().zip(next).filter(|(a, b)| group(a) != group(b)).count();
        assert_eq!(crossings, islands, "{text}: {order:?}");
    }
    // An island that lacks a cable inside is no obstacle, nor are rails that do not reach all of a run.
    for (text, n) in [("groups([8, 4]) without (0, 1)", 12), ("islands(2, 8)", 12)] {
        let topology: Topology = text.parse().unwrap();
        let order = ring_around(&topology, n).unwrap();
        assert!(is_ring(&Pairs::direct(&topology, n), &order), "{text}: {order:?}");
    }
}
