//! Values for the parameters of the library's algorithms: at each rank count several, and all of them in turn.

use roundelay::{Groups, Ring, Rings, Tree, Trees};

use super::super::ranks::mixed;

/// A value for every parameter of the library; an algorithm takes those that it has.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "as many as the library has flags")]
pub(super) struct Values {
    pub(super) root: i64,
    pub(super) ring: Ring,
    pub(super) rings: Rings,
    pub(super) tree: Tree,
    /// Trees of the root.
    pub(super) trees: Trees,
    /// Trees of every root, for algorithms without one.
    pub(super) turned: Trees,
    /// As many other trees of the same roots.
    pub(super) down: Trees,
    pub(super) groups: Groups,
    pub(super) shares: Vec<i64>,
    pub(super) hubs: Vec<i64>,
    pub(super) parts: i64,
    pub(super) slices: i64,
    pub(super) credits: i64,
    pub(super) loops: i64,
    pub(super) pieces: i64,
    pub(super) handshake: bool,
    pub(super) near_first: bool,
    pub(super) far_first: bool,
    pub(super) reorder: bool,
    pub(super) ring_inside: bool,
    pub(super) ring_across: bool,
    pub(super) at_once: bool,
}

impl Values {
    /// Returns the product of the values of these parameters at that number of ranks, except for sizes of pieces and
    /// fifos, which take turns.
    pub(super) fn all(params: &[&str], nranks: u32) -> Vec<Self> {
        let mut all = vec![Self::plain(nranks)];
        let mut multiply = |param: &str| {
            all = all.iter().flat_map(|values| values.each(param, i64::from(nranks))).collect();
        };
        if params.contains(&"tree") && !params.contains(&"root") {
            multiply("root"); // the trees'
        }
        for param in params {
            multiply(param);
        }
        for (turn, values) in (nranks as usize..).zip(&mut all) {
            values.parts = i64::from(nranks) + [0, 1][turn % 2]; // no island has more ranks
            values.slices = [1, 2, 5][turn % 3];
            values.credits = values.slices + [1, 2][turn % 2]; // a ring needs one more than slices
            values.loops = [1, 2][turn / 2 % 2];
            values.pieces = [8, 1, 3][turn / 3 % 3];
        }
        // Through a fifo, a rank takes all its children in one move, which has room for seven.
        if params.contains(&"credits") && nranks > 8 {
            all.retain(|values| values.tree != Tree::star(values.root));
        }
        all
    }

    /// Returns root 0, the natural order, no flag, and data that belongs to every rank alike.
    pub(super) fn plain(nranks: u32) -> Self {
        let nranks = i64::from(nranks);
        Self {
            root: 0,
            ring: Ring::natural(),
            rings: Rings::of([Ring::natural()]),
            tree: Tree::binary(0),
            trees: Trees::double_binary(0),
            turned: Trees::turned([(Tree::binary(0), 1)]),
            down: Trees::turned([(Tree::chain(0), 1)]),
            groups: Groups::balanced(),
            shares: vec![1; nranks as usize],
            hubs: (0..nranks).collect(),
            parts: nranks,
            slices: 1,
            credits: 2,
            loops: 1,
            pieces: 1,
            handshake: false,
            near_first: false,
            far_first: false,
            reorder: false,
            ring_inside: false,
            ring_across: false,
            at_once: false,
        }
    }

    /// These values for an algorithm with these parameters: without a root, trees are of every root.
    pub(super) fn suited(&self, params: &[&str]) -> Self {
        let mut suited = self.clone();
        if !params.contains(&"root") {
            suited.trees.clone_from(&self.turned);
        }
        suited
    }

