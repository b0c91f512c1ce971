//! Places of an editor, which counts lines from 0 and columns in units of UTF-16, and of the compiler, which counts both
//! from 1, and columns in characters.

use lsp_types::{Position, Range};
use roundelay_core::source::Span;
use roundelay_core::syntax::Source;
use roundelay_core::syntax::token::Tok;

/// The lines of a text.
pub(super) struct Lines<'s>(Vec<&'s str>);

impl<'s> Lines<'s> {
    pub(super) fn of(source: &'s Source) -> Self {
        Self(source.text().unwrap_or_default().split('\n').collect())
    }

    /// Returns the editor's form of a place of the compiler.
    fn position(&self, line: u32, column: u32) -> Position {
        let text = self.0.get(line as usize - 1).copied().unwrap_or_default();
        let before = text.chars().take(column as usize - 1);
        Position::new(line - 1, before.map(|c| c.len_utf16() as u32).sum())
    }

    /// Returns the range of a span.
    pub(super) fn range(&self, source: &Source, span: Span) -> Range {
        let at = source.location(span);
        Range::new(self.position(at.line, at.column), self.position(at.end_line, at.end_column))
    }

    /// Returns the range of the whole text.
    pub(super) fn all(&self) -> Range {
        let (last, text) = (self.0.len() - 1, self.0[self.0.len() - 1]);
        let end = Position::new(last as u32, text.encode_utf16().count() as u32);
        Range::new(Position::new(0, 0), end)
    }

    /// Returns the compiler's form of an editor's place: a line and a column from 1.
    fn place(&self, at: Position) -> (u32, u32) {
        let text = self.0.get(at.line as usize).copied().unwrap_or_default();
        let mut units = 0;
        let before = text.chars().take_while(|c| {
            units += c.len_utf16() as u32;
            units <= at.character
        });
        (at.line + 1, before.count() as u32 + 1)
    }

    /// Returns the token at a place, or the one that ends there.
    pub(super) fn token(&self, source: &Source, at: Position) -> Option<usize> {
        let (line, column) = self.place(at);
        let places = source.places();
        let after = places.partition_point(|place| (place.line, place.column) <= (line, column));
        let (nth, place) = (after.checked_sub(1)?, places[after - 1]);
        let within = (line, column) < (place.end_line, place.end_column);
        let touched = (line, column) == (place.end_line, place.end_column);
        // Of two tokens that meet there, a word is meant: `left.` is about `left`.
        match nth.checked_sub(1).map(|before| (before, places[before])) {
            Some((before, place))
                if within
                    && (place.end_line, place.end_column) == (line, column)
                    && word(source, nth).is_none()
                    && word(source, before).is_some() =>
            {
                Some(before)
            }
            _ => (within || touched).then_some(nth),
        }
    }

    /// Returns the last token that begins before a place.
    pub(super) fn before(&self, source: &Source, at: Position) -> Option<usize> {
        let at = self.place(at);
        source.places().partition_point(|place| (place.line, place.column) < at).checked_sub(1)
    }
}

/// Returns the word that a token is, if it is one.
pub(super) fn word(source: &Source, token: usize) -> Option<&str> {
    match source.tokens().get(token)? {
        Tok::Ident(word) => Some(word),
        _ => None,
    }
}
