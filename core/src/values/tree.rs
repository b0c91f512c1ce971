//! Spanning trees: the parents of ranks, and a rank's node in a tree.

use std::sync::Arc;

use super::arith::Fault;
use super::members::Members;
use crate::diagnostics::Code;
use crate::ids::RankId;
use roundelay_base::named_enum;
use roundelay_topology::Problem;

/// A spanning tree of the ranks, for an algorithm's parameter of type `Tree`.
///
/// The number of ranks is known when the algorithm is laid out: only then is the tree made and checked. Ranks are
/// numbers from 0, and `root` is the rank without a parent.
///
/// # Errors
/// When the algorithm is laid out: E0211 for a root that is no rank, or parents that make no tree of all ranks.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tree(TreeForm);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum TreeForm {
    Regular(TreeKind, i64),
    DoubleBinary(i64, Option<i64>),
    Parents(Arc<[i64]>),
    /// The root, and pairs of parent and child, in order.
    Edges(u32, Arc<[(u32, u32)]>),
}

named_enum! {
    /// The kinds of tree that a root alone determines.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum TreeKind {
        /// Counted from the root, rank q has the children 2q + 1 and 2q + 2.
        Binary = "binary",
        /// Counted from the root, the parent of rank q is q without its lowest bit (MPI's binomial tree).
        Binomial = "binomial",
        /// Every rank has one child, the next rank.
        Chain = "chain",
        /// All ranks are children of the root.
        Star = "star",
    }
}

impl TreeKind {
    /// Returns the parent of rank q > 0, where the root is rank 0.
    const fn parent(self, q: u32) -> u32 {
        match self {
            Self::Binary => (q - 1) / 2,
            Self::Binomial => q & (q - 1),
            Self::Chain => q - 1,
            Self::Star => 0,
        }
    }
}

impl Tree {
    /// Returns the tree of that kind, rooted at `root`.
    pub const fn regular(kind: TreeKind, root: i64) -> Self {
        Self(TreeForm::Regular(kind, root))
    }

    /// Returns a heap: counted from the root, rank q has the children 2q + 1 and 2q + 2.
    pub const fn binary(root: i64) -> Self {
        Self::regular(TreeKind::Binary, root)
    }

    /// Returns MPI's binomial tree: counted from the root, the parent of rank q is q without its lowest bit; larger
    /// subtrees come first.
    pub const fn binomial(root: i64) -> Self {
        Self::regular(TreeKind::Binomial, root)
    }

    /// Returns a chain: every rank has one child, the next rank; the rank before the root is last.
    pub const fn chain(root: i64) -> Self {
        Self::regular(TreeKind::Chain, root)
    }

    /// Returns a star: all other ranks are children of the root.
    pub const fn star(root: i64) -> Self {
        Self::regular(TreeKind::Star, root)
    }

    /// Returns one of NCCL's two binary trees, 0 or 1. Without a `root` they are as in NCCL: the root of the first tree
    /// is rank 0, the root of the second rank nranks - 1 or, for an odd number of ranks, 1; and no rank but rank 0 has
    /// children in both. With a `root` both trees are rotated until rank 0 becomes `root`, and the root of the second
    /// becomes a child of `root`; so both lead from `root` to all ranks, and no other rank has children in both.
    pub fn double_binary(which: i64, root: impl Into<Option<i64>>) -> Self {
        Self(TreeForm::DoubleBinary(which, root.into()))
    }

    /// Returns the tree in which the parent of rank r is number r of `parents`, and -1 stands for the root.
    pub fn parents(parents: impl IntoIterator<Item = i64>) -> Self {
        Self(TreeForm::Parents(parents.into_iter().collect()))
    }

    /// Returns the tree of these pairs of parent and child.
    pub(crate) fn edges(root: u32, edges: Arc<[(u32, u32)]>) -> Self {
        Self(TreeForm::Edges(root, edges))
    }

