//! Rust orchestration: a struct with the parameters, and `impl Algorithm` whose body is the author's loops
//! calling the schedule builder. The macro expands to this, and `emit rust` prints it.

use proc_macro2::{Ident, Literal, Span as RustSpan, TokenStream};
use quote::{format_ident, quote};

use super::rust_body::Body;
use super::{rust_calls, rust_executor};
use crate::check::hir::{Algorithm, Home, ParamTy, Program};
use crate::expansion;
use crate::source::Location;
use crate::source::Span;
use crate::syntax::ast;

/// Where the expansion comes from: it decides how the file is named and where names point.
pub struct Origin<'s> {
    /// An expression for the file's name.
    pub file: TokenStream,
    /// The place of a token span.
    pub locate: &'s dyn Fn(Span) -> Location,
    /// The Rust span of a token span, so that names lead back to the author's.
    pub span: &'s dyn Fn(Span) -> RustSpan,
    /// Whether those spans are the names themselves; if not, rustc's lints would point at nothing useful.
    pub exact: bool,
    /// Whether the algorithm only comes along with one that calls it: then nobody else makes or tests it.
    pub along: bool,
}

/// The items that `program` expands to.
pub fn expand(program: &Program, origin: &Origin<'_>) -> TokenStream {
    let algorithms = program.algorithms.iter().map(|algorithm| item(algorithm, origin));
    let executors = program.executors.iter().map(|e| rust_executor::item(e, origin));
    algorithms.chain(executors).collect()
}

/// Items of the same names and signatures for a source that does not check, so that the rest of the
/// author's crate is not drowned in errors about missing names.
pub fn stubs(file: &ast::File, span: &dyn Fn(Span) -> RustSpan) -> TokenStream {
    let stub = |algorithm: &ast::Algorithm| {
        let name = ident(&algorithm.name.text, span(algorithm.name.span));
        let fields: Vec<Field> = algorithm
            .params
            .iter()
            .map(|p| Field {
                name: ident(&p.name.text, span(p.name.span)),
                ty: match (p.ty.text.as_str(), p.ty.list) {
                    (_, true) => ParamTy::Ranks,
                    ("Ring", _) => ParamTy::Ring,
                    ("Rings", _) => ParamTy::Rings,
                    ("Tree", _) => ParamTy::Tree,
                    ("Groups", _) => ParamTy::Groups,
                    ("Topology", _) => ParamTy::Topology,
                    ("bool", _) => ParamTy::Bool,
                    _ => ParamTy::Int,
                },
                required: p.default.is_none() && !matches!(&*p.ty.text, "Ring" | "Topology"),
            })
            .collect();
        let item = structure(&name, &algorithm.docs, algorithm.public, &fields);
        quote! {
            #item
            impl ::roundelay::Algorithm for #name {
                fn name(&self) -> &str { "" }
                fn collective(&self) -> ::roundelay::Collective { ::roundelay::Collective::AllReduce }
                fn file(&self) -> &str { "" }
                fn source(&self) -> &str { "" }
                fn locations(&self) -> &[::roundelay::expand::Location] { &[] }
                fn build(&self, _: &mut ::roundelay::expand::Builder<'_>)
                    -> ::core::result::Result<(), ::roundelay::expand::Stop>
                {
                    ::core::result::Result::Err(::roundelay::expand::Stop)
                }
            }
        }
    };
    let executors = file.executors.iter().map(|e| rust_executor::stub(e, span));
    file.algorithms.iter().map(stub).chain(executors).collect()
}

