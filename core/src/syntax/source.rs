//! A source as both frontends read it: its tokens, their places, and the errors on the way.

use std::ops::Range;
use std::sync::Arc;

use super::MAX_TOKENS;
use super::token::{self, Tok};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::{Location, SourceLines, Span};

/// A comment of a text source. Macro input has none: rustc drops them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The text with its slashes, without the line break.
    pub text: String,
    /// The token after the comment; the number of tokens for a comment at the end.
    pub before: u32,
    /// Whether the comment begins on the line of the token before it.
    pub trailing: bool,
    /// Whether a blank line stands before the comment.
    pub blank_before: bool,
}

/// One source, read by one of the frontends.
#[derive(Clone, Debug, Default)]
pub struct Source {
    name: String,
    text: Option<Arc<str>>,
    tokens: Vec<Tok>,
    places: Vec<Location>,
    bytes: Vec<Range<u32>>,
    comments: Vec<Comment>,
    after_blank: Vec<u32>,
    diagnostics: Vec<Diagnostic>,
}

const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<Source>();
};

impl Source {
    /// Creates a source of which nothing was read yet.
    pub(super) fn new(name: String, text: Option<Arc<str>>) -> Self {
        Self { name, text, ..Self::default() }
    }

    /// Returns a text of another language, in which messages point at `places`: ranges of its bytes, each of them a
    /// token without a meaning in this language.
    pub fn with_places(
        name: &str,
        text: &str,
        places: impl IntoIterator<Item = (Location, Range<u32>)>,
    ) -> Self {
        let mut source = Self::new(name.to_owned(), Some(text.into()));
        for (place, bytes) in places {
            source.push(Tok::Unknown, place, bytes);
        }
        source
    }

    /// Distinguishes words that are keywords only in their places from names.
    pub(super) fn mark_contextual(&mut self) {
        token::mark_contextual(&mut self.tokens);
    }

    /// Returns the name given to the source.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text, if this is a text source; bytes that are not UTF-8 are replaced.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns line `number` of the text, counted from 1, without its line break.
    pub fn line(&self, number: u32) -> Option<&str> {
        self.text.as_deref()?.lines().nth(number.checked_sub(1)? as usize)
    }

    /// Returns the tokens.
    pub fn tokens(&self) -> &[Tok] {
        &self.tokens
    }

    /// Returns the place of each token: lines and columns from 1, in characters.
    pub fn places(&self) -> &[Location] {
        &self.places
    }

    /// Returns the comments, in order; none in macro input.
    pub fn comments(&self) -> &[Comment] {
        &self.comments
    }

    /// Returns the errors that the frontend found; [`parse`](super::parse) repeats them.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// Whether a blank line stands before `token`.
    pub fn blank_before(&self, token: u32) -> bool {
        self.after_blank.binary_search(&token).is_ok()
    }

    /// Returns the place of `span`, from the start of its first token to the end of its last. An empty span is the
    /// point before its token, or after the last token.
    pub fn location(&self, span: Span) -> Location {
        let point = |line, column| Location { line, column, end_line: line, end_column: column };
        if span.lo >= span.hi {
            return match (self.places.get(span.lo as usize), self.places.last()) {
                (Some(at), _) => point(at.line, at.column),
                (None, Some(last)) => point(last.end_line, last.end_column),
                (None, None) => point(1, 1),
            };
        }
        let Some(last) = self.places.last() else { return point(1, 1) };
        let first = self.places.get(span.lo as usize).unwrap_or(last);
        let last = self.places.get(span.hi as usize - 1).unwrap_or(last);
        Location { end_line: last.end_line, end_column: last.end_column, ..*first }
    }

    /// Returns the bytes of `span` in the text; empty for macro input.
    pub fn range(&self, span: Span) -> Range<usize> {
        let get = |i: u32| self.bytes.get(i as usize).or(self.bytes.last()).cloned();
        if span.lo >= span.hi {
            let at = match (self.bytes.get(span.lo as usize), self.bytes.last()) {
                (Some(at), _) => at.start,
                (None, last) => last.map_or(0, |r| r.end),
            } as usize;
            return at..at;
        }
        match (get(span.lo), get(span.hi - 1)) {
            (Some(first), Some(last)) => first.start as usize..last.end as usize,
            _ => 0..0,
        }
    }

