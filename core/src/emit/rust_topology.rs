//! Rings and topologies in expanded Rust: what the builder looks up, and what a topology is asked.

use proc_macro2::{Literal, TokenStream};
use quote::{format_ident, quote};

use super::rust_body::{Body, number};
use crate::check::hir::{Demand, Expr, ExprKind, Param, ParamTy, ShapeArg, Ty};
use crate::ids::SpanId;
use crate::topology::shape::ShapeKind;

impl Body<'_> {
    /// A parameter that the builder has to look up: a ring, rings or a topology.
    pub(super) fn order_param(&self, param: &Param) -> TokenStream {
        let s = &self.s;
        let name = self.var(param.var);
        let (given, natural) = match param.ty {
            ParamTy::Topology => {
                (quote!(topology_param(0, Some(given))), quote!(topology_param(0, None)))
            }
            ParamTy::Rings => (quote!(rings(0, given)), quote!()),
            _ => {
                let ring = self.path("Ring");
                (quote!(ring(0, given)), quote!(ring(0, &#ring::natural())))
            }
        };
        let default = match &param.default {
            Some(default) => self.settled(default, SpanId(0)),
            None if param.ty == ParamTy::Rings => {
                return quote!(let #name = #s.rings(0, &self.#name)?;);
            }
            None => quote!(#s.#natural?),
        };
        quote! {
            let #name = match &self.#name {
                Some(given) => #s.#given?,
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
                self.looked_up(topology, at, call)
            }
            Demand::Deterministic => quote!(#s.deterministic(#number)?;),
            Demand::Budget(resource, most) => {
                let (resources, resource) = (self.path("Resource"), format_ident!("{resource:?}"));
                let most = self.operand(most);
                quote!(#s.budget(#number, #resources::#resource, #most)?;)
            }
        }
    }

    /// What the builder finds on a topology; one that has no name gets one first, for the builder makes it too.
    fn looked_up(
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
            ExprKind::Linked(topology, from, to) => {
                let (from, to) = (self.operand(from), self.operand(to));
                let topology = self.receiver(topology);
                quote!(#topology.linked(#from, #to))
            }
            ExprKind::Neighbours(topology, rank) => {
                let (topology, rank) = (self.receiver(topology), self.operand(rank));
                quote!(#topology.neighbours(#rank))
            }
            ExprKind::Relays(topology, from, to) => {
                let (from, to) = (self.operand(from), self.operand(to));
                let topology = self.receiver(topology);
                quote!(#topology.relays(#from, #to))
            }
            _ => self.placed(expr, SpanId(0)),
        }
    }
}
