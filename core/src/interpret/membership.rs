//! Trees and groups in the interpreter: how they are made and what they are asked.

use super::Run;
use super::eval::Value;
use crate::check::hir::{Expr, ExprKind, GroupsField, GroupsForm, TreeField, TreeForm};
use crate::ids::RankId;
use crate::schedule::arith::Fault;
use crate::schedule::builder::{Builder, Stop};
use crate::schedule::groups::{Groups, Membership};
use crate::schedule::tree::{Tree, TreeNode};
use crate::source::Span;

impl<'a> Run<'a> {
    pub(super) fn membership(
        &mut self,
        b: &mut Builder<'_>,
        expr: &'a Expr,
    ) -> Result<Value, Stop> {
        let span = expr.span;
        Ok(match &*expr.kind {
            ExprKind::Tree(form) => {
                let tree = match form {
                    TreeForm::Regular(kind, root) => Tree::regular(*kind, self.int(b, root)?),
                    TreeForm::DoubleBinary(which, root) => {
                        let which = self.int(b, which)?;
                        let root = root.as_ref().map(|root| self.int(b, root)).transpose()?;
                        Tree::double_binary(which, root)
                    }
                    TreeForm::Parents(list) => Tree::parents(self.list(b, list)?.iter().copied()),
                };
                self.tree(b, span, |b, at| b.tree(at, &tree))?
            }
            ExprKind::TreeField(field, tree) => {
                let tree = self.tree_place(b, tree)?;
                match field {
                    TreeField::Root => Value::Peer(tree.root()),
                    TreeField::Parent => Value::Peer(self.settle(b, span, tree.parent())?),
                    TreeField::Children => self.numbers(b, span, tree.children())?,
                    TreeField::Level => Value::Int(tree.level().into()),
                    TreeField::Depth => Value::Int(tree.depth().into()),
                }
            }
            ExprKind::Groups(form) => {
                let groups = match form {
                    GroupsForm::Of(size) => Groups::of(self.int(b, size)?),
                    GroupsForm::Sizes(list) => Groups::sizes(self.list(b, list)?.iter().copied()),
                    GroupsForm::Colors(list) => Groups::colors(self.list(b, list)?.iter().copied()),
                    GroupsForm::Balanced => Groups::balanced(),
                    GroupsForm::Islands(topology) => {
                        Groups::islands(self.topology(b, topology)?.topology)
                    }
                    GroupsForm::Rails(topology) => {
                        Groups::rails(self.topology(b, topology)?.topology)
                    }
                };
                self.groups(b, span, |b, at| b.groups(at, &groups))?
            }
            ExprKind::GroupsField(field, groups) => {
                let groups = self.group_place(b, groups)?;
                match field {
                    GroupsField::Mine => self.numbers(b, span, groups.mine())?,
                    GroupsField::Across => self.numbers(b, span, groups.across())?,
                    GroupsField::Index => Value::Int(groups.index().into()),
                    GroupsField::Position => Value::Int(groups.position().into()),
                    GroupsField::Even => Value::Bool(groups.even()),
                }
            }
            ExprKind::GroupsOf(field, groups, rank) => {
                let (groups, rank) = (self.group_place(b, groups)?, self.int(b, rank)?);
                let place = b.find_rank(rank).and_then(|rank| groups.of(rank));
                let (index, position) = self.settle(b, span, place)?;
                Value::Int(i64::from(if *field == GroupsField::Index { index } else { position }))
            }
            ExprKind::GroupAt(groups, index) => {
                let (groups, index) = (self.group_place(b, groups)?, self.int(b, index)?);
                let group = self.settle(b, span, groups.group(index))?;
                self.numbers(b, span, group)?
            }
            other => unreachable!("neither a tree nor groups: {other:?}"),
        })
    }

    /// What the builder makes of a tree.
    pub(super) fn tree(
        &self,
        b: &mut Builder<'_>,
        span: Span,
        make: impl FnOnce(&mut Builder<'_>, u32) -> Result<TreeNode, Stop>,
    ) -> Result<Value, Stop> {
        let node = self.exactly(b, span, make)?;
        Ok(Value::Tree(self.settle(b, span, node.0)?))
    }

    /// What the builder makes of groups.
    pub(super) fn groups(
        &self,
        b: &mut Builder<'_>,
        span: Span,
        make: impl FnOnce(&mut Builder<'_>, u32) -> Result<Membership, Stop>,
    ) -> Result<Value, Stop> {
        let membership = self.exactly(b, span, make)?;
        Ok(Value::Groups(self.settle(b, span, membership.0)?))
    }

    fn numbers(
        &self,
        b: &mut Builder<'_>,
        span: Span,
        ranks: impl IntoIterator<Item = RankId>,
    ) -> Result<Value, Stop> {
        let numbers: Result<_, Fault> = b.numbers(ranks);
        Ok(Value::List(self.settle(b, span, numbers)?))
    }
}
