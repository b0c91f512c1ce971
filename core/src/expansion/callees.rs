//! The algorithms that an expanded algorithm calls: their sources, which are read again with its own.

use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::origin::{Origin, raw};
use crate::program::Program;
use crate::source::{Home, Location};

/// The called algorithms that the library does not hold, each after those that it calls itself.
#[derive(Default)]
struct Called<'a> {
    list: Vec<Entry<'a>>,
}

struct Entry<'a> {
    callee: &'a Program,
    calls: Vec<usize>,
    /// Whether it is declared in the source that is expanded.
    here: bool,
}

impl<'a> Called<'a> {
    /// Adds the algorithms that `caller` calls, and returns their positions in the list. `here` tells whether the
    /// caller is declared in the source that is expanded.
    fn by(&mut self, caller: &'a Program, here: bool) -> Vec<usize> {
        outside_the_library(caller)
            .map(|callee| {
                let same = |entry: &Entry<'_>| std::ptr::eq(entry.callee, callee);
                self.list.iter().position(same).unwrap_or_else(|| {
                    let here = here && callee.declaration.home == Home::Here;
                    let calls = self.by(callee, here);
                    self.list.push(Entry { callee, calls, here });
                    self.list.len() - 1
                })
            })
            .collect()
    }
}

/// Returns the algorithms that a program calls and the library does not hold.
fn outside_the_library(caller: &Program) -> impl Iterator<Item = &Program> {
    let callees = caller.callees().into_iter().map(|callee| &**callee);
    callees.filter(|callee| callee.declaration.home != Home::Library)
}

/// Returns the method with the sources of the called algorithms.
pub(super) fn callees(algorithm: &Program, origin: &Origin<'_>) -> Option<TokenStream> {
    let mut called = Called::default();
    let direct = called.by(algorithm, true);
    let entries = called.list.iter().enumerate().map(|(at, entry)| {
        let Program { file, spans, locations, declaration, .. } = entry.callee;
        let source = raw(&declaration.source);
        let (file, places) = if entry.here {
            (origin.file.clone(), places(spans.iter().map(|at| (origin.locate)(*at))))
        } else {
            (quote!(#file), places(locations.iter().copied()))
        };
        let calls = entry.calls.iter().map(|at| Literal::usize_unsuffixed(*at));
        let direct = direct.contains(&at);
        quote! {
            CalledSource {
                source: #source,
                file: #file,
                locations: #places,
                calls: &[#(#calls),*],
                direct: #direct,
            }
        }
    });
    let entries: Vec<_> = entries.collect();
    (!entries.is_empty()).then(|| {
        quote! {
            fn callees(&self) -> &[::roundelay::expand::CalledSource<'_>] {
                use ::roundelay::expand::{CalledSource, at};
                const { &[#(#entries),*] }
            }
        }
    })
}

/// Returns the places of statements as a slice.
pub(super) fn places(locations: impl Iterator<Item = Location>) -> TokenStream {
    let places = locations.map(|Location { line, column, end_line, end_column }| {
        let place = [line, column, end_line, end_column].map(Literal::u32_unsuffixed);
        quote!(at(#(#place),*))
    });
    quote!(&[#(#places),*])
}

/// Returns the algorithms that `callers` call and the library does not hold, each once.
pub(super) fn sources<'a>(callers: impl IntoIterator<Item = &'a Program>) -> Vec<&'a Program> {
    let mut found: Vec<&Program> = Vec::new();
    let mut open: Vec<_> = callers.into_iter().collect();
    while let Some(caller) = open.pop() {
        for callee in outside_the_library(caller) {
            if found.iter().all(|known| known.name != callee.name) {
                found.push(callee);
                open.push(callee);
            }
        }
    }
    found
}
