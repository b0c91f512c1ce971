//! Rings that share nothing.

use std::collections::BTreeSet;

use super::{RCCL, cables, graph, topology};
use fastrand::Rng;
use roundelay_core::ids::RankId;
use roundelay_topology::search::disjoint::{DisjointBy, disjoint};
use roundelay_topology::search::hamilton::is_ring;
use roundelay_topology::search::pairs::Pairs;
use roundelay_topology::shape::ShapeKind;

/// How many were found, and whether more are impossible; each is a ring and no two share anything.
fn found(pairs: &Pairs, k: usize, mode: DisjointBy) -> (usize, bool) {
    let found = disjoint(pairs, k, mode);
    let mut used = BTreeSet::new();
    for ring in &found.rings {
        assert!(is_ring(pairs, ring), "{ring:?}");
        assert_eq!(ring[0], RankId(0));
        for (a, b) in ring.iter().zip(ring.iter().cycle().skip(1)) {
            let link = if mode == DisjointBy::Cables && pairs.nranks() > 2 {
                (a.min(b), a.max(b))
            } else {
                (a, b)
            };
            assert!(used.insert((link.0.0, link.1.0)), "{link:?} twice");
        }
    }
    assert_eq!(found, disjoint(pairs, k, mode));
    (found.rings.len(), found.proved)
}

fn complete(n: u32) -> Pairs {
    Pairs::all(n, |_, _| true)
}

#[test]
fn complete_graphs() {
    for n in 3..=33 {
        assert_eq!(
            found(&complete(n), 99, DisjointBy::Cables),
            ((n as usize - 1) / 2, true),
            "{n}"
        );
    }
    assert_eq!(found(&complete(1), 9, DisjointBy::Cables), (1, true));
    assert_eq!(found(&complete(2), 9, DisjointBy::Links), (1, true));
    assert_eq!(found(&complete(7), 9, DisjointBy::Links), (6, true));
    assert_eq!(found(&complete(8), 2, DisjointBy::Cables), (2, true));
    assert_eq!(found(&complete(8), 0, DisjointBy::Cables), (0, true));
}

/// Tillson: the complete directed graph falls into n - 1 rings, but not for 4 and 6.
#[test]
fn directed_four_has_two() {
    assert_eq!(found(&complete(4), 9, DisjointBy::Links), (2, true));
}

#[test]
fn broken_meshes() {
    let mut broken = complete(8);
    broken.forbid(RankId(0), RankId(1));
    broken.forbid(RankId(1), RankId(0));
    assert_eq!(found(&broken, 9, DisjointBy::Cables), (3, true));
    assert_eq!(found(&broken, 9, DisjointBy::Links), (6, true));
    let (rings, _) = found(&graph(&mut Rng::with_seed(2), 64, 95, true), 20, DisjointBy::Cables);
    assert!(rings >= 20, "{rings}");
}

#[test]
fn sparse_graphs() {
    // Three cables a rank: two rings would need four.
    assert_eq!(found(&cables(8, &RCCL), 9, DisjointBy::Cables), (1, true));
    assert_eq!(found(&cables(8, &RCCL), 9, DisjointBy::Links), (2, true));
    assert_eq!(found(&cables(3, &[(0, 1), (1, 2)]), 9, DisjointBy::Cables), (0, true));
    let torus = Pairs::direct(&topology(ShapeKind::Torus, &[3, 4], &[]), 12);
    assert_eq!(found(&torus, 9, DisjointBy::Cables), (2, true));
}

/// Pairs of rings by trying all pairs.
#[test]
fn two_rings_against_all_pairs_of_rings() {
    use roundelay_topology::search::hamilton::all_rings;
    let mut random = Rng::with_seed(11);
    for round in 0..200 {
        let pairs = graph(&mut random, 5 + round % 2, 75, round % 3 != 0);
        let all = all_rings(&pairs, usize::MAX).unwrap();
        let links = |ring: &Vec<RankId>| -> BTreeSet<(u32, u32)> {
            ring.iter()
                .zip(ring.iter().cycle().skip(1))
                .map(|(a, b)| (a.0.min(b.0), a.0.max(b.0)))
                .collect()
        };
        let two = all.iter().any(|a| all.iter().any(|b| links(a).is_disjoint(&links(b))));
        let expected = if two { 2 } else { usize::from(!all.is_empty()) };
        assert_eq!(found(&pairs, 2, DisjointBy::Cables), (expected, true), "{pairs:?}");
    }
}
