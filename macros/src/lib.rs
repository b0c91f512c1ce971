//! The procedural macros of Roundelay: a shell. What they do is in `roundelay-core`.

use std::path::PathBuf;

use proc_macro::TokenStream;
use proc_macro2::{Span, TokenStream as TokenStream2};
use quote::quote;
use roundelay_core::check::Door;
use roundelay_core::check::hir::Program;
use roundelay_core::diagnostics::Diagnostic;
use roundelay_core::emit::rust::{self, Origin};
use roundelay_core::source::Source;
use roundelay_core::{compile, prove_at_expansion, syntax};

/// Algorithms in the language of step loops; each becomes a struct that implements `Algorithm`.
///
/// ```text
/// roundelay::collective! {
///     /// Root's input, pulled by everybody at once.
///     pub algorithm Star(root: Rank = 0) -> Broadcast { … }
/// }
/// ```
#[proc_macro]
pub fn collective(input: TokenStream) -> TokenStream {
    let (source, spans) = Source::from_macro("the macro's body", input.into());
    let start = |span: roundelay_core::source::Span| at(&spans, span.lo);
    let origin = Origin {
        file: quote!(::core::file!()),
        locate: &|span| source.location(span),
        span: &start,
        exact: true,
    };
    match compile(&source, Door::Macro).and_then(|program| proved(program, &source)) {
        Ok(program) => rust::expand(&program, &origin).into(),
        Err(errors) => {
            let stubs = rust::stubs(&syntax::parse(&source).0, &start);
            let errors = errors.iter().map(|error| {
                let (first, last) = (start(error.primary), end(&spans, error.primary.hi));
                spanned(first, last, &error.message(&source))
            });
            quote!(#stubs #(#errors)*).into()
        }
    }
}

/// The algorithms of a `.coll` file; the path is relative to the file that the macro stands in.
#[proc_macro]
pub fn include_collective(input: TokenStream) -> TokenStream {
    let path = match syn::parse::<syn::LitStr>(input) {
        Ok(path) => path,
        Err(error) => return error.to_compile_error().into(),
    };
    let (name, place) = (path.value(), path.span());
    let file = find(place, &name);
    let bytes = match std::fs::read(&file) {
        Ok(bytes) => bytes,
        Err(error) => {
            let message = format!("E0001: cannot read `{}`: {error}", file.display());
            return syn::Error::new(place, message).to_compile_error().into();
        }
    };
    let source = Source::from_bytes(&name, &bytes);
    let origin = Origin {
        file: quote!(#name),
        locate: &|span| source.location(span),
        span: &|_| place,
        exact: false,
    };
    let rebuild = quote!(
        const _: &[u8] = ::core::include_bytes!(#path);
    );
    match compile(&source, Door::File).and_then(|program| proved(program, &source)) {
        Ok(program) => {
            let items = rust::expand(&program, &origin);
            quote!(#rebuild #items).into()
        }
        Err(errors) => {
            let stubs = rust::stubs(&syntax::parse(&source).0, &|_| place);
            let render = |error: &Diagnostic| spanned(place, place, &error.report(&source));
            let errors = errors.iter().map(render);
            quote!(#rebuild #stubs #(#errors)*).into()
        }
    }
}

/// `name` beside the file that `place` stands in. An editor that expands macros by itself may not say which
/// file that is: then below the package's `src`, or in the package.
fn find(place: Span, name: &str) -> PathBuf {
    if let Some(folder) = place.local_file().and_then(|file| Some(file.parent()?.to_owned())) {
        return folder.join(name);
    }
    let package = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let below = package.join("src").join(name);
    if below.exists() { below } else { package.join(name) }
}

/// The program, if nothing is wrong with it at a few small rank counts.
fn proved(program: Program, source: &Source) -> Result<Program, Vec<Diagnostic>> {
    let errors = prove_at_expansion(&program, source);
    if errors.is_empty() { Ok(program) } else { Err(errors) }
}

/// One error under the tokens from `first` to `last`.
fn spanned(first: Span, last: Span, message: &str) -> TokenStream2 {
    let mut range = TokenStream2::new();
    for span in [first, last] {
        range.extend([proc_macro2::TokenTree::Ident(proc_macro2::Ident::new("_", span))]);
    }
    syn::Error::new_spanned(range, message).to_compile_error()
}

fn at(spans: &[Span], index: u32) -> Span {
    spans.get(index as usize).or(spans.last()).copied().unwrap_or_else(Span::call_site)
}

fn end(spans: &[Span], hi: u32) -> Span {
    at(spans, hi.saturating_sub(1))
}
