//! The body of an expanded algorithm: one Rust statement for each of the author's.

use std::cell::Cell;

use proc_macro2::{Ident, Literal, Span as RustSpan, TokenStream, TokenTree};
use quote::{ToTokens as _, format_ident, quote};

use super::rust_origin::{Origin, ident};
use crate::check::hir::{
    Algorithm, Expr, ExprKind, Iter, Param, ParamTy, Signal, Step, Stmt, StmtKind, Ty, VarId,
};
use crate::ids::SpanId;
use crate::schedule::builder::fifo::{CREDITS, SLICES};

pub(super) struct Body<'a> {
    algorithm: &'a Algorithm,
    pub(super) origin: &'a Origin<'a>,
    /// The builder: a name that the author does not use.
    pub(super) s: Ident,
    /// How many `within` blocks deep: there, ranks have other numbers.
    pub(super) groups: Cell<u32>,
}

impl<'a> Body<'a> {
    pub(super) fn new(algorithm: &'a Algorithm, origin: &'a Origin<'a>) -> Self {
        let s = free(algorithm, &["s", "schedule", "builder"]);
        Self { algorithm, origin, s, groups: Cell::new(0) }
    }

    /// A name for a value of the expansion.
    pub(super) fn free(&self, name: &str) -> Ident {
        free(self.algorithm, &[name])
    }

