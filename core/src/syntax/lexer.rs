//! The text frontend: drives the generated lexer, and records comments, blank lines and unbalanced brackets, which only
//! text can have.

use logos::{Lexer, Logos};

use super::lexer_generated::Raw;
use super::token::Tok;
use super::{MAX_NESTING, escape, suggestions};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Location;
use crate::source::Span;
use crate::syntax::Source;

/// Reads `text` into `source`.
pub(crate) fn read(text: &str, source: &mut Source) {
    let mut reader = TokenReader {
        lexer: Raw::lexer(text),
        text,
        source,
        open: Vec::new(),
        at: Cursor::default(),
        newlines: 1,
        joined: false,
    };
    if reader.read() {
        reader.report_open(0);
    }
}

/// A byte offset and its line and column.
#[derive(Clone, Copy)]
struct Cursor {
    offset: usize,
    line: u32,
    column: u32,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { offset: 0, line: 1, column: 1 }
    }
}

impl Cursor {
    fn advance(&mut self, text: &str, to: usize) {
        let passed = &text[self.offset..to];
        match passed.rfind('\n') {
            Some(last) => {
                self.line += passed.matches('\n').count() as u32;
                self.column = passed[last + 1..].chars().count() as u32 + 1;
            }
            None => self.column += passed.chars().count() as u32,
        }
        self.offset = to;
    }
}

struct TokenReader<'t, 's> {
    lexer: Lexer<'t, Raw>,
    text: &'t str,
    source: &'s mut Source,
    /// Indices of the brackets that are still open.
    open: Vec<usize>,
    at: Cursor,
    /// Line breaks since the last token or comment.
    newlines: u32,
    /// Whether only trailing comments stand between here and the last token.
    joined: bool,
}

impl TokenReader<'_, '_> {
    /// Reads the text; returns whether it reached the end.
    fn read(&mut self) -> bool {
        while let Some(raw) = self.lexer.next() {
            if self.source.full() {
                return false;
            }
            match raw {
                Ok(Raw::Blank) => {}
                Ok(Raw::Newline) => self.newlines += 1,
                Ok(Raw::LineComment) => self.line_comment(),
                Ok(Raw::BlockComment) => self.block_comment(),
                Ok(Raw::Word) if self.lexer.slice() == "rust" => self.word_or_escape(),
                Ok(Raw::Word) => self.token(Tok::word(self.lexer.slice())),
                Ok(Raw::Number | Raw::Float) => self.literal(),
                Ok(Raw::Quote) => self.string(),
                Ok(Raw::Punctuation) => {
                    if !self.punctuation() {
                        return false;
                    }
                }
                Err(()) => self.unknown(),
            }
        }
        true
    }

    /// Returns the place and bytes of the current slice, for a token that begins here.
    fn here(&mut self) -> (Location, std::ops::Range<u32>) {
        let span = self.lexer.span();
        self.at.advance(self.text, span.start);
        let (line, column) = (self.at.line, self.at.column);
        self.at.advance(self.text, span.end);
        let place = Location { line, column, end_line: self.at.line, end_column: self.at.column };
        if self.newlines >= 2 {
            self.source.mark_blank();
        }
        self.newlines = 0;
        self.joined = true;
        (place, span.start as u32..span.end as u32)
    }

    fn token(&mut self, tok: Tok) {
        let (place, bytes) = self.here();
        self.source.push(tok, place, bytes);
    }

    fn literal(&mut self) {
        let (place, bytes) = self.here();
        let text = self.lexer.slice();
        self.source.push_literal(text, place, bytes);
    }

    /// Reads a string after its quote; a string ends on its line.
    fn string(&mut self) {
        let rest = self.lexer.remainder();
        let mut escaped = false;
        for (i, c) in rest.char_indices() {
            match c {
                '\n' => break,
                '"' if !escaped => {
                    self.lexer.bump(i + 1);
                    return self.literal();
                }
                _ => escaped = c == '\\' && !escaped,
            }
        }
        self.lexer.bump(rest.find('\n').unwrap_or(rest.len()));
        self.unclosed("this string is not closed on its line");
    }

