//! The check of sources in canonical form, which a macro has left in a struct.

use std::sync::Arc;

use super::dependencies::{Dependencies, Sources};
use super::hir::Callee;
use super::{CheckedSource, Frontend, check};
use crate::diagnostics::Diagnostic;
use crate::source::{CalledSource, Home};
use crate::syntax::{self, Source};

/// Checks the source of an algorithm, after those of the algorithms that it calls, each by itself.
///
/// # Errors
/// All errors of the first source that has some.
pub(crate) fn canonical(
    text: &str,
    called: &[CalledSource<'_>],
    dependencies: &Dependencies<'_>,
) -> Result<(CheckedSource, Source), Vec<Diagnostic>> {
    let mut callees: Vec<Arc<Callee>> = Vec::new();
    for CalledSource { source, file, locations, calls, .. } in called {
        let calls: Vec<_> = calls.iter().map(|at| callees[*at].clone()).collect();
        let (mut checked, source) = one(source, &calls, dependencies)?;
        let own = checked.algorithms.pop().expect("a source in canonical form holds its algorithm");
        // The callee keeps the place in the file where its author wrote it.
        callees.push(Arc::new(Callee {
            file: (*file).to_owned(),
            locations: (*locations).into(),
            ..Callee::new(own, &source, Home::Here)
        }));
    }
    let direct = called.iter().zip(callees).filter(|(called, _)| called.direct);
    let direct: Vec<_> = direct.map(|(_, callee)| callee).collect();
    one(text, &direct, dependencies)
}

/// Checks a source in canonical form with one algorithm that may call `calls`.
fn one(
    text: &str,
    calls: &[Arc<Callee>],
    dependencies: &Dependencies<'_>,
) -> Result<(CheckedSource, Source), Vec<Diagnostic>> {
    let source = Source::from_text("", text);
    let (file, errors) = syntax::parse(&source);
    if !errors.is_empty() {
        return Err(errors);
    }
    let sources = Sources::new(dependencies);
    let checked = check(&file, &source, Frontend::Macro, &sources, Vec::new(), calls)?;
    Ok((checked, source))
}
