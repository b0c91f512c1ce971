//! Places in a source: ranges of its tokens, and lines and columns.
//!
//! Spans are ranges of token indices, the same for both frontends, so trees and diagnostics are comparable, `Send` and
//! free of `proc_macro2`'s spans.

/// Tokens `lo..hi` of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Span {
    /// First token.
    pub lo: u32,
    /// One past the last token.
    pub hi: u32,
}

impl Span {
    /// Returns the span of tokens `lo..hi`.
    pub fn new(lo: usize, hi: usize) -> Self {
        Self { lo: lo as u32, hi: hi as u32 }
    }

    /// Returns the smallest span that holds both spans.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }
}

/// The place of a token or a statement in its source: lines and columns count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Location {
    /// The first line.
    pub line: u32,
    /// The column of the first character.
    pub column: u32,
    /// The last line.
    pub end_line: u32,
    /// The column after the last character.
    pub end_column: u32,
}

/// A source as errors show it: its name, its lines, and the places of its tokens.
pub trait SourceLines {
    /// Returns the name of the file, for messages.
    fn name(&self) -> &str;

    /// Returns a line of the text by its number, which counts from 1; `None` where there is no text.
    fn line(&self, number: u32) -> Option<&str>;

    /// Returns the place of a span.
    fn location(&self, span: Span) -> Location;
}

/// The source in which the call of an algorithm found it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Home {
    /// The source of the caller.
    #[default]
    Here,
    /// A source that the caller names by `use`.
    Used,
    /// The library.
    Library,
}

/// An algorithm that another algorithm calls, as its author wrote it.
#[derive(Clone, Copy, Debug)]
pub struct CalledSource<'a> {
    /// The source in canonical form.
    pub source: &'a str,
    /// The file that holds it, for messages.
    pub file: &'a str,
    /// The places of its statements in that file, by [`SpanId`](crate::ids::SpanId).
    pub locations: &'a [Location],
    /// The algorithms that it calls, as positions in the list that holds it.
    pub calls: &'a [usize],
    /// Whether the algorithm that has the list calls it directly, not only through another algorithm of the list.
    pub direct: bool,
}
