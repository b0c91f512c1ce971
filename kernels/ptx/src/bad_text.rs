//! The refusal of a text.

use std::fmt;

/// A line of a PTX text that cannot be read, or that is not in the subset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadText {
    /// The line of the text, from 1.
    pub line: u32,
    /// The reason.
    pub what: String,
}

impl BadText {
    pub(crate) fn new(line: u32, what: impl Into<String>) -> Self {
        Self { line, what: what.into() }
    }
}

impl fmt::Display for BadText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} of the PTX: {}", self.line, self.what)
    }
}

impl std::error::Error for BadText {}
