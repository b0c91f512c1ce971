//! Executors as Rust: a type without fields that knows its source, and compiles it at its first use.

use proc_macro2::{Ident, Span as RustSpan, TokenStream};
use quote::quote;

use super::callees::sources;
use super::origin::{Origin, ident, raw};
use crate::check::Executor;
use crate::program::Program;
use crate::source::Span;
use crate::syntax::ast;

/// Returns the items of one executor.
pub(super) fn item(executor: &Executor<Program>, origin: &Origin<'_>) -> TokenStream {
    let name = ident(&executor.name, (origin.span)(executor.name_span));
    let (text, called) = (&executor.name, sources(executor.classes.iter().map(|class| &class.run)));
    let texts: Vec<_> = called.iter().map(|callee| callee.declaration.source.as_str()).collect();
    let source = raw(&[&texts[..], &[executor.source.as_str()]].concat().join("\n"));
    let body = quote! {
        static COMPILED: ::std::sync::OnceLock<::roundelay::executor::CompiledExecutor> =
            ::std::sync::OnceLock::new();
        COMPILED.get_or_init(|| ::roundelay::expand::executor(#text, #source))
    };
    structure(&name, &executor.docs, executor.public, &body)
}

/// Returns the items of an executor whose source is wrong, so that code that uses its name compiles.
pub(super) fn stub(executor: &ast::Executor, span: &dyn Fn(Span) -> RustSpan) -> TokenStream {
    let name = ident(&executor.name.text, span(executor.name.span));
    let body = quote!(::core::unreachable!("its source is wrong"));
    structure(&name, &executor.docs, executor.public, &body)
}

fn structure(name: &Ident, docs: &[String], public: bool, body: &TokenStream) -> TokenStream {
    let visibility = public.then(|| quote!(pub));
    let docs = docs.iter().map(|line| quote!(#[doc = #line]));
    quote! {
        #(#docs)*
        #[derive(Clone, Copy, Debug, Default)]
        #visibility struct #name;

        impl ::roundelay::executor::Compiled for #name {
            fn compiled(&self) -> &'static ::roundelay::executor::CompiledExecutor {
                #body
            }
        }
    }
}