    fn unclosed(&mut self, title: &str) {
        let (place, bytes) = self.here();
        self.source.push_unknown(Code::UnclosedDelimiter, title, place, bytes);
    }

    fn comment(&mut self, text: &str) {
        let trailing = self.joined && self.newlines == 0;
        self.source.push_comment(text, trailing, self.newlines >= 2);
        self.joined = trailing;
        self.newlines = 0;
    }

    fn line_comment(&mut self) {
        let text = self.lexer.slice();
        match text.strip_prefix("///") {
            Some(doc) if !doc.starts_with('/') => self.token(Tok::Doc(doc.to_owned())),
            _ => self.comment(text.trim_end()),
        }
    }

    /// Reads a block comment after its opening; block comments nest.
    fn block_comment(&mut self) {
        let Some(len) = block_comment_len(self.lexer.remainder()) else {
            self.unclosed("this comment is not closed");
            return self.lexer.bump(self.lexer.remainder().len());
        };
        self.lexer.bump(len);
        let text = self.lexer.slice();
        match text.strip_prefix("/**").and_then(|t| t.strip_suffix("*/")) {
            Some(doc) if !doc.is_empty() && !doc.starts_with('*') => {
                let doc = doc.replace("\r\n", "\n");
                self.token(Tok::Doc(doc));
            }
            _ => self.comment(text),
        }
    }

    /// Reads the word `rust`: an escape if a brace follows.
    fn word_or_escape(&mut self) {
        let rest = self.lexer.remainder();
        let Some(start) = skip_trivia(rest).filter(|i| rest[*i..].starts_with('{')) else {
            return self.token(Tok::word("rust"));
        };
        let Some(len) = braced_len(&rest[start..]) else {
            return self.unclosed("this `rust {` is not closed");
        };
        self.lexer.bump(start + len);
        let (place, bytes) = self.here();
        let span = self.source.next_span();
        let tokens = rest[start + 1..start + len - 1].parse().ok();
        if let Some(text) = tokens.and_then(escape::normalise) {
            self.source.push(Tok::Rust(text), place, bytes);
        } else {
            self.source.push(Tok::Unknown, place, bytes);
            self.source.report(Diagnostic::new(
                Code::UnknownToken,
                span,
                "the text of this escape cannot be read as Rust",
            ));
        }
    }

    fn unknown(&mut self) {
        let start = self.lexer.span().start;
        // A run of unknown characters gets one report.
        while let Some(c) = self.lexer.remainder().chars().next() {
            if c.is_whitespace() || c.is_ascii_alphanumeric() || "_\"(){}[],;".contains(c) {
                break;
            }
            if Tok::punctuation(c.encode_utf8(&mut [0; 4])).is_some() {
                break;
            }
            self.lexer.bump(c.len_utf8());
        }
        let end = self.lexer.span().end;
        let what = super::literal::shorten(&self.text[start..end]);
        let (place, bytes) = self.here();
        self.source.push_foreign(&what, suggestions::sign(&what), place, bytes);
    }

    /// Reads an operator or a bracket; returns whether to go on.
    fn punctuation(&mut self) -> bool {
        let Some(tok) = Tok::punctuation(self.lexer.slice()) else {
            self.unknown();
            return true;
        };
        let index = self.source.tokens().len();
        self.token(tok.clone());
        match tok {
            Tok::LParen | Tok::LBracket | Tok::LBrace => {
                self.open.push(index);
                if self.open.len() > MAX_NESTING {
                    self.source.report(too_deep(Span::new(index, index + 1)));
                    return false;
                }
            }
            Tok::RParen | Tok::RBracket | Tok::RBrace => self.close(index),
            _ => {}
        }
        true
    }

