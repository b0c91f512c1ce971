//! What NVRTC says of a text. The text's `#line` directives make it name the algorithm's own source.

use std::fmt;

/// How bad a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The kernel is refused.
    Error,
    /// It compiles.
    Warning,
}

/// A message with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The source: an algorithm's, or a header's.
    pub file: String,
    /// Its line, from 1.
    pub line: u32,
    /// How bad.
    pub severity: Severity,
    /// What is wrong; the lines that follow show where.
    pub text: String,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, severity, text } = self;
        write!(f, "{file}:{line}: {severity}: {text}")
    }
}
