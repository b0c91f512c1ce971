//! The construction of a source: from text, from bytes, or from a macro's input.

use std::sync::Arc;

use super::token::Tok;
use super::{Source, flatten, lexer};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::{Location, Span};

impl Source {
    /// Reads a text source; `name` is a path, as diagnostics print it.
    pub fn from_text(name: impl Into<String>, text: &str) -> Self {
        let text: Arc<str> = text.strip_prefix('\u{feff}').unwrap_or(text).into();
        let mut source = Self::new(name.into(), Some(text.clone()));
        lexer::read(&text, &mut source);
        source.mark_contextual();
        source
    }

    /// Reads a text source that may not be UTF-8.
    pub fn from_bytes(name: impl Into<String>, bytes: &[u8]) -> Self {
        let error = match std::str::from_utf8(bytes) {
            Ok(text) => return Self::from_text(name, text),
            Err(error) => error,
        };
        let mut source = Self::new(name.into(), Some(String::from_utf8_lossy(bytes).into()));
        let good = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        let line = good.matches('\n').count() as u32 + 1;
        let column = good.rsplit('\n').next().unwrap_or_default().chars().count() as u32 + 1;
        let place = Location { line, column, end_line: line, end_column: column + 1 };
        // The lossy text has U+FFFD, three bytes long, at the first invalid bytes.
        let at = good.len() as u32;
        source.push(Tok::Unknown, place, at..at + 3);
        source.report(Diagnostic::new(
            Code::UnreadableSource,
            Span::new(0, 1),
            format!("the source is not UTF-8: byte {} cannot be read", error.valid_up_to()),
        ));
        source
    }

    /// Reads macro input; beside it are the compiler's spans of the first and the last sign of each token.
    pub fn from_macro(
        name: impl Into<String>,
        tokens: proc_macro2::TokenStream,
    ) -> (Self, Vec<(proc_macro2::Span, proc_macro2::Span)>) {
        let mut source = Self::new(name.into(), None);
        let spans = flatten::read(tokens, &mut source);
        source.mark_contextual();
        (source, spans)
    }
}