    /// Returns the tree of `nranks` ranks; the error is the reason why there is none.
    pub(crate) fn grow(&self, nranks: u32) -> Result<Rooted, Problem> {
        let at = |root: i64| {
            let known = u32::try_from(root).ok().filter(|r| *r < nranks);
            known.ok_or_else(|| {
                Problem::new(
                    Code::BadParameter,
                    format!("the root of the tree is rank {root}, which is not in 0..{nranks}"),
                )
                .help("a tree has one of the ranks as its root, such as rank 0")
            })
        };
        match &self.0 {
            TreeForm::Regular(kind, root) => {
                let root = at(*root)?;
                // Of the children of a binomial node the farthest has the largest subtree.
                let order: Box<dyn Iterator<Item = u32>> = match kind {
                    TreeKind::Binomial => Box::new((1..nranks).rev()),
                    _ => Box::new(1..nranks),
                };
                let turned = |q: u32| turn(q, root, nranks);
                let edges = order.map(|q| (turned(kind.parent(q)), turned(q)));
                Rooted::new(root, nranks, edges.collect()).map_err(bad_tree)
            }
            TreeForm::DoubleBinary(which @ (0 | 1), None) => {
                let second = *which == 1;
                let root = if second { second_root(nranks) } else { 0 };
                Rooted::new(root, nranks, double_binary_edges(second, nranks)).map_err(bad_tree)
            }
            TreeForm::DoubleBinary(which @ (0 | 1), Some(root)) => {
                let root = at(*root)?;
                let mut edges = double_binary_edges(*which == 1, nranks);
                if *which == 1 && nranks > 1 {
                    edges.retain(|(_, child)| *child != 0);
                    // The subtree of the second root is the largest of all, so it comes first.
                    edges.insert(0, (0, second_root(nranks)));
                }
                for edge in &mut edges {
                    *edge = (turn(edge.0, root, nranks), turn(edge.1, root, nranks));
                }
                Rooted::new(root, nranks, edges).map_err(bad_tree)
            }
            TreeForm::DoubleBinary(which, _) => {
                let title =
                    format!("there are two double binary trees, 0 and 1, and no tree {which}");
                Err(Problem::new(Code::BadParameter, title)
                    .help("write `Tree::double_binary(0)` or `Tree::double_binary(1)`"))
            }
            TreeForm::Edges(root, edges) => {
                if edges.len() + 1 != nranks as usize {
                    let title =
                        format!("the tree has {} ranks, and there are {nranks}", edges.len() + 1);
                    return Err(bad_tree(title));
                }
                Rooted::new(*root, nranks, edges.to_vec()).map_err(bad_tree)
            }
            TreeForm::Parents(parents) => from_parents(parents, nranks).map_err(bad_tree),
        }
    }
}

/// Returns rank `q` after the rotation that moves rank 0 to rank `by`.
const fn turn(q: u32, by: u32, nranks: u32) -> u32 {
    ((q as u64 + by as u64) % nranks as u64) as u32
}

/// Returns the root of the second of the double binary trees.
const fn second_root(nranks: u32) -> u32 {
    if nranks.is_multiple_of(2) { nranks - 1 } else { 1 % nranks }
}

fn double_binary_edges(second: bool, nranks: u32) -> Vec<(u32, u32)> {
    let below = |rank| {
        let children = double_binary(second, rank, nranks);
        children.into_iter().flatten().map(move |child| (rank, child))
    };
    (0..nranks).flat_map(below).collect()
}

/// Returns the children of a rank in the first or second of NCCL's trees: the second is the first mirrored for an even
/// number of ranks, or else shifted by one, so that the leaves of one tree are the inner ranks of the other.
fn double_binary(second: bool, rank: u32, nranks: u32) -> [Option<u32>; 2] {
    let (there, back): (u32, Box<dyn Fn(u32) -> u32>) = match (second, nranks % 2) {
        (false, _) => (rank, Box::new(|q| q)),
        (true, 0) => (nranks - 1 - rank, Box::new(move |q| nranks - 1 - q)),
        (true, _) => (turn(rank, nranks - 1, nranks), Box::new(move |q| turn(q, 1, nranks))),
    };
    let low = match there {
        // The root has one child: the largest power of two that is a rank.
        0 => {
            return [
                None,
                nranks.checked_sub(1).and_then(u32::checked_ilog2).map(|k| back(1 << k)),
            ];
        }
        q => 1 << q.trailing_zeros(),
    };
    let mut step = low / 2;
    if step == 0 {
        return [None, None];
    }
    let first = there - step;
    while step > 0 && there + step >= nranks {
        step /= 2;
    }
    [Some(back(first)), (step > 0).then(|| back(there + step))]
}

fn from_parents(parents: &[i64], nranks: u32) -> Result<Rooted, String> {
    let n = i64::from(nranks);
    if parents.len() as i64 != n {
        return Err(format!(
            "the tree names the parents of {} ranks, and there are {n}",
            parents.len()
        ));
    }
    let mut root = None;
    let mut edges = Vec::new();
    for (rank, &parent) in (0..).zip(parents) {
        match (parent, root) {
            (-1, None) => root = Some(rank),
            (-1, Some(first)) => return Err(format!("ranks {first} and {rank} are both roots")),
            _ if (0..n).contains(&parent) => edges.push((parent as u32, rank)),
            _ => {
                return Err(format!(
                    "the parent of rank {rank} is {parent}, which is not in 0..{n}"
                ));
            }
        }
    }
    let Some(root) = root else {
        return Err("the tree has no root: every rank has a parent".to_owned());
    };
    Rooted::new(root, nranks, edges)
}