pub(super) fn item(algorithm: &Algorithm, origin: &Origin<'_>) -> TokenStream {
    let name = ident(&algorithm.name, (origin.span)(algorithm.name_span));
    let fields: Vec<Field> = algorithm
        .params
        .iter()
        .map(|param| {
            let var = &algorithm.vars[param.var.0 as usize];
            Field {
                name: ident(&var.name, (origin.span)(var.span)),
                ty: param.ty,
                required: param.default.is_none() && !param.ty.has_natural(),
            }
        })
        .collect();
    let structure = structure(&name, &algorithm.docs, algorithm.public, &fields);
    let text = &algorithm.name;
    let collective = format_ident!("{}", algorithm.collective.name());
    let file = &origin.file;
    let source = raw(&algorithm.source);
    let locations = algorithm.spans.iter().map(|span| {
        let Location { line, column, end_line, end_column } = (origin.locate)(*span);
        let place = [line, column, end_line, end_column].map(Literal::u32_unsuffixed);
        quote!(at(#(#place),*))
    });
    let out_of_place = algorithm.out_of_place.then(|| {
        quote!(
            fn out_of_place(&self) -> bool {
                true
            }
        )
    });
    let callees = callees(algorithm);
    let given = given(&fields);
    // An escape sees the author's scope and nothing else.
    let names = (!algorithm.escapes).then(|| {
        quote! {
            #[allow(unused_imports)]
            use ::roundelay::expand::*;
        }
    });
    // Our own warnings say it, but for what an escape may use.
    let unused = (!origin.exact || !algorithm.holds_an_escape()).then(|| quote!(unused_variables,));
    let (builder, body) = Body::new(algorithm, origin).emit();
    let test = if origin.along { None } else { test(algorithm, &name) };
    let implementation = quote! {
        impl ::roundelay::Algorithm for #name {
            fn name(&self) -> &str { #text }
            fn collective(&self) -> ::roundelay::Collective { ::roundelay::Collective::#collective }
            #out_of_place
            fn file(&self) -> &str { #file }
            fn source(&self) -> &str { #source }
            fn locations(&self) -> &[::roundelay::expand::Location] {
                use ::roundelay::expand::at;
                const { &[#(#locations),*] }
            }
            #callees
            #given
            #[allow(unused_parens, unused_braces, #unused non_snake_case, clippy::all, clippy::pedantic)]
            fn build(
                &self,
                #builder: &mut ::roundelay::expand::Builder<'_>,
            ) -> ::core::result::Result<(), ::roundelay::expand::Stop> {
                #names
                #body
                Ok(())
            }
        }
    };
    // What comes along is nobody else's business.
    let implementation = match rust_calls::items(algorithm, origin) {
        Some(items) => quote!(const _: () = { #items #implementation };),
        None => implementation,
    };
    quote! {
        #structure

        #implementation

        #test
    }
}

/// The sources of what it calls, for engines that read them again.
fn callees(algorithm: &Algorithm) -> Option<TokenStream> {
    let found = sources([algorithm]);
    let texts = found.iter().map(|callee| raw(&callee.source));
    (!found.is_empty()).then(|| quote!(fn callees(&self) -> &[&str] { &[#(#texts),*] }))
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

/// The values of the parameters that have some.
fn given(fields: &[Field]) -> Option<TokenStream> {
    let values = fields.iter().map(|Field { name, required, .. }| {
        let text = name.to_string();
        let text = text.trim_start_matches("r#");
        if *required {
            quote!(::core::option::Option::Some((#text, self.#name.clone().into())))
        } else {
            quote!(self.#name.clone().map(|value| (#text, value.into())))
        }
    });
    (!fields.is_empty()).then(|| {
        quote! {
            fn given(&self) -> ::std::vec::Vec<(&'static str, ::roundelay::expand::ParamValue)> {
                [#(#values),*].into_iter().flatten().collect()
            }
        }
    })
}

/// The test that proves the algorithm for more rank counts than the expansion does.
fn test(algorithm: &Algorithm, name: &Ident) -> Option<TokenStream> {
    let (counts, named) = expansion::tested(algorithm)?;
    let test = format_ident!("{}_is_proved", snake(&algorithm.name));
    let run = counts.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let counts = match (&counts[..], run) {
        ([first, .., last], true) => {
            let (first, last) = (Literal::u32_unsuffixed(*first), Literal::u32_unsuffixed(*last));
            quote!(#first..=#last)
        }
        (all, _) => {
            let all = all.iter().map(|n| Literal::u32_unsuffixed(*n));
            quote!([#(#all),*])
        }
    };
    // In a function's body rustc warns that it is not run.
    Some(quote! {
        #[cfg(test)]
        #[test]
        fn #test() {
            ::roundelay::expand::is_proved(&#name::new(), #counts, #named);
        }
    })
}

/// `ring_all_reduce` for `RingAllReduce`.
fn snake(name: &str) -> String {
    let mut text = String::new();
    let mut after_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && after_lower {
            text.push('_');
        }
        after_lower = !c.is_uppercase();
        text.extend(c.to_lowercase());
    }
    text
}

/// The text as a raw string, so that it reads in the expansion as it was written.
pub(super) fn raw(text: &str) -> Literal {
    let fence = "#".repeat(
        1 + text
            .split('"')
            .map(|part| part.bytes().take_while(|b| *b == b'#').count())
            .max()
            .unwrap_or(0),
    );
    // A raw string cannot hold a bare carriage return; an ordinary one holds everything.
    format!("r{fence}\"{text}\"{fence}").parse().unwrap_or_else(|_| Literal::string(text))
}

/// A parameter as a field.
struct Field {
    name: Ident,
    ty: ParamTy,
    required: bool,
}

fn structure(name: &Ident, docs: &[String], public: bool, fields: &[Field]) -> TokenStream {
    let visibility = public.then(|| quote!(pub));
    let docs = docs.iter().map(|line| quote!(#[doc = #line]));
    let plain = |ty| match ty {
        ParamTy::Int | ParamTy::Rank => quote!(i64),
        ParamTy::Bool => quote!(bool),
        ParamTy::Ring => quote!(::roundelay::Ring),
        ParamTy::Rings => quote!(::roundelay::Rings),
        ParamTy::Tree => quote!(::roundelay::Tree),
        ParamTy::Groups => quote!(::roundelay::Groups),
        ParamTy::Topology => quote!(::std::sync::Arc<::roundelay::Topology>),
        ParamTy::Ranks => quote!(::std::vec::Vec<i64>),
    };
    let declared = fields.iter().map(|Field { name, ty, required }| {
        let ty = plain(*ty);
        if *required { quote!(#name: #ty) } else { quote!(#name: ::core::option::Option<#ty>) }
    });
    let (needed, optional): (Vec<&Field>, Vec<&Field>) = fields.iter().partition(|f| f.required);
    let arguments = needed.iter().map(|Field { name, ty, .. }| {
        let ty = plain(*ty);
        quote!(#name: impl ::core::convert::Into<#ty>)
    });
    let given = needed.iter().map(|Field { name, .. }| quote!(#name: #name.into()));
    let absent = optional.iter().map(|f| &f.name);
    let setters = optional.iter().map(|Field { name, ty, .. }| {
        let doc = format!(" Sets the parameter `{name}: {}`.", ty.name());
        let ty = plain(*ty);
        quote! {
            #[doc = #doc]
            #[must_use]
            pub fn #name(mut self, #name: impl ::core::convert::Into<#ty>) -> Self {
                self.#name = ::core::option::Option::Some(#name.into());
                self
            }
        }
    });
    let default = needed.is_empty().then(|| quote!(, Default));
    let new = format!(" `{name}`, with every parameter that has a default at its default.");
    let value = if needed.is_empty() {
        quote!(Self::default())
    } else {
        quote!(Self { #(#given,)* #(#absent: ::core::option::Option::None,)* })
    };
    quote! {
        #(#docs)*
        #[derive(Clone, Debug #default)]
        #visibility struct #name { #(#declared),* }

        #[allow(dead_code)]
        impl #name {
            #[doc = #new]
            #[must_use]
            pub fn new(#(#arguments),*) -> Self {
                #value
            }
            #(#setters)*
        }
    }
}

/// The author's name as a Rust identifier.
pub(super) fn ident(name: &str, span: RustSpan) -> Ident {
    let keyword = matches!(
        name,
        "abstract"
            | "as"
            | "async"
            | "await"
            | "become"
            | "box"
            | "break"
            | "const"
            | "continue"
            | "do"
            | "dyn"
            | "enum"
            | "extern"
            | "final"
            | "fn"
            | "gen"
            | "impl"
            | "loop"
            | "macro"
            | "match"
            | "mod"
            | "move"
            | "mut"
            | "override"
            | "priv"
            | "ref"
            | "return"
            | "static"
            | "struct"
            | "trait"
            | "try"
            | "type"
            | "typeof"
            | "unsafe"
            | "unsized"
            | "use"
            | "virtual"
            | "where"
            | "while"
            | "yield"
    );
    if keyword { Ident::new_raw(name, span) } else { Ident::new(name, span) }
}
