//! Several weighted trees at once: before the number of ranks is known, and as a rank sees them.

use std::sync::Arc;

use super::arith::{Fault, pick};
use super::members::Members;
use super::tree::{Rooted, Tree, TreeKind, TreePlace};
use crate::diagnostics::Code;
use crate::ids::RankId;
use roundelay_topology::Problem;

/// The most ranks of all trees together.
const NODE_LIMIT: usize = 1 << 24;

/// Several spanning trees of the ranks, each with a weight, for an algorithm's parameter of type `Trees`, which sends
/// a part of the data along each tree: a tree of weight 2 carries twice as much as one of weight 1.
///
/// # Errors
/// When the algorithm is laid out: those of [`Tree`], E0211 for no trees at all and for a weight below 1, and E0206 for
/// more than 2^24 ranks in all trees together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Trees(TreesForm);

/// The form of several trees before the number of ranks is known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum TreesForm {
    Given(Vec<(Tree, i64)>),
    Turned(Vec<(Tree, i64)>),
}

impl Trees {
    /// Returns the trees given, each with its weight, in their order.
    pub fn of<T: Into<Tree>>(trees: impl IntoIterator<Item = (T, i64)>) -> Self {
        Self(TreesForm::Given(weighted(trees)))
    }

    /// Returns the trees given, each with its weight, then the same trees with every rank q replaced by the rank
    /// (q + 1) % nranks, and so on to (q + nranks - 1) % nranks: every rank is the root of as many trees as are given.
    pub fn turned<T: Into<Tree>>(trees: impl IntoIterator<Item = (T, i64)>) -> Self {
        Self(TreesForm::Turned(weighted(trees)))
    }

    /// Returns a tree of that kind for each root, in the order of the roots. All weights are 1.
    pub(crate) fn regular(kind: TreeKind) -> Self {
        Self::turned([(Tree::regular(kind, 0), 1)])
    }

    /// Returns the two trees of [`Tree::double_binary`], with that root or with roots of their own. Both weights are 1.
    pub fn double_binary(root: impl Into<Option<i64>>) -> Self {
        let root = root.into();
        Self::of([0, 1].map(|which| (Tree::double_binary(which, root), 1)))
    }

    /// Returns each of these trees as often as its weight is, with weight 1: then all trees are equally fast where they
    /// share links evenly.
    pub(crate) fn even(self) -> Result<Self, Problem> {
        let (TreesForm::Given(trees) | TreesForm::Turned(trees)) = &self.0;
        let all = trees.iter().fold(0_i64, |sum, (_, weight)| sum.saturating_add((*weight).max(1)));
        if all > NODE_LIMIT as i64 {
            let title = format!("the weights are {all} together, more than {NODE_LIMIT}");
            return Err(Problem::new(Code::StepLimit, title));
        }
        let units = trees.iter().flat_map(|(tree, weight)| {
            let one = if *weight > 0 { 1 } else { *weight };
            std::iter::repeat_n((tree.clone(), one), (*weight).max(1) as usize)
        });
        let units = units.collect();
        Ok(Self(match self.0 {
            TreesForm::Given(_) => TreesForm::Given(units),
            TreesForm::Turned(_) => TreesForm::Turned(units),
        }))
    }

    /// Reads trees from a list with `nranks` parents of each tree, and their weights from another list. All weights
    /// are 1 where there is no list of them.
    pub(crate) fn listed(
        parents: &[i64],
        weights: Option<&[i64]>,
        nranks: u32,
    ) -> Result<Vec<(Tree, i64)>, Problem> {
        let (n, len) = (nranks as usize, parents.len());
        if !len.is_multiple_of(n) {
            let title = format!(
                "the list has {len} parents, which is no multiple of the {nranks} ranks of a tree"
            );
            return Err(bad_trees(title));
        }
        let many = len / n;
        let given = weights.map_or(many, <[i64]>::len);
        if given != many {
            let title = format!("{many} trees have {many} weights, and the list has {given}");
            return Err(bad_trees(title));
        }
        let weight = |tree: usize| weights.map_or(1, |weights| weights[tree]);
        let tree = |parents: &[i64]| Tree::parents(parents.iter().copied());
        Ok((0..).zip(parents.chunks(n)).map(|(t, parents)| (tree(parents), weight(t))).collect())
    }

