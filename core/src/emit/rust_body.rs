//! The body of an expanded algorithm: one Rust statement for each of the author's.

use std::cell::Cell;

use proc_macro2::{Group, Ident, Literal, Span as RustSpan, TokenStream, TokenTree};
use quote::{ToTokens as _, format_ident, quote, quote_spanned};

use super::rust::{Origin, ident};
use crate::check::hir::{
    Algorithm, Expr, ExprKind, Iter, Param, ParamTy, Signal, Step, Stmt, StmtKind, Ty, VarId,
};
use crate::ids::SpanId;
use crate::schedule::arith::IntFn;
use crate::schedule::builder::fifo::{CREDITS, SLICES};
use crate::syntax::ast::{BinOp, UnOp};

pub(super) struct Body<'a> {
    algorithm: &'a Algorithm,
    origin: &'a Origin<'a>,
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
                quote!(for #var in #s.range(#at, #lo, #hi)? { #body })
            }
            StmtKind::For(var, Iter::List(list), body) => {
                let (var, list, body) = (self.var(*var), self.borrowed(list), self.block(body));
                quote!(for #var in #s.each(#at, #list)? { #body })
            }
            StmtKind::Parallel(var, lo, hi, body) => {
                let (var, lo, hi, body) =
                    (self.var(*var), self.operand(lo), self.operand(hi), self.block(body));
                quote!(#s.parallel(#at, #lo, #hi, |#s, #var| { #body Ok(()) })?;)
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

    /// A value of the checked types: `Int`, `Flag`, `Peer`, `Piece`, …
    pub(super) fn value(&self, expr: &Expr) -> TokenStream {
        match literal(expr) {
            Some(value) => {
                let (int, literal) = (self.path("int"), Literal::i64_unsuffixed(value));
                quote!(#int(#literal))
            }
            None => self.operand(expr),
        }
    }

    /// As `value`, with literals bare: beside an `Int`, or where `impl Into<Int>` is taken.
    pub(super) fn operand(&self, expr: &Expr) -> TokenStream {
        let s = &self.s;
        if let Some(value) = literal(expr) {
            let small = i32::try_from(value).is_ok();
            let literal =
                if small { Literal::i64_unsuffixed(value) } else { Literal::i64_suffixed(value) };
            return quote!(#literal);
        }
        match &*expr.kind {
            ExprKind::Int(_) => unreachable!("a literal"),
            ExprKind::Bool(value) => {
                let flag = self.path("Flag");
                quote!(#flag::from(#value))
            }
            ExprKind::Var(id) => {
                let var = self.var(*id);
                if matches!(
                    expr.ty,
                    Ty::List
                        | Ty::Pieces
                        | Ty::Ring
                        | Ty::Rings
                        | Ty::Tree
                        | Ty::Groups
                        | Ty::Topology
                ) {
                    quote!(#var.clone())
                } else {
                    quote!(#var)
                }
            }
            ExprKind::Rank if self.groups.get() > 0 => quote!(#s.rank()),
            ExprKind::Nranks if self.groups.get() > 0 => quote!(#s.nranks()),
            ExprKind::Rank => quote!(rank),
            ExprKind::Nranks => quote!(nranks),
            ExprKind::Local => quote!(local),
            ExprKind::Input => quote!(#s.input()),
            ExprKind::Output => quote!(#s.output()),
            ExprKind::Unary(op, operand) => {
                let operand = self.receiver(operand);
                match op {
                    UnOp::Neg => quote!(-#operand),
                    UnOp::Not => quote!(!#operand),
                }
            }
            ExprKind::Binary(op, left, right) => self.binary(*op, left, right),
            ExprKind::If(condition, then, otherwise) => {
                let condition = self.value(condition);
                let (then, otherwise) = (self.value(then), self.value(otherwise));
                let choose = self.path("choose");
                quote!(#choose(#condition, || #then, || #otherwise))
            }
            ExprKind::List(items) => {
                let items = items.iter().map(|item| self.value(item));
                let list = self.path("List");
                quote!(#list::of([#(#items),*]))
            }
            ExprKind::IntFn(function, args) => {
                let name = self.function(*function);
                let args = args.iter().map(|arg| self.operand(arg));
                quote!(#name(#(#args),*))
            }
            ExprKind::IsPowerOfTwo(x) => {
                let (name, x) = (self.path("is_power_of_two"), self.operand(x));
                quote!(#name(#x))
            }
            ExprKind::Peer(rank) => {
                let rank = self.operand(rank);
                quote!(#s.peer(#rank))
            }
            ExprKind::Len(of) => {
                let of = self.receiver(of);
                quote!(#of.len())
            }
            ExprKind::Rev(list) => {
                let list = self.receiver(list);
                quote!(#list.rev())
            }
            ExprKind::Element(list, index) => {
                let (list, index) = (self.receiver(list), self.operand(index));
                quote!(#list.at(#index))
            }
            ExprKind::RankOf(peer) => {
                let peer = self.value(peer);
                quote!(#s.rank_of(#peer))
            }
            ExprKind::Split(region, by) if by.ty == Ty::List => {
                let (region, weights) = (self.receiver(region), self.borrowed(by));
                quote!(#region.split_weighted(#weights))
            }
            ExprKind::Split(region, by) => {
                let (region, by) = (self.receiver(region), self.operand(by));
                quote!(#region.split(#by))
            }
            ExprKind::Block(region, index) => {
                let (region, index) = (self.receiver(region), self.operand(index));
                let nranks =
                    if self.groups.get() > 0 { quote!(#s.nranks()) } else { quote!(nranks) };
                quote!(#region.split(#nranks).at(#index))
            }
            ExprKind::Piece(pieces, index) => {
                let (pieces, index) = (self.receiver(pieces), self.operand(index));
                quote!(#pieces.at(#index))
            }
            ExprKind::Range(pieces, lo, hi) => {
                let (pieces, lo, hi) = (self.receiver(pieces), self.operand(lo), self.operand(hi));
                quote!(#pieces.range(#lo, #hi))
            }
            ExprKind::On(peer, region) => {
                let (peer, region) = (self.receiver(peer), self.value(region));
                quote!(#peer.on(#region))
            }
            ExprKind::Rust(text) => {
                // The text came from the compiler's own tokens, so it reads as tokens again.
                let tokens: TokenStream = text.parse().unwrap_or_default();
                let place = RustSpan::call_site().located_at((self.origin.span)(expr.span));
                let (int, tokens) = (respanned(self.path("Int"), place), respanned(tokens, place));
                quote_spanned!(place=> #int::from({ #tokens }))
            }
            ExprKind::RingLeft(_)
            | ExprKind::RingRight(_)
            | ExprKind::RingPosition(_)
            | ExprKind::RingSeat(..)
            | ExprKind::RingAt(..)
            | ExprKind::TreeField(..)
            | ExprKind::GroupsField(..)
            | ExprKind::GroupsOf(..)
            | ExprKind::GroupAt(..)
            | ExprKind::Linked(..)
            | ExprKind::Neighbours(..)
            | ExprKind::Relays(..) => self.question(expr),
            ExprKind::RingNatural
            | ExprKind::RingTwisted
            | ExprKind::RingOrder(_)
            | ExprKind::RingAround(_)
            | ExprKind::RingsChannels(_)
            | ExprKind::RingsDisjoint(..)
            | ExprKind::Tree(_)
            | ExprKind::Groups(_)
            | ExprKind::Topology(..) => self.settled(expr, SpanId(0)),
            ExprKind::Error => unreachable!("a program with errors is not expanded"),
        }
    }

    fn binary(&self, op: BinOp, left: &Expr, right: &Expr) -> TokenStream {
        let method = match op {
            BinOp::And => Some("and"),
            BinOp::Or => Some("or"),
            BinOp::Eq => Some("equals"),
            BinOp::Ne => Some("differs"),
            BinOp::Lt => Some("less"),
            BinOp::Le => Some("at_most"),
            BinOp::Gt => Some("more"),
            BinOp::Ge => Some("at_least"),
            _ => None,
        };
        if let Some(method) = method {
            let method = format_ident!("{method}");
            let left = self.receiver(left);
            let right = self.operand(right);
            let lazy = matches!(op, BinOp::And | BinOp::Or).then(|| quote!(||));
            return quote!(#left.#method(#lazy #right));
        }
        let both = literal(left).is_some() && literal(right).is_some();
        let left = if both { self.value(left) } else { self.grouped(left, op, false) };
        let right = self.grouped(right, op, true);
        let op: TokenStream = op.text().parse().expect("an operator of Rust");
        quote!(#left #op #right)
    }

    /// An operand of arithmetic, in parentheses where precedence asks for them.
    fn grouped(&self, expr: &Expr, op: BinOp, right: bool) -> TokenStream {
        let code = self.operand(expr);
        match &*expr.kind {
            ExprKind::Binary(inner, ..)
                if inner.precedence() > BinOp::Eq.precedence()
                    && (inner.precedence() < op.precedence()
                        || (right && inner.precedence() == op.precedence())) =>
            {
                quote!((#code))
            }
            _ => code,
        }
    }

    /// What a method is called on, or an operand of `-` and `!`.
    pub(super) fn receiver(&self, expr: &Expr) -> TokenStream {
        let code = match &*expr.kind {
            ExprKind::Var(id) => {
                let var = self.var(*id);
                quote!(#var)
            }
            _ => self.value(expr),
        };
        match &*expr.kind {
            ExprKind::Binary(op, ..) if op.precedence() > BinOp::Eq.precedence() => quote!((#code)),
            ExprKind::Unary(..) if literal(expr).is_none() => quote!((#code)),
            _ => code,
        }
    }

    pub(super) fn borrowed(&self, expr: &Expr) -> TokenStream {
        let code = self.receiver(expr);
        quote!(&#code)
    }

    fn function(&self, function: IntFn) -> TokenStream {
        self.path(function.name())
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

/// The same code, for errors at `span`.
fn respanned(code: TokenStream, span: RustSpan) -> TokenStream {
    let one = |mut token: TokenTree| {
        if let TokenTree::Group(group) = &token {
            token = Group::new(group.delimiter(), respanned(group.stream(), span)).into();
        }
        token.set_span(span);
        token
    };
    code.into_iter().map(one).collect()
}

/// An integer literal with its sign.
fn literal(expr: &Expr) -> Option<i64> {
    match &*expr.kind {
        ExprKind::Int(value) => Some(*value),
        ExprKind::Unary(UnOp::Neg, operand) => match *operand.kind {
            ExprKind::Int(value) => value.checked_neg(),
            _ => None,
        },
        _ => None,
    }
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
