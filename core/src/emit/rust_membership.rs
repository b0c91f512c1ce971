//! Trees and groups in expanded Rust: what the builder lays out, and what a tree and groups are asked.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::rust_body::{Body, number};
use crate::check::hir::{Expr, GroupsField, GroupsForm, TreeField, TreeForm};
use crate::ids::SpanId;

impl Body<'_> {
    /// `Tree::binary(root)` and its kin.
    pub(super) fn tree(&self, form: &TreeForm, at: SpanId) -> TokenStream {
        let s = &self.s;
        let at = number(at);
        match form {
            TreeForm::Regular(kind, root) => {
                let (kinds, kind) = (self.path("TreeKind"), format_ident!("{kind:?}"));
                let root = self.operand(root);
                quote!(#s.tree_regular(#at, #kinds::#kind, #root)?)
            }
            TreeForm::DoubleBinary(which, root) => {
                let which = self.operand(which);
                let root = match root.as_ref().map(|root| self.value(root)) {
                    Some(root) => quote!(Some(#root)),
                    None => quote!(None),
                };
                quote!(#s.tree_double_binary(#at, #which, #root)?)
            }
            TreeForm::Parents(list) => {
                let list = self.borrowed(list);
                quote!(#s.tree_parents(#at, #list)?)
            }
        }
    }

    /// `tree.root` and its kin.
    pub(super) fn tree_field(&self, field: TreeField, tree: &Expr) -> TokenStream {
        let method = match field {
            TreeField::Root => "root",
            TreeField::Parent => "parent",
            TreeField::Level => "level",
            TreeField::Depth => "depth",
            // Ranks are numbers, and which ones the builder knows.
            TreeField::Children => {
                let (s, tree) = (&self.s, self.borrowed(tree));
                return quote!(#s.children(#tree));
            }
        };
        let (method, tree) = (format_ident!("{method}"), self.receiver(tree));
        quote!(#tree.#method())
    }

    /// `Groups::of(size)` and its kin.
    pub(super) fn groups(&self, form: &GroupsForm, at: SpanId) -> TokenStream {
        let s = &self.s;
        let number = number(at);
        match form {
            GroupsForm::Of(size) => {
                let size = self.operand(size);
                quote!(#s.groups_of(#number, #size)?)
            }
            GroupsForm::Sizes(list) => {
                let list = self.borrowed(list);
                quote!(#s.groups_sizes(#number, #list)?)
            }
            GroupsForm::Colors(list) => {
                let list = self.borrowed(list);
                quote!(#s.groups_colors(#number, #list)?)
            }
            GroupsForm::Balanced => {
                let groups = self.path("Groups");
                quote!(#s.groups(#number, &#groups::balanced())?)
            }
            GroupsForm::Islands(topology) => {
                self.looked_up(topology, at, |t| quote!(#s.groups_islands(#number, #t)?))
            }
            GroupsForm::Rails(topology) => {
                self.looked_up(topology, at, |t| quote!(#s.groups_rails(#number, #t)?))
            }
        }
    }

    /// `groups.mine` and its kin.
    pub(super) fn groups_of(&self, field: GroupsField, groups: &Expr, rank: &Expr) -> TokenStream {
        let s = &self.s;
        let method = if field == GroupsField::Index { "index_of" } else { "position_of" };
        let method = format_ident!("{method}");
        let (groups, rank) = (self.borrowed(groups), self.operand(rank));
        quote!(#s.#method(#groups, #rank))
    }

    pub(super) fn groups_field(&self, field: GroupsField, groups: &Expr) -> TokenStream {
        let s = &self.s;
        let groups = self.receiver(groups);
        match field {
            GroupsField::Mine => quote!(#s.mine(&#groups)),
            GroupsField::Across => quote!(#s.across(&#groups)),
            GroupsField::Index => quote!(#groups.index()),
            GroupsField::Position => quote!(#groups.position()),
            GroupsField::Even => quote!(#groups.even()),
        }
    }
}