/// Returns a problem with a help text about the form of a tree.
fn bad_tree(title: String) -> Problem {
    Problem::new(Code::BadParameter, title)
        .help("a tree names the parent of each rank of 0..nranks, and -1 for its root")
}

impl<const N: usize> From<[i64; N]> for Tree {
    fn from(parents: [i64; N]) -> Self {
        Self::parents(parents)
    }
}

impl From<Vec<i64>> for Tree {
    fn from(parents: Vec<i64>) -> Self {
        Self::parents(parents)
    }
}

/// A tree of a known number of ranks.
#[derive(Debug, PartialEq, Eq)]
pub struct Rooted {
    root: u32,
    /// The parent of each rank; the root is its own parent.
    parent: Vec<u32>,
    /// The children of all ranks, rank by rank.
    children: Vec<u32>,
    /// The start of the children of each rank; one more entry than ranks.
    first: Vec<u32>,
    level: Vec<u32>,
    depth: u32,
}

impl Rooted {
    /// Makes a tree of the pairs of parent and child, a pair for each rank but the root.
    fn new(root: u32, nranks: u32, edges: Vec<(u32, u32)>) -> Result<Self, String> {
        let n = nranks as usize;
        let mut parent = vec![root; n];
        let mut first = vec![0; n + 1];
        for &(up, down) in &edges {
            parent[down as usize] = up;
            first[up as usize + 1] += 1;
        }
        for rank in 0..n {
            first[rank + 1] += first[rank];
        }
        let mut next = first.clone();
        let mut children = vec![0; edges.len()];
        for (up, down) in edges {
            children[next[up as usize] as usize] = down;
            next[up as usize] += 1;
        }
        let mut tree = Self { root, parent, children, first, level: vec![u32::MAX; n], depth: 0 };
        let mut reached = vec![root];
        tree.level[root as usize] = 0;
        let mut at = 0;
        while let Some(&rank) = reached.get(at) {
            tree.depth = tree.level[rank as usize];
            for &child in tree.children(rank) {
                reached.push(child);
            }
            for i in reached.len() - tree.children(rank).len()..reached.len() {
                tree.level[reached[i] as usize] = tree.depth + 1;
            }
            at += 1;
        }
        match tree.level.iter().position(|level| *level == u32::MAX) {
            Some(lost) => Err(format!(
                "the tree does not lead from its root to rank {lost}, whose parents go around in a circle"
            )),
            None => Ok(tree),
        }
    }

    pub(super) const fn root(&self) -> u32 {
        self.root
    }

    /// Returns the tree with each rank q replaced by the rank (q + by) % nranks.
    pub(super) fn turned(&self, by: u32) -> Self {
        let nranks = self.parent.len() as u32;
        let turned = |rank| turn(rank, by, nranks);
        let edges = self.edges().map(|(up, down)| (turned(up), turned(down)));
        Self::new(turned(self.root), nranks, edges.collect()).expect("a turned tree is a tree")
    }

    /// Returns all pairs of parent and child, the children of a rank in order.
    fn edges(&self) -> impl Iterator<Item = (u32, u32)> {
        let below = |up| self.children(up).iter().map(move |down| (up, *down));
        (0..self.parent.len() as u32).flat_map(below)
    }

    fn children(&self, rank: u32) -> &[u32] {
        &self.children[self.first[rank as usize] as usize..self.first[rank as usize + 1] as usize]
    }
}

/// A rank's node in a tree: the answers to `tree.root`, `tree.parent` and the like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TreePlace {
    pub(crate) tree: Arc<Rooted>,
    /// The number of this rank among the members.
    pub(crate) me: u32,
    pub(crate) members: Members,
}

impl TreePlace {
    pub(crate) fn root(&self) -> RankId {
        self.members.rank(self.tree.root)
    }

    pub(crate) fn parent(&self) -> Result<RankId, Fault> {
        if self.me == self.tree.root {
            return Err(Fault::RootsParent { root: self.root() });
        }
        Ok(self.members.rank(self.tree.parent[self.me as usize]))
    }

    pub(crate) fn children(&self) -> impl Iterator<Item = RankId> {
        self.tree.children(self.me).iter().map(|child| self.members.rank(*child))
    }

    /// Returns all pairs of parent and child, the children of a rank in order.
    pub(crate) fn edges(&self) -> impl Iterator<Item = (RankId, RankId)> {
        self.tree.edges().map(|(up, down)| (self.members.rank(up), self.members.rank(down)))
    }

    pub(crate) fn level(&self) -> u32 {
        self.tree.level[self.me as usize]
    }

    pub(crate) fn depth(&self) -> u32 {
        self.tree.depth
    }
}