    /// These values with each of one parameter's at n ranks. A tree grows from the root, so that comes before.
    fn each(&self, param: &str, n: i64) -> Vec<Self> {
        let root = self.root;
        let seed = (n * n + root) as u64;
        let with = |set: &dyn Fn(&mut Self)| {
            let mut values = self.clone();
            set(&mut values);
            values
        };
        let orders =
            || [(0..n).collect(), (0..n).rev().collect(), shuffled(n, seed)].map(Ring::from);
        let flag = |set: &dyn Fn(&mut Self, bool)| {
            [false, true].map(|on| with(&|values| set(values, on))).to_vec()
        };
        match param {
            "root" => {
                let mut roots = vec![0, 1 % n, n / 2, n - 1];
                roots.dedup();
                roots.into_iter().map(|root| with(&|values| values.root = root)).collect()
            }
            "ring" => orders().map(|ring| with(&|values| values.ring = ring.clone())).to_vec(),
            "rings" => {
                let [up, down, other] = orders();
                let all =
                    [vec![up.clone(), down.clone()], vec![other.clone()], vec![down, other, up]];
                all.map(|rings| with(&|values| values.rings = Rings::of(rings.clone()))).to_vec()
            }
            "tree" => {
                let all = [
                    Tree::binary(root),
                    Tree::binomial(root),
                    Tree::chain(root),
                    Tree::star(root),
                    Tree::double_binary(0, root),
                    Tree::double_binary(1, root),
                    Tree::parents(parents(n, root, seed)),
                ];
                all.map(|tree| with(&|values| values.tree = tree.clone())).to_vec()
            }
            "trees" => {
                let any = Tree::parents(parents(n, root, seed));
                let all = [
                    vec![(Tree::binomial(root), 1)],
                    vec![(any.clone(), 3), (Tree::chain(root), 1)],
                    vec![(Tree::star(root), 1), (Tree::binary(root), 2), (any, 1)],
                ];
                let both = |trees: Vec<(Tree, i64)>| {
                    with(&|values| {
                        values.trees = Trees::of(trees.clone());
                        values.turned = Trees::turned(trees.clone());
                        let down = trees.iter().map(|(_, weight)| (Tree::chain(root), *weight));
                        values.down = Trees::turned(down);
                    })
                };
                all.map(both).to_vec()
            }
            "groups" => {
                let part = smallest_divisor(n);
                let all = [
                    Groups::balanced(),
                    Groups::colors((0..n).map(|rank| rank % part)),
                    Groups::colors(shuffled(n, seed).iter().map(|place| place * part / n)),
                ];
                all.map(|groups| with(&|values| values.groups = groups.clone())).to_vec()
            }
            "shares" => {
                // As on a whole mesh, all different, and one rank that owns all.
                let one = (0..n).map(|rank| i64::from(rank == n / 2)).collect();
                let all = [vec![1; n as usize], (1..=n).collect(), one];
                all.map(|shares| with(&|values| values.shares.clone_from(&shares))).to_vec()
            }
            "hubs" => {
                // All, one, and some out of order.
                let some = shuffled(n, seed).into_iter().take(n as usize / 2 + 1).collect();
                let all = [(0..n).collect(), vec![n / 2], some];
                all.map(|hubs: Vec<i64>| with(&|values| values.hubs.clone_from(&hubs))).to_vec()
            }
            "down" | "parts" | "slices" | "credits" | "loops" | "pieces" => vec![self.clone()],
            "handshake" => flag(&|values, on| values.handshake = on),
            "near_first" => flag(&|values, on| values.near_first = on),
            "far_first" => flag(&|values, on| values.far_first = on),
            "reorder" => flag(&|values, on| values.reorder = on),
            "ring_inside" => flag(&|values, on| values.ring_inside = on),
            "ring_across" => flag(&|values, on| values.ring_across = on),
            "at_once" => flag(&|values, on| values.at_once = on),
            _ => panic!("a parameter without values: {param}"),
        }
    }
}

/// Says which values they were, where a test fails.
pub(super) struct Told<'a>(pub(super) &'a Values);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("with {:?}", self.0);
        }
    }
}

/// Returns 0..n in an order that looks random and is equal on every machine.
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

/// Returns the smallest divisor above 1; 1 itself for 1.
fn smallest_divisor(n: i64) -> i64 {
    (2..=n).find(|d| n % d == 0).unwrap_or(1)
}
