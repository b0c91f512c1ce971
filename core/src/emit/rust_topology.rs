//! Rings and topologies in expanded Rust: what the builder looks up, and what a topology is asked.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::rust_body::{Body, number};
use crate::check::hir::{Demand, Expr, ExprKind, Param, ParamTy, ShapeArg, Ty};
use crate::ids::SpanId;
use crate::topology::shape::ShapeKind;

impl Body<'_> {
    /// A parameter that the builder has to look up: an order of the ranks, a tree, groups or a topology.
    pub(super) fn order_param(&self, param: &Param) -> TokenStream {
        let s = &self.s;
        let name = self.var(param.var);
        let look_up = |value: TokenStream| match param.ty {
            ParamTy::Topology => quote!(#s.topology_param(0, Some(#value))?),
            ParamTy::Rings => quote!(#s.rings(0, #value)?),
            ParamTy::Tree => quote!(#s.tree(0, #value)?),
            ParamTy::Groups => quote!(#s.groups(0, #value)?),
            _ => quote!(#s.ring(0, #value)?),
        };
        let default = match (&param.default, param.ty) {
            (Some(default), _) => self.settled(default, SpanId(0)),
            (None, ParamTy::Topology) => quote!(#s.topology_param(0, None)?),
            (None, ParamTy::Ring) => {
                let ring = self.path("Ring");
                look_up(quote!(&#ring::natural()))
            }
            (None, _) => {
                let given = look_up(quote!(&self.#name));
                return quote!(let #name = #given;);
            }
        };
        if param.ty == ParamTy::Topology {
            // The topology of the run, where none was given.
            let given = look_up(quote!(&given));
            return quote! {
                let #name = match self.#name.clone().or_else(|| #s.placed()) {
                    Some(given) => #given,
                    None => #default,
                };
            };
        }
        let given = look_up(quote!(given));
        quote! {
            let #name = match &self.#name {
                Some(given) => #given,
                None => #default,
            };
        }
    }

    /// A value that only a statement can stop for: what the builder looks up.
    pub(super) fn placed(&self, expr: &Expr, at: SpanId) -> TokenStream {
        let s = &self.s;
        let number = number(at);
        match &*expr.kind {
            ExprKind::RingAround(topology) => {
                self.looked_up(topology, at, |topology| quote!(#s.ring_around(#number, #topology)?))
            }
            ExprKind::RingsChannels(topology) => self.looked_up(
                topology,
                at,
                |topology| quote!(#s.rings_channels(#number, #topology)?),
            ),
            ExprKind::RingsDisjoint(topology, k) => self.looked_up(topology, at, |topology| {
                let k = self.operand(k);
                quote!(#s.rings_disjoint(#number, #topology, #k)?)
            }),
            ExprKind::Topology(kind, args, cuts) => {
                let drawing = self.drawing(*kind, args, cuts);
                quote!(#s.topology(#number, #drawing)?)
            }
            ExprKind::Tree(form) => self.tree(form, at),
            ExprKind::Groups(form) => self.groups(form, at),
            _ => self.value(expr),
        }
    }

    /// What an attribute demands.
    pub(super) fn demand(&self, demand: &Demand, at: SpanId) -> TokenStream {
        let s = &self.s;
        let number = number(at);
        match demand {
            Demand::Topology(topology) => {
                let call = |topology| quote!(#s.on_topology(#number, #topology)?;);
                let own = self.looked_up(topology, at, call);
                quote!(if #s.placed().is_none() { #own })
            }
            Demand::Deterministic => quote!(#s.deterministic(#number)?;),
            Demand::Budget(resource, most) => {
                let (resources, resource) = (self.path("Resource"), format_ident!("{resource:?}"));
                let most = self.operand(most);
                quote!(#s.budget(#number, #resources::#resource, #most)?;)
            }
            Demand::Multiple(of, why) => {
                let of = self.operand(of);
                quote!(#s.multiple(#number, #of, #why)?;)
            }
        }
    }

    /// What the builder finds on a topology; one that has no name gets one first, for the builder makes it too.
    pub(super) fn looked_up(
        &self,
        topology: &Expr,
        at: SpanId,
        find: impl FnOnce(TokenStream) -> TokenStream,
    ) -> TokenStream {
        if let ExprKind::Var(_) = &*topology.kind {
            return find(self.borrowed(topology));
        }
        let made = self.settled(topology, at);
        let site = self.free("site");
        let found = find(quote!(&#site));
        quote!({ let #site = #made; #found })
    }

    /// `full_mesh(8) without (0, 1)`
    fn drawing(&self, kind: ShapeKind, args: &[ShapeArg], cuts: &[(Expr, Expr)]) -> TokenStream {
        let (drawing, kinds) = (self.path("Drawing"), self.path("ShapeKind"));
        let kind = format_ident!("{kind:?}");
        let args = args.iter().map(|arg| match arg {
            ShapeArg::Size(list) if list.ty == Ty::List => {
                let list = self.borrowed(list);
                quote!(.sizes(#list))
            }
            ShapeArg::Size(size) => {
                let size = self.operand(size);
                quote!(.size(#size))
            }
            ShapeArg::Rate(rate) => {
                let rate = Literal::u64_unsuffixed(*rate);
                quote!(.rate(#rate))
            }
            ShapeArg::Time(time) => {
                let time = Literal::u64_unsuffixed(*time);
                quote!(.time(#time))
            }
        });
        let cuts = cuts.iter().map(|(a, b)| {
            let (a, b) = (self.operand(a), self.operand(b));
            quote!(.without(#a, #b))
        });
        quote!(#drawing::new(#kinds::#kind) #(#args)* #(#cuts)*)
    }

    /// What a topology or rings are asked.
    pub(super) fn question(&self, expr: &Expr) -> TokenStream {
        match &*expr.kind {
            ExprKind::RingLeft(ring) => {
                let ring = self.receiver(ring);
                quote!(#ring.left())
            }
            ExprKind::RingRight(ring) => {
                let ring = self.receiver(ring);
                quote!(#ring.right())
            }
            ExprKind::RingPosition(ring) => {
                let ring = self.receiver(ring);
                quote!(#ring.position())
            }
            ExprKind::RingSeat(rings, index) | ExprKind::RingAt(rings, index) => {
                let (rings, index) = (self.receiver(rings), self.operand(index));
                quote!(#rings.at(#index))
            }
            ExprKind::RingPositionOf(ring, rank) => {
                let (s, ring, rank) = (&self.s, self.borrowed(ring), self.operand(rank));
                quote!(#s.ring_position_of(#ring, #rank))
            }
            ExprKind::Linked(topology, from, to) => {
                let (from, to) = (self.operand(from), self.operand(to));
                let topology = self.receiver(topology);
                quote!(#topology.linked(#from, #to))
            }
            ExprKind::Neighbors(topology, rank) => {
                let (topology, rank) = (self.receiver(topology), self.operand(rank));
                quote!(#topology.neighbors(#rank))
            }
            ExprKind::Relays(topology, from, to) => {
                let (from, to) = (self.operand(from), self.operand(to));
                let topology = self.receiver(topology);
                quote!(#topology.relays(#from, #to))
            }
            ExprKind::TopologyField(field, topology) => {
                let (topology, field) =
                    (self.receiver(topology), format_ident!("{}", field.name()));
                quote!(#topology.#field())
            }
            ExprKind::TreeField(field, tree) => self.tree_field(*field, tree),
            ExprKind::GroupsField(field, groups) => self.groups_field(*field, groups),
            ExprKind::GroupsOf(field, groups, rank) => self.groups_of(*field, groups, rank),
            ExprKind::GroupAt(groups, index) => {
                let s = &self.s;
                let (groups, index) = (self.borrowed(groups), self.operand(index));
                quote!(#s.group(#groups, #index))
            }
            _ => self.placed(expr, SpanId(0)),
        }
    }
}
