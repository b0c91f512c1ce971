//! Rings, channels and trees from outside: against every order of few ranks, and on graphs whose answer is known.

mod channels;
mod disjoint;
mod rings;
mod trees;

use roundelay_core::ids::RankId;
use roundelay_core::topology::Topology;
use roundelay_core::topology::search::pairs::Pairs;
use roundelay_core::topology::shape::{Argument, Shape, ShapeKind, Size};

/// Pseudo-random numbers, equal on every machine.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    /// A graph in which a pair, or a cable, is there with `percent`.
    fn graph(&mut self, n: u32, percent: u64, symmetric: bool) -> Pairs {
        let mut pairs = Pairs::none(n);
        for (a, b) in (0..n).flat_map(|a| (0..n).map(move |b| (a, b))) {
            if symmetric && a > b || self.below(100) >= percent {
                continue;
            }
            pairs.allow(RankId(a), RankId(b));
            if symmetric {
                pairs.allow(RankId(b), RankId(a));
            }
        }
        pairs
    }
}

/// Cables.
fn cables(n: u32, list: &[(u32, u32)]) -> Pairs {
    Pairs::of(n, list).cables()
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

fn topology(kind: ShapeKind, sizes: &[i64], rates: &[u64]) -> Topology {
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
