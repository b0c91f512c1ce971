//! Errors of values that stand in no source: topologies, rings, counts, files.

use std::fmt;

use super::{Code, Diagnostic, Finding};
use crate::ids::SpanId;
use crate::source::Span;

/// The reason why a topology, ring, tree, groups or a file cannot be made: E06xx, or E0211 for a value that does not
/// fit the number of ranks. It is like a [`Finding`] without a place; [`Self::into_diagnostic`] and [`Self::into_finding`] give it
/// one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The stable code.
    pub code: Code,
    /// The problem in one line: lower case, no full stop.
    pub title: String,
    /// Facts that explain it.
    pub notes: Vec<String>,
    /// Advice, where there is some.
    pub help: Option<String>,
}

impl Problem {
    /// A problem with only its title.
    pub fn new(code: Code, title: impl Into<String>) -> Self {
        Self { code, title: title.into(), notes: Vec::new(), help: None }
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Sets the advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Makes a diagnostic of the problem, at a place in a source.
    pub fn into_diagnostic(self, span: Span) -> Diagnostic {
        let mut diagnostic = Diagnostic::new(self.code, span, self.title);
        (diagnostic.notes, diagnostic.help) = (self.notes, self.help);
        diagnostic
    }

    /// Makes a finding of the problem, at a statement of an algorithm.
    pub fn into_finding(self, at: SpanId) -> Finding {
        let mut finding = Finding::new(self.code, at, self.title);
        (finding.notes, finding.help) = (self.notes, self.help);
        finding
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{}]", self.title, self.code)
    }
}

impl std::error::Error for Problem {}
