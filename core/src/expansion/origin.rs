//! The origin of an expansion, and the form of names and texts of its source in Rust.

use proc_macro2::{Ident, Literal, Span as RustSpan, TokenStream};

use crate::source::{Location, Span};

/// The origin of an expansion: it decides the name of the file and the spans of names.
pub struct Origin<'s> {
    /// An expression for the file's name.
    pub file: TokenStream,
    /// Returns the place of a token span.
    pub locate: &'s dyn Fn(Span) -> Location,
    /// Returns the Rust span of a token span, so that names lead back to the author's.
    pub span: &'s dyn Fn(Span) -> RustSpan,
}

/// Returns the author's name as a Rust identifier.
pub(super) fn ident(name: &str, span: RustSpan) -> Ident {
    let keyword = matches!(
        name,
        "abstract"
            | "as"
            | "async"
            | "await"
            | "become"
            | "box"
            | "break"
            | "const"
            | "continue"
            | "do"
            | "dyn"
            | "enum"
            | "extern"
            | "final"
            | "fn"
            | "gen"
            | "impl"
            | "loop"
            | "macro"
            | "match"
            | "mod"
            | "move"
            | "mut"
            | "override"
            | "priv"
            | "ref"
            | "return"
            | "static"
            | "struct"
            | "trait"
            | "try"
            | "type"
            | "typeof"
            | "unsafe"
            | "unsized"
            | "use"
            | "virtual"
            | "where"
            | "while"
            | "yield"
    );
    if keyword { Ident::new_raw(name, span) } else { Ident::new(name, span) }
}

/// Returns the text as a raw string, so that it reads in the expansion as it was written.
pub(super) fn raw(text: &str) -> Literal {
    let fence = "#".repeat(
        1 + text
            .split('"')
            .map(|part| part.bytes().take_while(|b| *b == b'#').count())
            .max()
            .unwrap_or(0),
    );
    // A raw string cannot hold a bare carriage return; an ordinary one can hold any text.
    format!("r{fence}\"{text}\"{fence}").parse().unwrap_or_else(|_| Literal::string(text))
}