    /// The builder's name and the statements.
    pub(super) fn emit(&self) -> (Ident, TokenStream) {
        let params: TokenStream = self.algorithm.params.iter().map(|p| self.param(p)).collect();
        let body = self.block(&self.algorithm.body);
        let code = quote!(#params #body);
        let s = &self.s;
        let predefined: TokenStream = ["rank", "nranks", "local"]
            .into_iter()
            .filter(|name| mentions(&code, name))
            .map(|name| {
                let name = format_ident!("{name}");
                quote!(let #name = #s.#name();)
            })
            .collect();
        (s.clone(), quote!(#predefined #code))
    }

    pub(super) fn var(&self, id: VarId) -> Ident {
        let var = &self.algorithm.vars[id.0 as usize];
        ident(&var.name, (self.origin.span)(var.span))
    }

    fn param(&self, param: &Param) -> TokenStream {
        let s = &self.s;
        let name = self.var(param.var);
        let wrap = match param.ty {
            ParamTy::Int | ParamTy::Rank => self.path("Int"),
            ParamTy::Bool => self.path("Flag"),
            ParamTy::Ranks => self.path("List"),
            ParamTy::Ring
            | ParamTy::Rings
            | ParamTy::Tree
            | ParamTy::Groups
            | ParamTy::Topology => return self.order_param(param),
        };
        let value = match &param.default {
            Some(default) => {
                let default = self.value(default);
                quote!(self.#name.clone().map_or_else(|| #default, #wrap::from))
            }
            None => quote!(#wrap::from(self.#name.clone())),
        };
        if param.ty == ParamTy::Rank {
            let is_root = self.algorithm.vars[param.var.0 as usize].name == "root";
            return quote! {
                let #name = #value;
                let #name = #s.rank_param(0, #name, #is_root)?;
            };
        }
        quote!(let #name = #value;)
    }

    pub(super) fn block(&self, body: &[Stmt]) -> TokenStream {
        body.iter().map(|stmt| self.stmt(stmt)).collect()
    }

    /// The loops inside a loop, where the builder can tell before they begin that they are too long.
    fn nested(&self, stmt: &Stmt) -> TokenStream {
        let (s, at) = (&self.s, number(stmt.at));
        let nests = stmt.nests().into_iter().map(|nest| {
            let bounds = nest.into_iter().map(|(lo, hi)| {
                let (lo, hi) = (self.value(lo), self.value(hi));
                quote!((#lo, #hi))
            });
            quote!(#s.nested(#at, &[#(#bounds),*])?;)
        });
        nests.collect()
    }

    fn stmt(&self, stmt: &Stmt) -> TokenStream {
        let s = &self.s;
        let at = number(stmt.at);
        match &stmt.kind {
            StmtKind::Let(var, value) => {
                let (var, value) = (self.var(*var), self.settled(value, stmt.at));
                quote!(let #var = #value;)
            }
            StmtKind::For(var, Iter::Range(lo, hi), body) => {
                let (var, lo, hi, body) =
                    (self.var(*var), self.operand(lo), self.operand(hi), self.block(body));
                let nested = self.nested(stmt);
                quote!(#nested for #var in #s.range(#at, #lo, #hi)? { #body })
            }
            StmtKind::For(var, Iter::List(list), body) => {
                let (var, list, body) = (self.var(*var), self.borrowed(list), self.block(body));
                quote!(for #var in #s.each(#at, #list)? { #body })
            }
            StmtKind::Parallel(var, lo, hi, body) => {
                let (var, lo, hi, body) =
                    (self.var(*var), self.operand(lo), self.operand(hi), self.block(body));
                let nested = self.nested(stmt);
                quote!(#nested #s.parallel(#at, #lo, #hi, |#s, #var| { #body Ok(()) })?;)
            }
            StmtKind::If(arms, otherwise) => {
                let arms = arms.iter().enumerate().map(|(i, (condition, body))| {
                    let (condition, body) = (self.value(condition), self.block(body));
                    let chain = (i > 0).then(|| quote!(else));
                    quote!(#chain if #s.test(#at, #condition)? { #body })
                });
                let otherwise = otherwise.as_ref().map(|body| {
                    let body = self.block(body);
                    quote!(else { #body })
                });
                quote!(#(#arms)* #otherwise)
            }
            StmtKind::Require(condition, why) => {
                let condition = self.value(condition);
                quote!(#s.require(#at, #condition, #why)?;)
            }
            StmtKind::Scratch(var, count, like) => {
                let name = &self.algorithm.vars[var.0 as usize].name;
                let var = self.var(*var);
                let count = count.as_ref().map(|count| self.operand(count));
                let call = match (like.ty, count) {
                    (Ty::Region, None) => {
                        let like = self.value(like);
                        quote!(scratch(#at, #name, #like))
                    }
                    (Ty::Region, Some(count)) => {
                        let like = self.value(like);
                        quote!(scratch_slots(#at, #name, #count, #like))
                    }
                    (_, count) => {
                        let like = self.borrowed(like);
                        let count = count.unwrap_or_else(|| quote!(1));
                        quote!(scratch_blocks(#at, #name, #count, #like))
                    }
                };
                quote!(let #var = #s.#call?;)
            }
            StmtKind::Step(step) => self.step(step, stmt.at),
            StmtKind::Call(step, args) => {
                let step = self.var(*step);
                let args: Vec<_> = args.iter().map(|arg| self.settled(arg, stmt.at)).collect();
                let names: Vec<_> =
                    (0..args.len()).map(|i| format_ident!("argument_{i}")).collect();
                if args.iter().any(|arg| mentions(arg, &s.to_string())) {
                    return quote!({ #(let #names = #args;)* #step(#s, #(#names),*)?; });
                }
                quote!(#step(#s, #(#args),*)?;)
            }
            StmtKind::Copy(src, dsts) => {
                let src = self.value(src);
                let dsts = dsts.iter().map(|dst| self.value(dst));
                quote!(#s.copy(#at, #src, &[#(#dsts),*])?;)
            }
            StmtKind::Reduce(srcs, dst) => {
                let srcs = srcs.iter().map(|src| self.value(src));
                let dst = self.value(dst);
                quote!(#s.reduce(#at, &[#(#srcs),*], #dst)?;)
            }
            StmtKind::Signal(signal, peer) => {
                let peer = self.value(peer);
                let call = match signal {
                    Signal::TxAck => quote!(tx_ack),
                    Signal::RxAck => quote!(rx_ack),
                    Signal::TxDataSignal => quote!(tx_data_signal),
                    Signal::RxDataSignal => quote!(rx_data_signal),
                };
                quote!(#s.#call(#at, #peer)?;)
            }
            StmtKind::Within(group, body) => self.within(group, body, stmt.at),
            StmtKind::Run(run) => self.run(run, stmt.at),
            StmtKind::Demand(demand) => self.demand(demand, stmt.at),
            StmtKind::Fifo { like, credits, slices } => {
                let size = |size: &Option<Expr>, default: u32| match size {
                    Some(size) => self.operand(size),
                    None => Literal::u32_unsuffixed(default).into_token_stream(),
                };
                let (credits, slices) = (size(credits, CREDITS), size(slices, SLICES));
                if like.ty == Ty::Region {
                    let like = self.value(like);
                    return quote!(#s.fifo(#at, #like, #credits, #slices)?;);
                }
                let like = self.borrowed(like);
                quote!(#s.fifo_blocks(#at, #like, #credits, #slices)?;)
            }
            StmtKind::Primitive { primitive, peer, places, onward } => {
                let name = Ident::new(primitive.name(), RustSpan::call_site());
                let peer = self.value(peer);
                let places = places.iter().chain(onward).map(|place| self.value(place));
                quote!(#s.#name(#at, #peer, #(#places),*)?;)
            }
        }
    }

    fn step(&self, step: &Step, at: SpanId) -> TokenStream {
        let s = &self.s;
        let at = number(at);
        let name = self.var(step.name);
        let params = step.params.iter().map(|param| {
            let var = self.var(*param);
            let ty = self.path(match self.algorithm.vars[param.0 as usize].ty {
                Ty::Bool => "Flag",
                Ty::Peer => "Peer",
                Ty::Ring => "Seat",
                Ty::Rings => "Seats",
                Ty::Tree => "TreeNode",
                Ty::Groups => "Membership",
                Ty::Topology => "Site",
                Ty::List => "List",
                Ty::Region => "Piece",
                _ => "Int",
            });
            quote!(#var: #ty)
        });
        let body = self.block(&step.body);
        let (builder, stop) = (self.path("Builder"), self.path("Stop"));
        quote! {
            let #name = |#s: &mut #builder<'_>, #(#params),*| -> ::core::result::Result<(), #stop> {
                #s.step(#at)?;
                #body
                Ok(())
            };
        }
    }

    /// A value where a statement can stop: at the top of a `let`.
    pub(super) fn settled(&self, expr: &Expr, at: SpanId) -> TokenStream {
        let s = &self.s;
        let number = number(at);
        match &*expr.kind {
            ExprKind::If(condition, then, otherwise) => {
                let condition = self.value(condition);
                let (then, otherwise) = (self.settled(then, at), self.settled(otherwise, at));
                quote!(if #s.test(#number, #condition)? { #then } else { #otherwise })
            }
            ExprKind::RingNatural | ExprKind::RingTwisted => {
                let ring = self.path("Ring");
                let natural = matches!(*expr.kind, ExprKind::RingNatural);
                let order = format_ident!("{}", if natural { "natural" } else { "twisted" });
                quote!(#s.ring(#number, &#ring::#order())?)
            }
            ExprKind::RingOrder(list) => {
                let list = self.borrowed(list);
                quote!(#s.ring_order(#number, #list)?)
            }
            _ => self.placed(expr, at),
        }
    }

    /// A name of the expansion, by its full path where the author may mean something else by it.
    pub(super) fn path(&self, name: &str) -> TokenStream {
        let taken = self.algorithm.vars.iter().any(|var| var.name == name);
        let name = Ident::new(name, RustSpan::call_site());
        if taken || self.algorithm.escapes {
            quote!(::roundelay::expand::#name)
        } else {
            quote!(#name)
        }
    }
}

/// The first of `names` that the author does not use, or else something like the last.
fn free(algorithm: &Algorithm, names: &[&str]) -> Ident {
    let taken = |name: &str| algorithm.vars.iter().any(|var| var.name == name);
    let mut name =
        names.iter().find(|name| !taken(name)).or(names.last()).map_or("", |n| n).to_owned();
    while taken(&name) {
        name.push('_');
    }
    format_ident!("{name}")
}

pub(super) fn number(at: SpanId) -> Literal {
    Literal::u32_unsuffixed(at.0)
}

/// Whether the identifier `name` occurs in the code.
fn mentions(code: &TokenStream, name: &str) -> bool {
    code.clone().into_iter().any(|token| match token {
        TokenTree::Ident(ident) => ident == name,
        TokenTree::Group(group) => mentions(&group.stream(), name),
        _ => false,
    })
}
