//! `emit coll`, `emit struct` and `emit ast`: a source as text, without a rank count.

use std::path::Path;

use roundelay::{Algorithm as _, select};
use roundelay_core::expansion::rust::{Origin, each};
use roundelay_core::messages::TwoSided;
use roundelay_core::source::Span;
use roundelay_core::syntax;
use roundelay_core::syntax::Source;
use roundelay_core::syntax::ast::File;
use roundelay_core::syntax::token::Tok;
use roundelay_export::unroll::{Export, unroll};

use super::{CollFlags, FileFlags, schedule, wrong};
use crate::msccl;
use crate::program::{self, compile, read};
use crate::report::{Failure, print_all};
use crate::texts::{Texts, stem};

pub(super) fn coll(flags: &CollFlags, to: &Texts) -> Result<(), Failure> {
    let CollFlags { source: path, algorithm, lints } = flags;
    if msccl::is_program(path) {
        let (source, proved) = schedule::program(path, lints)?;
        let text = TwoSided::for_author(&proved).and_then(|form| {
            let file = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
            unroll(&Export { form: &form, file: &file })
        });
        return to.put(stem(path), &schedule::whole(text, &source)?);
    }
    let source = read(path)?;
    let file = tree(&source)?;
    let known = |name: &&str| file.algorithms.iter().any(|a| a.name.text == *name);
    let wanted = algorithm.as_deref().or_else(|| Some(&**path).filter(known));
    match wanted {
        Some(wanted) => to.put(wanted, &alone(&file, &source, wanted)?),
        None => to.put(stem(path), &syntax::printer::print_with_trivia(&file, &source)),
    }
}

#[cfg(not(target_family = "wasm"))]
pub(super) fn of_macro(flags: &FileFlags, to: &Texts) -> Result<(), Failure> {
    let source = read(&flags.source)?;
    let program = match flags.lints.apply(compile(&source))? {
        Ok((program, warnings)) => {
            print_all(&warnings, &source);
            program
        }
        Err(errors) => return Err(wrong(&errors, &source)),
    };
    let name = source.name();
    let origin = Origin {
        file: quote::quote!(#name),
        locate: &|span| source.location(span),
        span: &|_| proc_macro2::Span::call_site(),
    };
    let items = each(&program, &origin).map(|items| {
        let file = syn::parse2(items).expect("the expansion is Rust");
        prettyplease::unparse(&file)
    });
    to.put(stem(&flags.source), &items.collect::<String>())
}

pub(super) fn ast(source: &str, to: &Texts) -> Result<(), Failure> {
    to.put(stem(source), &format!("{:#?}", tree(&read(source)?)?))
}

/// Returns the syntax tree of a source.
fn tree(source: &Source) -> Result<File, Failure> {
    let (file, errors) = syntax::parse(source);
    if errors.is_empty() { Ok(file) } else { Err(wrong(&errors, source)) }
}

/// Returns an algorithm as a file of its own, with the algorithms that it calls.
fn alone(file: &File, source: &Source, wanted: &str) -> Result<String, Failure> {
    let names: Vec<_> = file.algorithms.iter().map(|a| a.name.text.as_str()).collect();
    let at = names.iter().position(|name| *name == wanted);
    let at = at.ok_or_else(|| program::unknown(source, wanted, &names))?;
    // Every source knows the library's algorithms; a file with this algorithm alone would lack the other ones of its
    // file.
    let known = |name: &str| select::library().iter().any(|a| a.name() == name);
    let mut taken = vec![false; names.len()];
    let mut open = vec![at];
    while let Some(at) = open.pop() {
        taken[at] = true;
        let Span { lo, hi } = file.algorithms[at].span;
        for token in &source.tokens()[lo as usize..hi as usize] {
            let called =
                names.iter().position(|name| matches!(token, Tok::Ident(word) if word == name));
            open.extend(called.filter(|c| !taken[*c] && !known(names[*c])));
        }
    }
    let text = source.text().unwrap_or_default();
    let uses = file.uses.iter().map(|used| used.span);
    let algorithms = file.algorithms.iter().zip(&taken).filter(|(_, taken)| **taken);
    let parts = uses.chain(algorithms.map(|(a, _)| a.span)).map(|span| &text[source.range(span)]);
    let own = Source::from_text(source.name(), &parts.collect::<Vec<_>>().join("\n"));
    let (file, errors) = syntax::parse(&own);
    // Whole items of a source without errors.
    debug_assert_eq!(errors, []);
    Ok(syntax::printer::print_with_trivia(&file, &own))
}
