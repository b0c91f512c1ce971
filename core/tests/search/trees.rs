//! Trees: they span, keep to their number of children, are shallow, and trees of a packing share no link.

use std::collections::BTreeSet;

use super::{RCCL, cables, graph, topology};
use fastrand::Rng;
use roundelay_core::diagnostics::Code;
use roundelay_core::ids::RankId;
use roundelay_topology::search::disjoint_trees::{SpanningTree, packing, tree};
use roundelay_topology::search::hamilton::How;
use roundelay_topology::search::pairs::Pairs;
use roundelay_topology::shape::ShapeKind;

fn spans(pairs: &Pairs, tree: &SpanningTree, most: usize) {
    assert!(tree.depths().is_some(), "{tree:?}");
    assert_eq!(tree.parent[tree.root.index()], None);
    for rank in pairs.ranks() {
        assert!(tree.children(rank).len() <= most, "{tree:?}");
        assert!(tree.parent[rank.index()].is_none_or(|p| pairs.has(p, rank)), "{tree:?}");
    }
}

/// Returns the depth, and whether it is the least.
fn depth(pairs: &Pairs, root: u32, most: u32) -> (u32, How) {
    let grown = tree(pairs, RankId(root), most).unwrap();
    spans(pairs, &grown.tree, most as usize);
    (grown.tree.depth(), grown.how)
}

#[test]
fn shallow_trees() {
    let mesh = Pairs::all(8, |_, _| true);
    assert_eq!(depth(&mesh, 0, 8), (1, How::Exact));
    assert_eq!(depth(&mesh, 3, 2), (3, How::Exact));
    assert_eq!(depth(&mesh, 3, 1), (7, How::Exact));
    assert_eq!(depth(&cables(8, &RCCL), 0, 3), (2, How::Exact));
    let torus = Pairs::direct(&topology(ShapeKind::Torus, &[8, 8], &[]), 64);
    assert_eq!(depth(&torus, 9, 4), (8, How::Exact));
    let large = Pairs::all(1024, |a, b| a.0.abs_diff(b.0) != 5);
    assert_eq!(depth(&large, 0, 2), (10, How::Exact));
    assert_eq!(depth(&Pairs::none(1), 0, 0), (0, How::Exact));
}

#[test]
fn children_are_shared_evenly() {
    let grown = tree(&Pairs::all(9, |_, _| true), RankId(0), 4).unwrap().tree;
    let children: Vec<_> =
        grown.children(RankId(0)).iter().map(|c| grown.children(*c).len()).collect();
    assert_eq!(children, [1, 1, 1, 1]);
}

#[test]
fn what_cannot_be() {
    let cut = Pairs::from_list(3, &[(0, 1), (2, 0)]);
    assert_eq!(tree(&cut, RankId(0), 2).unwrap_err().code, Code::Disconnected);
    assert_eq!(tree(&cut, RankId(3), 2).unwrap_err().code, Code::TopologyTooSmall);
    let star = cables(4, &[(0, 1), (0, 2), (0, 3)]);
    assert_eq!(tree(&star, RankId(0), 2).unwrap_err().code, Code::Disconnected);
    assert_eq!(depth(&star, 1, 2), (2, How::Exact));
    assert_eq!(tree(&star, RankId(1), 0).unwrap_err().code, Code::Disconnected);
    // The search level by level ends too early here; the chain exists all the same.
    let chain = Pairs::from_list(4, &[(0, 1), (0, 2), (2, 1), (1, 3)]);
    assert_eq!(depth(&chain, 0, 1), (3, How::Exact));
}

/// The least number of links that enter a set of ranks without the root, over all sets.
fn least_cut(pairs: &Pairs, root: u32) -> u32 {
    let n = pairs.nranks();
    let sets = (1_u32..1 << n).filter(|set| set >> root & 1 == 0);
    let enters = |set: u32| {
        let ends = pairs.ranks().flat_map(|a| pairs.out(a).map(move |b| (a.0, b.0)));
        ends.filter(|(a, b)| set >> a & 1 == 0 && set >> b & 1 == 1).count() as u32
    };
    sets.map(enters).min().unwrap_or(0)
}

#[test]
fn packings_reach_the_smallest_cut() {
    let mut random = Rng::with_seed(4);
    for round in 0..300 {
        let n = 2 + round % 6;
        let pairs = graph(&mut random, n, 40 + dice_percent(round), round % 2 == 0);
        let root = round % n;
        let packed = packing(&pairs, RankId(root), 99);
        assert!(packed.proved);
        assert_eq!(packed.trees.len() as u32, least_cut(&pairs, root), "{pairs:?}");
        let mut used = BTreeSet::new();
        for tree in &packed.trees {
            spans(&pairs, tree, usize::MAX);
            for (child, parent) in tree.parent.iter().enumerate() {
                assert!(parent.is_none_or(|p| used.insert((p.0, child))));
            }
        }
    }
}

fn dice_percent(round: u32) -> u64 {
    u64::from(round * 7 % 60)
}

#[test]
fn packings_of_larger_graphs() {
    let mesh = Pairs::all(48, |_, _| true);
    let packed = packing(&mesh, RankId(5), 99);
    assert_eq!((packed.trees.len(), packed.proved), (47, true));
    let large = packing(&Pairs::all(512, |_, _| true), RankId(0), 511);
    assert!(!large.trees.is_empty() && !large.proved);
    assert_eq!(packing(&mesh, RankId(5), 3).trees.len(), 3);
}
