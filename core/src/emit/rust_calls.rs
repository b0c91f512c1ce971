//! `within` and calls in expanded Rust, and which algorithms are called.

use proc_macro2::{Span as RustSpan, TokenStream};
use quote::quote;

use super::rust_body::{Body, number};
use super::rust_origin::ident;
use crate::check::hir::{Algorithm, AlgorithmCall, Expr, Home, Stmt};
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

    pub(super) fn run(&self, run: &AlgorithmCall, at: SpanId) -> TokenStream {
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

/// What these algorithms call and the library does not hold, each once.
pub(super) fn sources<'a>(callers: impl IntoIterator<Item = &'a Algorithm>) -> Vec<&'a Algorithm> {
    let mut found: Vec<&Algorithm> = Vec::new();
    let mut open: Vec<_> = callers.into_iter().collect();
    while let Some(caller) = open.pop() {
        for callee in caller.callees().into_iter().filter(|c| c.home != Home::Library) {
            let callee = &*callee.algorithm;
            if found.iter().all(|known| known.name != callee.name) {
                found.push(callee);
                open.push(callee);
            }
        }
    }
    found
}