    /// Returns the trees of `nranks` ranks; the error is the reason why there are none.
    pub(crate) fn grow(&self, nranks: u32) -> Result<Forest, Problem> {
        let (TreesForm::Given(trees) | TreesForm::Turned(trees)) = &self.0;
        if trees.is_empty() {
            return Err(bad_trees("there are no trees at all".to_owned()));
        }
        let wrong = trees.iter().position(|(_, weight)| *weight < 1);
        if let Some(tree) = wrong {
            let title = format!("the weight of tree {tree} is {}", trees[tree].1);
            return Err(Problem::new(Code::BadParameter, title)
                .help("a weight is at least 1: leave out a tree that carries nothing"));
        }
        let turns = if matches!(self.0, TreesForm::Turned(_)) { nranks } else { 1 };
        let nodes = trees.len().saturating_mul(turns as usize).saturating_mul(nranks as usize);
        if nodes > NODE_LIMIT {
            let title = format!("the trees have {nodes} ranks together, more than {NODE_LIMIT}");
            return Err(Problem::new(Code::StepLimit, title));
        }
        let weights = trees.iter().map(|(_, weight)| *weight);
        let grown = trees.iter().enumerate().map(|(t, (tree, _))| {
            tree.grow(nranks).map_err(|mut problem| {
                problem.title = format!("tree {t}: {}", problem.title);
                problem
            })
        });
        let first = grown.collect::<Result<Vec<_>, _>>()?;
        let turned = |by| first.iter().map(move |tree: &Rooted| tree.turned(by));
        let all = (0..turns).flat_map(turned);
        let weights = weights.cycle().take(first.len() * turns as usize);
        Ok(Forest::new(nranks, all.zip(weights)))
    }
}

fn weighted<T: Into<Tree>>(trees: impl IntoIterator<Item = (T, i64)>) -> Vec<(Tree, i64)> {
    trees.into_iter().map(|(tree, weight)| (tree.into(), weight)).collect()
}

/// Returns a problem with a help text about the form of several trees.
fn bad_trees(title: String) -> Problem {
    Problem::new(Code::BadParameter, title)
        .help("trees name the parents of all ranks, tree by tree, and a weight for each tree")
}

/// Several trees of a known number of ranks.
#[derive(Debug, PartialEq, Eq)]
pub struct Forest {
    trees: Vec<Arc<Rooted>>,
    weights: Vec<i64>,
    /// The place of each tree among the trees of its root.
    position: Vec<i64>,
    /// The weights of the trees of each root.
    of_root: Vec<Vec<i64>>,
}

impl Forest {
    fn new(nranks: u32, trees: impl Iterator<Item = (Rooted, i64)>) -> Self {
        let of_root = vec![Vec::new(); nranks as usize];
        let mut all =
            Self { trees: Vec::new(), weights: Vec::new(), position: Vec::new(), of_root };
        for (tree, weight) in trees {
            let of_root = &mut all.of_root[tree.root() as usize];
            all.position.push(of_root.len() as i64);
            of_root.push(weight);
            all.weights.push(weight);
            all.trees.push(Arc::new(tree));
        }
        all
    }

    /// Returns the trees.
    pub fn trees(&self) -> impl Iterator<Item = &Rooted> {
        self.trees.iter().map(AsRef::as_ref)
    }
}

/// Several trees as a rank sees them: the answers to `trees[t]`, `trees.weights` and the like.
#[derive(Clone, Debug)]
pub(crate) struct TreesPlace {
    pub(crate) forest: Arc<Forest>,
    /// The number of this rank among the members.
    pub(crate) me: u32,
    pub(crate) members: Members,
}

impl TreesPlace {
    pub(crate) fn len(&self) -> i64 {
        self.forest.trees.len() as i64
    }

    /// Returns this rank's node in each tree.
    pub(crate) fn all(&self) -> impl Iterator<Item = TreePlace> {
        self.forest.trees.iter().map(|tree| self.node(tree.clone()))
    }

    /// Returns this rank's node in tree `index`.
    pub(crate) fn tree(&self, index: i64) -> Result<TreePlace, Fault> {
        pick(&self.forest.trees, index).map(|tree| self.node(tree))
    }

    fn node(&self, tree: Arc<Rooted>) -> TreePlace {
        TreePlace { tree, me: self.me, members: self.members.clone() }
    }

    pub(crate) fn weights(&self) -> &[i64] {
        &self.forest.weights
    }

    /// Returns the weights of the trees of a root, in the order of the trees.
    pub(crate) fn weights_of(&self, root: RankId) -> Result<&[i64], Fault> {
        let number = self.members.number(root).ok_or(Fault::Outside { rank: root.0 })?;
        Ok(&self.forest.of_root[number as usize])
    }

    /// Returns the place of tree `index` among the trees of its root.
    pub(crate) fn position_of(&self, index: i64) -> Result<i64, Fault> {
        pick(&self.forest.position, index)
    }
}
