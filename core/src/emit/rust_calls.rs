//! `within` and calls in expanded Rust, and the algorithms of used sources that come along with their caller.

use proc_macro2::{Span as RustSpan, TokenStream};
use quote::quote;

use super::rust::{Origin, ident, item};
use super::rust_body::{Body, number};
use crate::check::hir::{Algorithm, Callee, Expr, Home, Run, Stmt};
use crate::ids::SpanId;

impl Body<'_> {
    pub(super) fn within(&self, group: &Expr, body: &[Stmt], at: SpanId) -> TokenStream {
        let s = &self.s;
        let (at, group) = (number(at), self.borrowed(group));
        self.groups.set(self.groups.get() + 1);
        let body = self.block(body);
        self.groups.set(self.groups.get() - 1);
        quote!(#s.within(#at, #group, |#s| { #body Ok(()) })?;)
    }

    pub(super) fn run(&self, run: &Run, at: SpanId) -> TokenStream {
        let s = &self.s;
        let algorithm = &run.callee.algorithm;
        let name = ident(&algorithm.name, RustSpan::call_site());
        let path = match run.callee.home {
            Home::Library => quote!(::roundelay::library::#name),
            Home::Here | Home::Used => quote!(#name),
        };
        let span = number(at);
        let (mut needed, mut optional) = (TokenStream::new(), TokenStream::new());
        for (index, value) in &run.args {
            let param = &algorithm.params[*index];
            let setter = ident(&algorithm.vars[param.var.0 as usize].name, RustSpan::call_site());
            let value = self.settled(value, at);
            let value = quote!({ let value = #value; #s.given(#span, value)? });
            if param.default.is_none() && !param.ty.has_natural() {
                needed.extend(quote!(#value,));
            } else {
                optional.extend(quote!(.#setter(#value)));
            }
        }
        let called = self.free("called");
        let (input, output) = (self.value(&run.input), self.value(&run.output));
        quote! {
            let #called = #path::new(#needed) #optional;
            #s.run(#span, &#called, #input, #output)?;
        }
    }
}

/// The callees of `algorithm` that no other expansion makes: those of sources that it uses, and for an algorithm
/// that is such a callee itself, those of its own source.
pub(super) fn items(algorithm: &Algorithm, origin: &Origin<'_>) -> Option<TokenStream> {
    let mut callees = algorithm.callees();
    let along = |home| home == Home::Used || (home == Home::Here && origin.along);
    callees.retain(|callee| along(callee.home));
    if callees.is_empty() {
        return None;
    }
    Some(callees.into_iter().map(|callee| along_with(callee, origin)).collect())
}

fn along_with(callee: &Callee, origin: &Origin<'_>) -> TokenStream {
    let file = &callee.file;
    let place = |span| {
        let at = callee.algorithm.spans.iter().position(|known| *known == span);
        at.map_or_else(Default::default, |at| callee.locations[at])
    };
    let start = (origin.span)(crate::source::Span::default());
    let origin =
        Origin { file: quote!(#file), locate: &place, span: &|_| start, exact: false, along: true };
    item(&callee.algorithm, &origin)
}
