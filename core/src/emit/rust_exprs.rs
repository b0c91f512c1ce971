//! Expressions in expanded Rust: the author's arithmetic as arithmetic, and questions as calls.

use proc_macro2::{Group, Literal, Span as RustSpan, TokenStream, TokenTree};
use quote::{quote, quote_spanned};

use super::rust_body::Body;
use crate::check::hir::{Expr, ExprKind, Ty};
use crate::ids::SpanId;
use crate::syntax::ast::{BinOp, UnOp};
use crate::syntax::expr_text::{ATOM, Target, Text};

impl Body<'_> {
    /// A value of the checked types: `Int`, `Flag`, `Peer`, `Piece`, …
    pub(super) fn value(&self, expr: &Expr) -> TokenStream {
        self.valued(expr).code
    }

    /// As `value`, with literals bare: beside an `Int`, or where `impl Into<Int>` is taken.
    pub(super) fn operand(&self, expr: &Expr) -> TokenStream {
        self.bare(expr).code
    }

    fn valued(&self, expr: &Expr) -> Text<TokenStream> {
        match literal(expr) {
            Some(value) => {
                let (int, literal) = (self.path("int"), Literal::i64_unsuffixed(value));
                Text::atom(quote!(#int(#literal)))
            }
            None => self.bare(expr),
        }
    }

    fn bare(&self, expr: &Expr) -> Text<TokenStream> {
        if let Some(value) = literal(expr) {
            let small = i32::try_from(value).is_ok();
            let literal =
                if small { Literal::i64_unsuffixed(value) } else { Literal::i64_suffixed(value) };
            return Text::number(quote!(#literal), value);
        }
        match &*expr.kind {
            ExprKind::Unary(op, operand) => Target::Rust.unary(*op, self.valued(operand)),
            ExprKind::Binary(op, left, right) => self.binary(*op, left, right),
            _ => Text::atom(self.atom(expr)),
        }
    }

    fn atom(&self, expr: &Expr) -> TokenStream {
        let s = &self.s;
        match &*expr.kind {
            ExprKind::Int(_) | ExprKind::Unary(..) | ExprKind::Binary(..) => {
                unreachable!("a literal, or an operator")
            }
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
                let name = self.path(function.name());
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
            | ExprKind::RingPositionOf(..)
            | ExprKind::RingAt(..)
            | ExprKind::TreeField(..)
            | ExprKind::GroupsField(..)
            | ExprKind::GroupsOf(..)
            | ExprKind::GroupAt(..)
            | ExprKind::Linked(..)
            | ExprKind::Neighbors(..)
            | ExprKind::Relays(..)
            | ExprKind::TopologyField(..) => self.question(expr),
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

    fn binary(&self, op: BinOp, left: &Expr, right: &Expr) -> Text<TokenStream> {
        // An operator of Rust needs one `Int`, a method is one's own.
        let typed = !Target::Rust.is_infix(op) || literal(right).is_some();
        let left = if typed { self.valued(left) } else { self.bare(left) };
        Target::Rust.binary(op, left, self.bare(right))
    }

    /// What a method is called on.
    pub(super) fn receiver(&self, expr: &Expr) -> TokenStream {
        if let ExprKind::Var(id) = &*expr.kind {
            let var = self.var(*id);
            return quote!(#var);
        }
        self.valued(expr).at_least(ATOM)
    }

    pub(super) fn borrowed(&self, expr: &Expr) -> TokenStream {
        let code = self.receiver(expr);
        quote!(&#code)
    }
}

/// The code with all its tokens at `span`, so that errors of rustc point there.
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
