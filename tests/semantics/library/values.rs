//! Values for the parameters of the library's algorithms: at each rank count several, and all of them in turn.

use roundelay::{Groups, Ring, Rings, Tree};

/// A value for every parameter of the library; an algorithm takes those that it has.
#[derive(Clone, Debug)]
pub(super) struct Values {
    pub(super) root: i64,
    pub(super) ring: Ring,
    pub(super) rings: Rings,
    pub(super) tree: Tree,
    pub(super) groups: Groups,
    pub(super) slices: i64,
    pub(super) near_first: bool,
    pub(super) far_first: bool,
    pub(super) reorder: bool,
    pub(super) ring_inside: bool,
    pub(super) ring_across: bool,
}

/// How many rows of values a parameter needs at each rank count.
pub(super) fn rows(param: &str) -> usize {
    match param {
        "root" => 4,
        "ring" | "rings" | "tree" | "groups" => 3,
        "slices" => 1,
        _ => 2,
    }
}

impl Values {
    /// The `row`-th values that the matrix gives at so many ranks. At each of them four rows have every root and both
    /// values of a flag, three have every order; the others turn with the rank count, so pairs of all of them meet.
    pub(super) fn nth(row: usize, nranks: u32) -> Self {
        let n = i64::from(nranks);
        let turn = row + nranks as usize;
        let seed = turn as u64;
        let root = [0, 1 % n, n / 2, n - 1][row % 4];
        let ring = |i: usize| {
            Ring::order(match i % 3 {
                0 => (0..n).collect(),
                1 => (0..n).rev().collect(),
                _ => shuffled(n, seed),
            })
        };
        let part = smallest_divisor(n);
        Self {
            root,
            ring: ring(turn),
            rings: match turn % 3 {
                0 => Rings::of([ring(0), ring(1)]),
                1 => Rings::of([ring(2)]),
                _ => Rings::of([ring(1), ring(2), ring(0)]),
            },
            tree: match (row + 2 * nranks as usize) % 7 {
                0 => Tree::binary(root),
                1 => Tree::parents(parents(n, root, seed)),
                2 => Tree::chain(root),
                3 => Tree::star(root),
                4 => Tree::double_binary(0, root),
                5 => Tree::binomial(root),
                _ => Tree::double_binary(1, root),
            },
            groups: match turn % 3 {
                0 => Groups::balanced(),
                1 => Groups::colors((0..n).map(|rank| rank % part)),
                _ => Groups::colors(shuffled(n, seed).iter().map(|place| place * part / n)),
            },
            slices: [1, 3, 8][(turn / 2) % 3],
            near_first: row % 2 == 1,
            far_first: row % 2 == 1,
            reorder: row % 2 == 1,
            ring_inside: (row + nranks as usize / 2) % 2 == 1,
            ring_across: (row / 2 + nranks as usize) % 2 == 1,
        }
    }
}

/// 0..n in an order that looks random and is the same on every machine.
pub(super) fn shuffled(n: i64, seed: u64) -> Vec<i64> {
    let mut order: Vec<i64> = (0..n).collect();
    order.sort_by_key(|&i| mixed(seed << 32 | i as u64));
    order
}

/// The parents of a tree of n ranks below `root`, each any rank that is in the tree before it.
pub(super) fn parents(n: i64, root: i64, seed: u64) -> Vec<i64> {
    let mut order = shuffled(n, seed);
    order.retain(|&rank| rank != root);
    order.insert(0, root);
    let mut parents = vec![-1; n as usize];
    for (i, &rank) in order.iter().enumerate().skip(1) {
        parents[rank as usize] = order[(mixed(seed ^ i as u64) % i as u64) as usize];
    }
    parents
}

/// SplitMix64's mixing of bits.
fn mixed(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Above 1; 1 has none but itself.
fn smallest_divisor(n: i64) -> i64 {
    (2..=n).find(|d| n % d == 0).unwrap_or(1)
}