    /// Returns the author's text at `span`, on one line and without comments: a statement or operand for a message or a
    /// picture. Macro input has no text of its own, so its tokens are printed with their gaps.
    pub fn text_at(&self, span: Span) -> String {
        let end = (span.hi as usize).min(self.tokens.len());
        let mut line = String::new();
        for at in span.lo as usize..end {
            if at > span.lo as usize && self.gap(at) {
                line.push(' ');
            }
            match (&self.text, self.bytes.get(at)) {
                (Some(text), Some(bytes)) => {
                    line.push_str(&text[bytes.start as usize..bytes.end as usize]);
                }
                _ => line.push_str(&self.tokens[at].to_string()),
            }
        }
        line
    }

    /// Whether a gap stands before token `at`. A line break is a gap, but not inside of a bracket's edge or at a dot.
    fn gap(&self, at: usize) -> bool {
        let (before, here) = (self.places[at - 1], self.places[at]);
        if before.end_line == here.line {
            return before.end_column < here.column;
        }
        let opens = matches!(self.tokens[at - 1], Tok::LParen | Tok::LBracket | Tok::Dot);
        let closes = matches!(self.tokens[at], Tok::RParen | Tok::RBracket | Tok::Dot);
        !opens && !closes
    }

    pub(crate) fn push(&mut self, tok: Tok, place: Location, bytes: Range<u32>) {
        self.tokens.push(tok);
        self.places.push(place);
        if self.text.is_some() {
            self.bytes.push(bytes);
        }
    }

    /// Returns the span of the token that is pushed next.
    pub(crate) fn next_span(&self) -> Span {
        Span::new(self.tokens.len(), self.tokens.len() + 1)
    }

    pub(crate) fn report(&mut self, diagnostic: Diagnostic) {
        self.diagnostics.push(diagnostic);
    }

    pub(crate) fn push_literal(&mut self, text: &str, place: Location, bytes: Range<u32>) {
        let span = self.next_span();
        let tok = super::literal_token(text, span, &mut self.diagnostics);
        self.push(tok, place, bytes);
    }

    /// Adds characters that are no token, kept as [`Tok::Unknown`] so that errors can point at them.
    pub(crate) fn push_unknown(
        &mut self,
        code: Code,
        title: impl Into<String>,
        place: Location,
        bytes: Range<u32>,
    ) {
        let span = self.next_span();
        self.push(Tok::Unknown, place, bytes);
        self.report(Diagnostic::new(code, span, title));
    }

    /// Adds characters that no token begins with, with the text to write in their place.
    pub(crate) fn push_foreign(
        &mut self,
        what: &str,
        help: Option<&str>,
        place: Location,
        bytes: Range<u32>,
    ) {
        let title = format!("no token begins with `{what}`");
        self.push_unknown(Code::UnknownToken, title, place, bytes);
        if let (Some(last), Some(help)) = (self.diagnostics.last_mut(), help) {
            last.help = Some(help.to_owned());
        }
    }

    pub(crate) fn push_comment(&mut self, text: &str, trailing: bool, blank_before: bool) {
        let before = self.tokens.len() as u32;
        self.comments.push(Comment { text: text.to_owned(), before, trailing, blank_before });
    }

    pub(crate) fn mark_blank(&mut self) {
        self.after_blank.push(self.tokens.len() as u32);
    }

    /// Whether the frontends should stop: too many errors, or too many tokens, which it reports.
    pub(crate) fn full(&mut self) -> bool {
        if self.tokens.len() >= MAX_TOKENS {
            let span = Span::new(self.tokens.len() - 1, self.tokens.len());
            let title = format!("the source has more than {MAX_TOKENS} tokens");
            self.report(Diagnostic::new(Code::UnreadableSource, span, title));
            return true;
        }
        super::give_up_note(&mut self.diagnostics);
        self.diagnostics.len() >= super::MAX_DIAGNOSTICS
    }
}

impl SourceLines for Source {
    fn name(&self) -> &str {
        self.name()
    }

    fn line(&self, number: u32) -> Option<&str> {
        self.line(number)
    }

    fn location(&self, span: Span) -> Location {
        self.location(span)
    }
}
