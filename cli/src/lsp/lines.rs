//! Places of an editor, which counts lines from 0 and columns in units of UTF-16, and of the compiler, which counts both
//! from 1, and columns in characters.

use lsp_types::{Position, Range};
use roundelay_core::source::Span;
use roundelay_core::syntax::Source;

use roundelay_ide::Place;

/// The lines of a text.
pub(super) struct Lines<'s> {
    source: &'s Source,
    texts: Vec<&'s str>,
}

impl<'s> Lines<'s> {
    pub(super) fn of(source: &'s Source) -> Self {
        Self { source, texts: source.text().unwrap_or_default().split('\n').collect() }
    }

    /// Returns the editor's form of a place of the compiler.
    fn position(&self, (line, column): Place) -> Position {
        let text = self.texts.get(line as usize - 1).copied().unwrap_or_default();
        let before = text.chars().take(column as usize - 1);
        Position::new(line - 1, before.map(|c| c.len_utf16() as u32).sum())
    }

    /// Returns the range of a span.
    pub(super) fn range(&self, span: Span) -> Range {
        let at = self.source.location(span);
        Range::new(self.position((at.line, at.column)), self.position((at.end_line, at.end_column)))
    }

    /// Returns the range of the whole text.
    pub(super) fn all(&self) -> Range {
        let (last, text) = (self.texts.len() - 1, self.texts[self.texts.len() - 1]);
        let end = Position::new(last as u32, text.encode_utf16().count() as u32);
        Range::new(Position::new(0, 0), end)
    }

    /// Returns the compiler's form of an editor's place.
    pub(super) fn place(&self, at: Position) -> Place {
        let text = self.texts.get(at.line as usize).copied().unwrap_or_default();
        let mut units = 0;
        let before = text.chars().take_while(|c| {
            units += c.len_utf16() as u32;
            units <= at.character
        });
        (at.line + 1, before.count() as u32 + 1)
    }
}
