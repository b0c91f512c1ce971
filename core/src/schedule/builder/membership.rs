//! Trees and groups at one rank: laid out once for all, and asked for ranks, which are numbers to the program.

use super::{At, Builder, Stop};
use crate::ids::RankId;
use crate::schedule::arith::Fault;
use crate::schedule::groups::{GroupPlace, Groups, Membership};
use crate::schedule::site::Site;
use crate::schedule::tree::{Tree, TreeKind, TreeNode, TreePlace};
use crate::schedule::value::{Int, List};

impl Builder<'_> {
    /// This rank's node in `tree`.
    pub fn tree(&mut self, at: At, tree: &Tree) -> Result<TreeNode, Stop> {
        let (nranks, me) = (self.size(), self.here());
        let tree = self.tables.tree(tree, nranks);
        let tree = self.found(at, tree)?;
        Ok(TreeNode(Ok(TreePlace { tree, me, members: self.members() })))
    }

    /// `Tree::binary(root)` and its kin.
    pub fn tree_regular(
        &mut self,
        at: At,
        kind: TreeKind,
        root: impl Into<Int>,
    ) -> Result<TreeNode, Stop> {
        let root = self.settle(at, root.into().0)?;
        self.tree(at, &Tree::regular(kind, root))
    }

    /// `Tree::double_binary(which)`, or with a root.
    pub fn tree_double_binary(
        &mut self,
        at: At,
        which: impl Into<Int>,
        root: Option<Int>,
    ) -> Result<TreeNode, Stop> {
        let which = self.settle(at, which.into().0)?;
        let root = root.map(|root| self.settle(at, root.0)).transpose()?;
        self.tree(at, &Tree::double_binary(which, root))
    }

    /// `Tree::parents([…])`
    pub fn tree_parents(&mut self, at: At, parents: &List) -> Result<TreeNode, Stop> {
        let parents = self.settle(at, parents.0.clone())?;
        self.tree(at, &Tree::parents(parents))
    }

    /// `tree.children`
    pub fn children(&self, tree: &TreeNode) -> List {
        List(tree.ask(|place| self.numbers(place.children())))
    }

    /// This rank's membership in `groups`.
    pub fn groups(&mut self, at: At, groups: &Groups) -> Result<Membership, Stop> {
        let (nranks, me) = (self.size(), self.here());
        let groups = self.tables.groups(groups, nranks);
        let groups = self.found(at, groups)?;
        Ok(Membership(Ok(GroupPlace { groups, me, members: self.members() })))
    }

    /// `Groups::of(size)`
    pub fn groups_of(&mut self, at: At, size: impl Into<Int>) -> Result<Membership, Stop> {
        let size = self.settle(at, size.into().0)?;
        self.groups(at, &Groups::of(size))
    }

    /// `Groups::sizes([…])`
    pub fn groups_sizes(&mut self, at: At, sizes: &List) -> Result<Membership, Stop> {
        let sizes = self.settle(at, sizes.0.clone())?;
        self.groups(at, &Groups::sizes(sizes))
    }

    /// `Groups::colors([…])`
    pub fn groups_colors(&mut self, at: At, colors: &List) -> Result<Membership, Stop> {
        let colors = self.settle(at, colors.0.clone())?;
        self.groups(at, &Groups::colors(colors))
    }

    /// `Groups::islands(topology)`
    pub fn groups_islands(&mut self, at: At, site: &Site) -> Result<Membership, Stop> {
        let topology = self.ranked(at, site)?.topology;
        self.groups(at, &Groups::islands(topology))
    }

    /// `Groups::rails(topology)`
    pub fn groups_rails(&mut self, at: At, site: &Site) -> Result<Membership, Stop> {
        let topology = self.ranked(at, site)?.topology;
        self.groups(at, &Groups::rails(topology))
    }

    /// `groups.mine`
    pub fn mine(&self, groups: &Membership) -> List {
        List(groups.ask(|place| self.numbers(place.mine())))
    }

    /// `groups.across`
    pub fn across(&self, groups: &Membership) -> List {
        List(groups.ask(|place| self.numbers(place.across())))
    }

    /// `groups.index_of(rank)`
    pub fn index_of(&self, groups: &Membership, rank: impl Into<Int>) -> Int {
        let rank = rank.into();
        let place = groups.ask(|place| place.of(self.find_rank(rank.0?)?));
        Int(place.map(|(index, _)| index.into()))
    }

    /// `groups.position_of(rank)`
    pub fn position_of(&self, groups: &Membership, rank: impl Into<Int>) -> Int {
        let rank = rank.into();
        let place = groups.ask(|place| place.of(self.find_rank(rank.0?)?));
        Int(place.map(|(_, position)| position.into()))
    }

    /// `groups[index]`
    pub fn group(&self, groups: &Membership, index: impl Into<Int>) -> List {
        let index = index.into();
        List(groups.ask(|place| self.numbers(place.group(index.0?)?)))
    }

    /// What the program calls these ranks.
    pub(crate) fn numbers<L: FromIterator<i64>>(
        &self,
        ranks: impl IntoIterator<Item = RankId>,
    ) -> Result<L, Fault> {
        ranks.into_iter().map(|rank| self.number(rank)).collect()
    }
}