    /// Closes the innermost bracket of this kind; brackets left open inside it are reported.
    fn close(&mut self, index: usize) {
        let tokens = self.source.tokens();
        let partner = opening(&tokens[index]);
        if let Some(depth) = self.open.iter().rposition(|i| tokens[*i] == partner) {
            self.report_open(depth + 1);
            self.open.truncate(depth);
        } else {
            let title = format!("this `{}` closes nothing", tokens[index]);
            let span = Span::new(index, index + 1);
            self.source.report(Diagnostic::new(Code::UnclosedDelimiter, span, title));
        }
    }

    fn report_open(&mut self, from: usize) {
        for index in self.open.split_off(from.min(self.open.len())) {
            let title = format!("this `{}` is not closed", self.source.tokens()[index]);
            let span = Span::new(index, index + 1);
            self.source.report(Diagnostic::new(Code::UnclosedDelimiter, span, title));
            if self.source.full() {
                return;
            }
        }
    }
}

/// Returns the error of a bracket that is nested too deep.
pub(super) fn too_deep(span: Span) -> Diagnostic {
    let title = format!("brackets nest at most {MAX_NESTING} deep");
    Diagnostic::new(Code::NestedTooDeep, span, title)
}

fn opening(closing: &Tok) -> Tok {
    match closing {
        Tok::RParen => Tok::LParen,
        Tok::RBracket => Tok::LBracket,
        _ => Tok::LBrace,
    }
}

/// Returns the number of bytes to the end of a block comment after its opening.
fn block_comment_len(rest: &str) -> Option<usize> {
    let (bytes, mut depth, mut i) = (rest.as_bytes(), 1, 0);
    while i + 1 < bytes.len() {
        match &bytes[i..i + 2] {
            b"*/" => {
                depth -= 1;
                i += 2;
                if depth == 0 {
                    return Some(i);
                }
            }
            b"/*" => {
                depth += 1;
                i += 2;
            }
            _ => i += 1,
        }
    }
    None
}

/// Returns the number of bytes of blanks and comments at the start of `text`; `None` if a comment does not end.
fn skip_trivia(text: &str) -> Option<usize> {
    let mut rest = text.trim_start();
    loop {
        rest = if let Some(line) = rest.strip_prefix("//") {
            line.split_once('\n').map_or("", |(_, rest)| rest)
        } else if let Some(block) = rest.strip_prefix("/*") {
            &block[block_comment_len(block)?..]
        } else {
            return Some(text.len() - rest.len());
        }
        .trim_start();
    }
}

/// Returns the number of bytes of the brace group at the start of `text`, by Rust's rules for strings, characters and
/// comments.
fn braced_len(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut depth, mut i) = (0_usize, 0);
    while i < bytes.len() {
        let rest = &text[i..];
        i += match bytes[i] {
            b'{' => {
                depth += 1;
                1
            }
            b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(i + 1);
                }
                1
            }
            b'/' if rest.starts_with("//") => rest.find('\n')?,
            b'/' if rest.starts_with("/*") => 2 + block_comment_len(&rest[2..])?,
            b'"' => string_len(rest)?,
            b'\'' => char_len(rest),
            b'r' if !text[..i].ends_with(|c: char| c.is_alphanumeric() || c == '_') => {
                raw_string_len(rest).unwrap_or(1)
            }
            _ => rest.chars().next().map_or(1, char::len_utf8),
        };
    }
    None
}

fn string_len(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (i, b) in text.bytes().enumerate().skip(1) {
        if b == b'"' && !escaped {
            return Some(i + 1);
        }
        escaped = b == b'\\' && !escaped;
    }
    None
}

/// Returns the length of a character literal, or of only the quote of a lifetime.
fn char_len(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some(_)) => chars.find(|(_, c)| *c == '\'').map_or(1, |(i, _)| i + 1),
        (Some(_), Some((i, '\''))) => i + 1,
        _ => 1,
    }
}

fn raw_string_len(text: &str) -> Option<usize> {
    let after = text[1..].trim_start_matches('#');
    let hashes = text.len() - 1 - after.len();
    let body = after.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(text.len() - body.len() + body.find(&end)? + end.len())
}
