//! `roundelay emit`: what a source becomes, at each stage that can be printed.

use roundelay::Algorithm as _;
use roundelay_core::diagnostics::Finding;
use roundelay_core::emit::rust::{Origin, expand};
use roundelay_core::emit::steps::steps;
use roundelay_core::schedule::{Schedule, text};
use roundelay_core::syntax;

use crate::flags::{Emit, EmitFlags, Format};
use crate::program::{Loaded, compile, load, one, read};
use crate::report::{Failure, print, refuse};

pub(crate) fn main(flags: &EmitFlags) -> Result<bool, Failure> {
    let source = read(&flags.source.source)?;
    let stop = |errors: &[_]| Err(refuse(Format::Human, errors, &source, |_| ()));
    match flags.what {
        Emit::Ast => {
            let (file, errors) = syntax::parse(&source);
            if !errors.is_empty() {
                return stop(&errors);
            }
            print(&format!("{file:#?}"));
        }
        Emit::Rust => {
            let program = match compile(&source) {
                Ok(program) => program,
                Err(errors) => return stop(&errors),
            };
            let name = source.name();
            let origin = Origin {
                file: quote::quote!(#name),
                locate: &|span| source.location(span),
                span: &|_| proc_macro2::Span::call_site(),
                exact: false,
                along: false,
            };
            let file = syn::parse2(expand(&program, &origin)).expect("the expansion is Rust");
            print(prettyplease::unparse(&file).trim_end());
        }
        Emit::Schedule | Emit::Steps => {
            let algorithms = match load(&source, &flags.source)? {
                Loaded::Ready(algorithms) => algorithms,
                Loaded::Wrong(errors) => return stop(&errors),
            };
            let algorithm = one(algorithms, &source)?;
            for &nranks in &flags.nranks.counts {
                let printed = algorithm.schedule(nranks).and_then(|schedule| match flags.what {
                    Emit::Steps => table(&schedule, &flags.source.settings),
                    _ => Ok(text::print(&schedule)),
                });
                match printed {
                    Ok(text) => print(text.trim_end()),
                    Err(findings) => {
                        let errors: Vec<_> =
                            findings.into_iter().map(|f| algorithm.diagnostic(f, nranks)).collect();
                        return stop(&errors);
                    }
                }
            }
        }
    }
    Ok(true)
}

/// A line a step, however long, and what it is of above.
fn table(schedule: &Schedule, settings: &[(String, String)]) -> Result<String, Vec<Finding>> {
    let steps = steps(schedule)?;
    let lines = steps.lines(usize::MAX);
    Ok([vec![steps.heading(settings)], lines].concat().join("\n"))
}
