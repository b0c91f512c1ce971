//! The Rust of an algorithm: a struct with the parameters, and `impl Algorithm`, which knows its source and is laid
//! out by a walk through that. The macro expands to this, and `emit struct` prints it.

use proc_macro2::{Ident, Literal, Span as RustSpan, TokenStream};
use quote::{format_ident, quote};

use super::callees::{callees, places};
pub use super::origin::Origin;
use super::origin::{ident, raw};
use super::{escape, executor};
use crate::expansion;
use crate::program::{CompiledSource, Program};
use crate::source::Span;
use crate::syntax::ast;
use crate::values::params::ParamTy;

/// Returns the items that `compiled` expands to.
pub fn expand(compiled: &CompiledSource, origin: &Origin<'_>) -> TokenStream {
    each(compiled, origin).collect()
}

/// Returns the items of each algorithm and executor, in order, so that a large source can be written one item at a
/// time.
pub fn each<'c>(
    compiled: &'c CompiledSource,
    origin: &'c Origin<'_>,
) -> impl Iterator<Item = TokenStream> + 'c {
    let algorithms = compiled.algorithms.iter().map(|algorithm| item(algorithm, origin));
    algorithms.chain(compiled.executors.iter().map(|e| executor::item(e, origin)))
}

/// Returns items with the names and signatures of a source that does not check, so that the rest of the author's
/// crate is not flooded with errors about missing names.
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
                    ("Trees", _) => ParamTy::Trees,
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
                fn configured(&self) -> ::roundelay::expand::Configured {
                    ::core::unreachable!("its source is wrong")
                }
            }
        }
    };
    let executors = file.executors.iter().map(|e| executor::stub(e, span));
    file.algorithms.iter().map(stub).chain(executors).collect()
}

fn item(algorithm: &Program, origin: &Origin<'_>) -> TokenStream {
    let name = ident(&algorithm.name, (origin.span)(algorithm.header()));
    let fields: Vec<Field> = algorithm
        .params
        .iter()
        .map(|param| {
            let var = algorithm.var(param.var);
            Field {
                name: ident(&var.name, (origin.span)(var.span)),
                ty: param.ty,
                required: param.default.is_none() && !param.ty.has_natural(),
            }
        })
        .collect();
    let declaration = &algorithm.declaration;
    let structure = structure(&name, &declaration.docs, declaration.public, &fields);
    let text = &algorithm.name;
    let collective = format_ident!("{}", algorithm.collective.name());
    let file = &origin.file;
    let source = raw(&declaration.source);
    let locations = places(algorithm.spans.iter().map(|span| (origin.locate)(*span)));
    let out_of_place = algorithm.out_of_place.then(|| {
        quote!(
            fn out_of_place(&self) -> bool {
                true
            }
        )
    });
    let callees = callees(algorithm, origin);
    let given = given(&fields);
    let escapes = escape::methods(algorithm, origin);
    let test = test(algorithm, &name, &fields);
    quote! {
        #structure

        impl ::roundelay::Algorithm for #name {
            fn name(&self) -> &str { #text }
            fn collective(&self) -> ::roundelay::Collective { ::roundelay::Collective::#collective }
            #out_of_place
            fn file(&self) -> &str { #file }
            fn source(&self) -> &str { #source }
            fn locations(&self) -> &[::roundelay::expand::Location] {
                use ::roundelay::expand::at;
                const { #locations }
            }
            #callees
            #given
            #escapes
            fn configured(&self) -> ::roundelay::expand::Configured {
                use ::roundelay::{expand::Read, library::SOURCES};
                static READ: Read = Read::new(SOURCES);
                READ.configured(self)
            }
        }

        #test
    }
}

/// Returns the method with the values of the parameters that have some.
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

/// Returns the test that proves the algorithm for more rank counts than the expansion does.
fn test(algorithm: &Program, name: &Ident, fields: &[Field]) -> Option<TokenStream> {
    let (counts, named) = expansion::test_counts(algorithm)?;
    // Only a root without a default is required here, and the test proves every root.
    let required = fields.iter().filter(|field| field.required).map(|_| quote!(0));
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
    // rustc warns that a test in a function's body is not run.
    Some(quote! {
        #[cfg(test)]
        #[test]
        fn #test() {
            ::roundelay::expand::is_proved(&#name::new(#(#required),*), #counts, #named);
        }
    })
}

/// Returns `ring_all_reduce` for `RingAllReduce`.
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
        ParamTy::Trees => quote!(::roundelay::Trees),
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
