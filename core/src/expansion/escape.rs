//! Escapes in expanded Rust: one method that computes all escapes from the values of the names in their texts.

use proc_macro2::{Group, Ident, Literal, Span as RustSpan, TokenStream, TokenTree};
use quote::{format_ident, quote, quote_spanned};

use super::origin::{Origin, ident};
use crate::check::{Escape, EscapeName};
use crate::program::Program;
use crate::source::Home;

/// Returns the methods for the escapes of an algorithm and of those that it calls.
pub(super) fn methods(algorithm: &Program, origin: &Origin<'_>) -> Option<TokenStream> {
    let holders = holders(algorithm);
    if holders.is_empty() {
        return None;
    }
    let holders = holders.iter().map(|holder| {
        let (text, name) = (&holder.name, ident(&holder.name, RustSpan::call_site()));
        quote!(Escapes { algorithm: #text, value: <#name as ::roundelay::Algorithm>::escape })
    });
    let own = own(algorithm, origin);
    Some(quote! {
        fn escapes(&self) -> &'static [::roundelay::expand::Escapes] {
            use ::roundelay::expand::Escapes;
            const { &[#(#holders),*] }
        }
        #own
    })
}

/// Returns the algorithms with escapes of their own that a walk through this algorithm meets. All are declared in its
/// source, as a file can hold no escape.
fn holders(algorithm: &Program) -> Vec<&Program> {
    let mut found: Vec<&Program> = Vec::new();
    let mut open = vec![algorithm];
    while let Some(next) = open.pop() {
        if found.iter().all(|known| known.name != next.name) {
            found.push(next);
            let callees = next.callees().into_iter().map(|callee| &**callee);
            open.extend(callees.filter(|callee| callee.declaration.home == Home::Here));
        }
    }
    found.retain(|algorithm| !algorithm.declaration.escapes.is_empty());
    found
}

/// Returns the method that computes the escapes of this algorithm alone.
fn own(algorithm: &Program, origin: &Origin<'_>) -> Option<TokenStream> {
    let escapes = &algorithm.declaration.escapes;
    if escapes.is_empty() {
        return None;
    }
    // These names are invisible to the author's Rust.
    let [number, scope] = ["number", "scope"].map(|name| Ident::new(name, RustSpan::mixed_site()));
    let arms = escapes.iter().enumerate().map(|(number, Escape { span, text, scope: names })| {
        let number = Literal::usize_unsuffixed(number);
        let names = names.iter().enumerate().map(|(at, EscapeName { name, declared, method })| {
            let name = ident(name, declared.map_or_else(RustSpan::call_site, origin.span));
            let index = Literal::usize_unsuffixed(at);
            let kind = format_ident!("{method}");
            // A word of the text may have another meaning there.
            quote!(#[allow(unused_variables)] let #name = #scope.#kind(#index);)
        });
        // The text came from the compiler's own tokens, so it parses as tokens again.
        let tokens: TokenStream = text.parse().unwrap_or_default();
        let place = RustSpan::call_site().located_at((origin.span)(*span));
        let int = respanned(quote!(::roundelay::expand::Int), place);
        let tokens = respanned(tokens, place);
        let value = quote_spanned!(place=> #int::from({ #tokens }));
        quote!(#number => { #(#names)* #value })
    });
    Some(quote! {
        #[allow(unused_parens, unused_braces, non_snake_case, clippy::all, clippy::pedantic)]
        fn escape(
            #number: u32,
            #scope: &::roundelay::expand::Scope<'_>,
        ) -> ::roundelay::expand::Int {
            match #number {
                #(#arms)*
                _ => ::core::unreachable!("there is no such escape"),
            }
        }
    })
}

/// Returns the code with all its tokens at `span`, so that errors of rustc point there.
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
