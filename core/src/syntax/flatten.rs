//! The macro frontend: flattens a tree of groups into the tokens that the text frontend would give.

use std::iter::Peekable;

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Delimiter, Group, Punct, Spacing, Span as MacroSpan, TokenStream, TokenTree};

use super::token::{PUNCTUATION, Tok};
use super::{MAX_NESTING, escape, lexer, literal, suggestions};
use crate::diagnostics::Code;
use crate::source::Location;
use crate::syntax::Source;

/// Reads `tokens` into `source`; returns the compiler's spans of the first and the last sign of each.
pub(crate) fn read(tokens: TokenStream, source: &mut Source) -> Vec<(MacroSpan, MacroSpan)> {
    let mut flattener = Flattener { source, spans: Vec::new() };
    flattener.stream(tokens, 0);
    flattener.spans
}

struct Flattener<'s> {
    source: &'s mut Source,
    spans: Vec<(MacroSpan, MacroSpan)>,
}

impl Flattener<'_> {
    /// Reads a stream of tokens; returns whether to go on.
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
                    // `#!` with a doc comment in it is a `//!` comment.
                    let bang = match tokens.peek() {
                        Some(TokenTree::Punct(p)) if p.as_char() == '!' => Some(p.clone()),
                        _ => None,
                    };
                    if bang.is_some() {
                        tokens.next();
                    }
                    let doc = match tokens.peek() {
                        Some(TokenTree::Group(g)) => doc_text(g).map(|text| (text, g.span_close())),
                        _ => None,
                    };
                    if let Some((text, last)) = doc {
                        tokens.next();
                        if bang.is_none() {
                            self.push_over(Tok::Doc(text), punct.span(), last);
                        }
                    } else {
                        self.push(Tok::Pound, punct.span());
                        if let Some(bang) = bang {
                            self.operators(bang, &mut tokens);
                        }
                    }
                }
                TokenTree::Punct(punct) => self.operators(punct, &mut tokens),
            }
        }
        true
    }

    fn push(&mut self, tok: Tok, span: MacroSpan) {
        self.push_over(tok, span, span);
    }

    fn push_over(&mut self, tok: Tok, first: MacroSpan, last: MacroSpan) {
        self.source.push(tok, place(first, last), 0..0);
        self.spans.push((first, last));
    }

    fn unknown(&mut self, title: String, span: MacroSpan) {
        self.source.push_unknown(Code::UnknownToken, title, place(span, span), 0..0);
        self.spans.push((span, span));
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
        self.spans.push((span, span));
    }

    fn escape(&mut self, first: MacroSpan, group: &Group) {
        let next = self.source.next_span();
        let tok = escape::normalise(group.stream()).map_or(Tok::Unknown, Tok::Rust);
        if tok == Tok::Unknown {
            self.source.report(lexer::too_deep(next));
        }
        self.source.push(tok, place(first, group.span_close()), 0..0);
        self.spans.push((group.span(), group.span()));
    }

    fn group(&mut self, group: &Group, depth: usize) -> bool {
        let (open, close) = match group.delimiter() {
            Delimiter::None if depth < MAX_NESTING => {
                return self.stream(group.stream(), depth + 1);
            }
            Delimiter::Parenthesis | Delimiter::None => (Tok::LParen, Tok::RParen),
            Delimiter::Brace => (Tok::LBrace, Tok::RBrace),
            Delimiter::Bracket => (Tok::LBracket, Tok::RBracket),
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

    /// Cuts a run of joined characters, of which `first` is read, by the longest match against
    /// the token table.
    fn operators(&mut self, first: Punct, tokens: &mut Peekable<IntoIter>) {
        let mut run = vec![first];
        // Forwarded tokens may be marked joint before a name, so the next token is checked.
        while run.last().is_some_and(|p| p.spacing() == Spacing::Joint)
            && let Some(TokenTree::Punct(next)) = tokens.peek()
            && next.as_char() != '#'
        {
            run.push(next.clone());
            tokens.next();
        }
        let text: String = run.iter().map(Punct::as_char).collect();
        let mut at = 0;
        while at < run.len() {
            let rest = &text[at..];
            let longest =
                PUNCTUATION.iter().filter(|p| rest.starts_with(**p)).max_by_key(|p| p.len());
            let span = run[at].span();
            if let Some((tok, len)) = longest.and_then(|p| Some((Tok::punctuation(p)?, p.len()))) {
                self.push_over(tok, span, run[at + len - 1].span());
                at += len;
            } else {
                let sign = run[at].as_char().to_string();
                self.source.push_foreign(&sign, suggestions::sign(&sign), place(span, span), 0..0);
                self.spans.push((span, span));
                at += 1;
            }
        }
    }
}

/// Returns the text of `[doc = "…"]`.
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

/// Returns lines and columns from 1; `proc_macro2` counts columns from 0.
fn place(first: MacroSpan, last: MacroSpan) -> Location {
    let (start, end) = (first.start(), last.end());
    Location {
        line: start.line as u32,
        column: start.column as u32 + 1,
        end_line: end.line as u32,
        end_column: end.column as u32 + 1,
    }
}
