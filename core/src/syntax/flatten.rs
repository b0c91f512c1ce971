//! The macro door: flattens a tree of groups into the tokens that the text door would give.

use proc_macro2::{Delimiter, Group, Spacing, Span as MacroSpan, TokenStream, TokenTree};

use super::token::{PUNCTUATION, Tok};
use super::{MAX_NESTING, escape, lexer, literal};
use crate::diagnostics::Code;
use crate::schedule::Location;
use crate::source::Source;

/// Reads `tokens` into `source`; gives the compiler's span of each.
pub(crate) fn read(tokens: TokenStream, source: &mut Source) -> Vec<MacroSpan> {
    let mut flattener = Flattener { source, spans: Vec::new() };
    flattener.stream(tokens, 0);
    flattener.spans
}

struct Flattener<'s> {
    source: &'s mut Source,
    spans: Vec<MacroSpan>,
}

impl Flattener<'_> {
    /// Whether to go on.
    fn stream(&mut self, tokens: TokenStream, depth: usize) -> bool {
        let mut tokens = tokens.into_iter().peekable();
        while let Some(token) = tokens.next() {
            if self.source.full() {
                return false;
            }
            match token {
                TokenTree::Ident(ident) => {
                    let text = ident.to_string();
                    match tokens.peek() {
                        Some(TokenTree::Group(g))
                            if text == "rust" && g.delimiter() == Delimiter::Brace =>
                        {
                            let group = g.clone();
                            tokens.next();
                            self.escape(ident.span(), &group);
                        }
                        _ => self.word(&text, ident.span()),
                    }
                }
                TokenTree::Literal(lit) => self.literal(&lit.to_string(), lit.span()),
                TokenTree::Group(group) => {
                    if !self.group(&group, depth) {
                        return false;
                    }
                }
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    // `#!` and `#!` with a doc comment in it: a `//!` comment.
                    let bang = match tokens.peek() {
                        Some(TokenTree::Punct(p)) if p.as_char() == '!' => tokens.next(),
                        _ => None,
                    };
                    let doc = match tokens.peek() {
                        Some(TokenTree::Group(g)) => doc_text(g).map(|text| (text, g.span_close())),
                        _ => None,
                    };
                    match (doc, bang) {
                        (Some((text, last)), bang) => {
                            tokens.next();
                            if bang.is_none() {
                                self.push_over(Tok::Doc(text), punct.span(), last);
                            }
                        }
                        (None, bang) => {
                            self.push(Tok::Pound, punct.span());
                            if let Some(bang) = bang {
                                self.push(Tok::Not, bang.span());
                            }
                        }
                    }
                }
                TokenTree::Punct(punct) => {
                    let mut run = vec![(punct.as_char(), punct.span())];
                    let mut joint = punct.spacing() == Spacing::Joint;
                    // Forwarded tokens may be marked joint before a name, so look at what follows.
                    while joint
                        && let Some(TokenTree::Punct(next)) = tokens.peek()
                        && next.as_char() != '#'
                    {
                        run.push((next.as_char(), next.span()));
                        joint = next.spacing() == Spacing::Joint;
                        tokens.next();
                    }
                    self.operators(&run);
                }
            }
        }
        true
    }

    fn push(&mut self, tok: Tok, span: MacroSpan) {
        self.push_over(tok, span, span);
    }

    fn push_over(&mut self, tok: Tok, first: MacroSpan, last: MacroSpan) {
        self.source.push(tok, place(first, last), 0..0);
        self.spans.push(first);
    }

    fn unknown(&mut self, title: String, span: MacroSpan) {
        self.source.push_unknown(Code::UnknownToken, title, place(span, span), 0..0);
        self.spans.push(span);
    }

    fn word(&mut self, text: &str, span: MacroSpan) {
        if text.starts_with("r#") {
            self.unknown("raw identifiers are not part of the language".to_owned(), span);
        } else if text.is_ascii() {
            self.push(Tok::word(text), span);
        } else {
            self.unknown(format!("`{text}` is not ASCII"), span);
        }
    }

    fn literal(&mut self, text: &str, span: MacroSpan) {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        if negative {
            self.push(Tok::Minus, span);
        }
        self.source.push_literal(text, place(span, span), 0..0);
        self.spans.push(span);
    }

    fn escape(&mut self, first: MacroSpan, group: &Group) {
        let next = self.source.next_span();
        let tok = escape::normalise(group.stream()).map_or(Tok::Unknown, Tok::Rust);
        if tok == Tok::Unknown {
            self.source.report(lexer::too_deep(next));
        }
        self.source.push(tok, place(first, group.span_close()), 0..0);
        self.spans.push(group.span());
    }

    fn group(&mut self, group: &Group, depth: usize) -> bool {
        let (open, close) = match group.delimiter() {
            Delimiter::Parenthesis => (Tok::LParen, Tok::RParen),
            Delimiter::Brace => (Tok::LBrace, Tok::RBrace),
            Delimiter::Bracket => (Tok::LBracket, Tok::RBracket),
            Delimiter::None if depth < MAX_NESTING => {
                return self.stream(group.stream(), depth + 1);
            }
            Delimiter::None => (Tok::LParen, Tok::RParen),
        };
        let span = self.source.next_span();
        self.push(open, group.span_open());
        if depth >= MAX_NESTING {
            self.source.report(lexer::too_deep(span));
            return false;
        }
        let more = self.stream(group.stream(), depth + 1);
        if more {
            self.push(close, group.span_close());
        }
        more
    }

    /// Cuts a run of joined characters by the longest match against the token table.
    fn operators(&mut self, run: &[(char, MacroSpan)]) {
        let text: String = run.iter().map(|(c, _)| *c).collect();
        let mut at = 0;
        while at < run.len() {
            let rest = &text[at..];
            let longest =
                PUNCTUATION.iter().filter(|p| rest.starts_with(**p)).max_by_key(|p| p.len());
            match longest.and_then(|p| Tok::punctuation(p).map(|tok| (tok, p.len()))) {
                Some((tok, len)) => {
                    self.push_over(tok, run[at].1, run[at + len - 1].1);
                    at += len;
                }
                None => {
                    let what = run[at].0;
                    self.unknown(format!("no token begins with `{what}`"), run[at].1);
                    at += 1;
                }
            }
        }
    }
}

/// The text of `[doc = "…"]`.
fn doc_text(group: &Group) -> Option<String> {
    if group.delimiter() != Delimiter::Bracket {
        return None;
    }
    let inner: Vec<TokenTree> = group.stream().into_iter().take(4).collect();
    match inner.as_slice() {
        [TokenTree::Ident(doc), TokenTree::Punct(eq), TokenTree::Literal(text)]
            if doc == "doc" && eq.as_char() == '=' =>
        {
            literal::doc(&text.to_string())
        }
        _ => None,
    }
}

/// Lines and columns from 1; `proc_macro2` counts columns from 0.
fn place(first: MacroSpan, last: MacroSpan) -> Location {
    let (start, end) = (first.start(), last.end());
    Location {
        line: start.line as u32,
        column: start.column as u32 + 1,
        end_line: end.line as u32,
        end_column: end.column as u32 + 1,
    }
}
