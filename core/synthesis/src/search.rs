//! The parts of every search: what it takes from its caller, why it ends without a page, and trials that get better.

use std::fmt;

use roundelay_core::diagnostics::{Code, Diagnostic};
use roundelay_core::layout::Configured;
use roundelay_core::program::CompiledSource;
use roundelay_core::prove_source;
use roundelay_core::syntax::Source;
use roundelay_topology::Problem;

/// The name of the source that a found page is.
const FILE: &str = "synthesized.coll";

/// The caller's part in a search.
#[derive(Clone, Copy)]
pub struct SearchContext<'a> {
    /// Compiles a page, which may use the algorithms of a library.
    pub compile: &'a dyn Fn(&Source) -> Result<CompiledSource, Vec<Diagnostic>>,
    /// Takes the subject of the work that begins.
    pub about: &'a dyn Fn(String),
}

impl fmt::Debug for SearchContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SearchContext").finish_non_exhaustive()
    }
}

impl SearchContext<'_> {
    /// Returns the algorithm of a page.
    pub(crate) fn algorithm(&self, text: &str) -> Result<Configured, SearchError> {
        let source = found_source(text);
        let program = (self.compile)(&source).map_err(|errors| SearchError::page(errors, text))?;
        let algorithm = program.algorithms.into_iter().next().expect("the page has an algorithm");
        Ok(Configured::new(algorithm, &source))
    }

    /// Proves the algorithm of a page.
    ///
    /// # Errors
    /// A page that is wrong, which is a fault of the search.
    pub fn prove(&self, text: &str, nranks: u32) -> Result<(), SearchError> {
        let algorithm = self.algorithm(text)?;
        (self.about)(format!(
            "the proof of {}",
            roundelay_core::layout::Algorithm::name(&algorithm)
        ));
        match prove_source(&algorithm, nranks) {
            Ok(_) => Ok(()),
            Err(errors) => Err(SearchError::page(errors, text)),
        }
    }
}

/// Returns the source of a found page.
pub fn found_source(text: &str) -> Source {
    Source::from_text(FILE, text)
}

/// The reason why a search has no page.
#[derive(Debug)]
pub enum SearchError {
    /// Nothing can be found for the topology, the size or the collective.
    Problem(Box<Problem>),
    /// The page that was found is wrong: a fault of the search. The text is the page.
    Page(Vec<Diagnostic>, String),
}

impl SearchError {
    pub(crate) fn page(errors: Vec<Diagnostic>, text: impl Into<String>) -> Self {
        Self::Page(errors, text.into())
    }

    pub(crate) fn new(code: Code, title: impl Into<String>, help: &str) -> Self {
        Problem::new(code, title).help(help).into()
    }
}

impl From<Problem> for SearchError {
    fn from(problem: Problem) -> Self {
        Self::Problem(Box::new(problem))
    }
}

/// Tries one after another until one takes longer than `factor` times the shortest time before it, and returns those
/// that were tried with their times, the longer one too.
pub(crate) fn while_faster<T, E>(
    all: impl Iterator<Item = T>,
    factor: f64,
    mut time: impl FnMut(&T) -> Result<Option<f64>, E>,
) -> Result<Vec<(T, f64)>, E> {
    let mut tried: Vec<(T, f64)> = Vec::new();
    let mut best = f64::INFINITY;
    for one in all {
        let Some(seconds) = time(&one)? else { break };
        tried.push((one, seconds));
        if seconds > best * factor {
            break;
        }
        best = best.min(seconds);
    }
    Ok(tried)
}
