//! Trees and groups at one rank. They are laid out once for all ranks, and return ranks as numbers that the program
//! sees.

use super::{At, Builder, Stop};
use crate::ids::RankId;
use crate::values::arith::Fault;
use crate::values::groups::{GroupPlace, Groups};
use crate::values::tree::{Tree, TreePlace};
use crate::values::trees::{Trees, TreesPlace};
use roundelay_topology::Problem;

impl Builder<'_> {
    /// Returns this rank's node in `tree`.
    pub(crate) fn tree(&mut self, at: At, tree: &Tree) -> Result<TreePlace, Stop> {
        let (nranks, me) = (self.size(), self.here());
        let tree = self.tables.tree(tree, nranks);
        let tree = self.found(at, tree)?;
        Ok(TreePlace { tree, me, members: self.members() })
    }

    /// Returns this rank's nodes in several trees.
    pub(crate) fn trees(
        &mut self,
        at: At,
        trees: Result<Trees, Problem>,
    ) -> Result<TreesPlace, Stop> {
        let (nranks, me) = (self.size(), self.here());
        let trees = self.found(at, trees)?;
        let forest = self.tables.forest(&trees, nranks);
        let forest = self.found(at, forest)?;
        Ok(TreesPlace { forest, me, members: self.members() })
    }

    /// Returns this rank's membership in `groups`.
    pub(crate) fn groups(&mut self, at: At, groups: &Groups) -> Result<GroupPlace, Stop> {
        let (nranks, me) = (self.size(), self.here());
        let groups = self.tables.groups(groups, nranks);
        let groups = self.found(at, groups)?;
        Ok(GroupPlace { groups, me, members: self.members() })
    }

    /// Returns the numbers of these ranks in the program.
    pub(crate) fn numbers<L: FromIterator<i64>>(
        &self,
        ranks: impl IntoIterator<Item = RankId>,
    ) -> Result<L, Fault> {
        ranks.into_iter().map(|rank| self.number(rank)).collect()
    }

    /// Returns a tree as the parameter of an algorithm that the program calls.
    pub(crate) fn given_tree(&self, place: &TreePlace) -> Result<Tree, Fault> {
        let number = |rank| Ok(self.number(rank)? as u32);
        let edges = place.edges().map(|(up, down)| Ok((number(up)?, number(down)?)));
        Ok(Tree::edges(number(place.root())?, edges.collect::<Result<_, Fault>>()?))
    }

    /// Returns several trees as the parameter of an algorithm that the program calls.
    pub(crate) fn given_trees(&self, place: &TreesPlace) -> Result<Trees, Fault> {
        let trees =
            place.all().map(|tree| self.given_tree(&tree)).collect::<Result<Vec<_>, _>>()?;
        Ok(Trees::of(trees.into_iter().zip(place.weights().iter().copied())))
    }

    /// Returns groups as the parameter of an algorithm that the program calls.
    pub(crate) fn given_groups(&self, place: &GroupPlace) -> Result<Groups, Fault> {
        let lists = place.all().map(|group| self.numbers(group));
        Ok(Groups::lists(lists.collect::<Result<_, Fault>>()?))
    }
}
