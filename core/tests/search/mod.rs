//! Rings, channels and trees from outside: against every order of few ranks, and on graphs whose answer is known.

mod channels;
mod disjoint;
mod rings;
mod trees;

use fastrand::Rng;
use roundelay_core::ids::RankId;
use roundelay_topology::Fabric;
use roundelay_topology::search::pairs::Pairs;
use roundelay_topology::shape::{Argument, Shape, ShapeKind, Size};

/// A graph in which a pair, or a cable, is there with `percent`.
fn graph(random: &mut Rng, n: u32, percent: u64, symmetric: bool) -> Pairs {
    let mut pairs = Pairs::none(n);
    for (a, b) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))) {
        if symmetric && a > b || random.u64(..100) >= percent {
            continue;
        }
        pairs.allow(RankId(a), RankId(b));
        if symmetric {
            pairs.allow(RankId(b), RankId(a));
        }
    }
    pairs
}

/// Cables.
fn cables(n: u32, list: &[(u32, u32)]) -> Pairs {
    Pairs::from_list(n, list).cables()
}

fn shape(kind: ShapeKind, sizes: &[i64], rates: &[u64]) -> Shape {
    let sizes: Vec<_> = if kind.takes_list() {
        vec![Argument::Size(Size::List(sizes.to_vec()))]
    } else {
        sizes.iter().map(|n| Argument::Size(Size::One(*n))).collect()
    };
    let rates = rates.iter().map(|rate| Argument::Rate(*rate));
    Shape::new(kind, &sizes.into_iter().chain(rates).collect::<Vec<_>>()).unwrap()
}

fn topology(kind: ShapeKind, sizes: &[i64], rates: &[u64]) -> Fabric {
    shape(kind, sizes, rates).build().unwrap()
}

/// The links between the cards of rccl-8p90a: cubic, no triangle.
const RCCL: [(u32, u32); 12] = [
    (0, 1),
    (0, 2),
    (0, 6),
    (1, 3),
    (1, 5),
    (2, 3),
    (2, 4),
    (3, 7),
    (4, 5),
    (4, 6),
    (5, 7),
    (6, 7),
];
