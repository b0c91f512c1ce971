//! Syntax: two frontends to one token table, one grammar, one tree, and the printer back to text.
//!
//! [`token`] is the table; `lexer` reads text and `flatten` reads macro input into the same
//! tokens; `grammar.lalrpop` is the grammar, of which `grammar.rs` is generated and committed.

pub mod ast;
mod escape;
pub mod expr_text;
pub(crate) mod flatten;
pub mod read_limit;
#[rustfmt::skip]
#[allow(warnings, clippy::all, clippy::pedantic, unreachable_pub)]
mod grammar;
pub(crate) mod lexer;
pub(crate) mod suggestions;
#[rustfmt::skip]
#[allow(warnings, clippy::all, clippy::pedantic)]
mod lexer_generated;
mod literal;
mod operators;
pub use literal::token as literal_token;
pub mod printer;
mod read;
mod sink;
mod source;
mod syntax_errors;
pub mod token;
pub mod used_files;

pub use source::{Comment, Source};

use ast::File;
use sink::Sink;

use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use token::Tok;

/// The deepest nesting of brackets, which bounds every recursion over blocks.
pub const MAX_NESTING: usize = 128;
/// The deepest nesting of expressions, which bounds every recursion over expressions.
pub const MAX_DEPTH: u16 = 128;
/// The most tokens of a source.
pub const MAX_TOKENS: usize = 1 << 20;
/// The most errors of a source, after which it is given up.
pub const MAX_DIAGNOSTICS: usize = 20;

/// Parses `source` into its tree and all errors of its text, including those of its frontend.
///
/// Statements that could not be read are [`ast::StmtKind::Error`]; the tree is meant for use only
/// if there are no diagnostics, and for names (stubs) otherwise.
pub fn parse(source: &Source) -> (File, Vec<Diagnostic>) {
    let mut diagnostics = source.diagnostics().to_vec();
    diagnostics.sort_by_key(|d| (d.primary.lo, d.primary.hi));
    let unusable = |d: &Diagnostic| {
        matches!(d.code, Code::UnreadableSource | Code::NestedTooDeep | Code::UnclosedDelimiter)
    };
    if diagnostics.len() >= MAX_DIAGNOSTICS || diagnostics.iter().any(unusable) {
        return (File::default(), diagnostics);
    }
    if source.tokens().is_empty() {
        diagnostics.push(
            Diagnostic::new(Code::NoAlgorithm, Span::default(), "the source holds no algorithm")
                .help("write `algorithm NAME() -> AllReduce { … }`"),
        );
        return (File::default(), diagnostics);
    }
    let sink = Sink::new(source);
    let tokens = source.tokens().iter().enumerate().map(|(i, tok)| Ok((i, tok.clone(), i + 1)));
    let parsed = grammar::FileParser::new().parse(&sink, tokens.take_while(|_| !sink.full()));
    let mut file = parsed.unwrap_or_else(|error| {
        sink.report(error);
        File::default()
    });
    diagnostics.extend(sink.finish());
    if !diagnostics.is_empty() {
        file.unread = suggestions::names(source.tokens());
    }
    // The errors are sorted by place: a recovery is known only after its skipped tokens were read.
    diagnostics.sort_by_key(|d| (d.primary.lo, d.primary.hi));
    give_up_note(&mut diagnostics);
    (file, diagnostics)
}

/// Parses the only value that `source` holds, such as the topology of a command line. The grammar's only start is a
/// file, so the value is read as the default of a parameter of an algorithm that is written around it.
pub fn parse_value(source: &Source) -> Result<ast::Expr, Vec<Diagnostic>> {
    let found = source.diagnostics();
    if !found.is_empty() {
        return Err(found.to_vec());
    }
    let end = source.tokens().len();
    let (name, ty) = (Tok::Ident("a".to_owned()), Tok::Ident("int".to_owned()));
    let before =
        [Tok::Algorithm, name.clone(), Tok::LParen, name.clone(), Tok::Colon, ty, Tok::Assign];
    let after = [Tok::RParen, Tok::Arrow, name, Tok::LBrace, Tok::RBrace];
    let sink = Sink::new(source);
    let own = source.tokens().iter().enumerate().map(|(i, tok)| (i, tok.clone(), i + 1));
    let tokens = before
        .into_iter()
        .map(|tok| (0, tok, 0))
        .chain(own)
        .chain(after.into_iter().map(|tok| (end, tok, end)));
    let parsed = grammar::FileParser::new().parse(&sink, tokens.map(Ok));
    let file = parsed.unwrap_or_else(|error| {
        sink.report(error);
        File::default()
    });
    let mut diagnostics = sink.finish();
    // Errors behind the value belong to the added text, not to the author's, once the value has an error.
    if let Some(first) = diagnostics.iter().position(|d| (d.primary.lo as usize) < end) {
        let first = diagnostics[first].clone();
        diagnostics.retain(|d| *d == first || (d.primary.lo as usize) < end);
    }
    let value = match &file.algorithms[..] {
        [ast::Algorithm { params, body, .. }] if body.is_empty() => match &params[..] {
            [ast::Param { default: Some(value), .. }] => Some(value.clone()),
            _ => None,
        },
        _ => None,
    };
    match value {
        Some(value) if diagnostics.is_empty() => Ok(value),
        _ => {
            if diagnostics.is_empty() {
                let title = "expected one value, such as `full_mesh(8)`";
                diagnostics.push(Diagnostic::new(Code::SyntaxError, Span::new(0, end), title));
            }
            Err(diagnostics)
        }
    }
}

/// Cuts the list at the limit and adds a note of it.
pub(crate) fn give_up_note(diagnostics: &mut Vec<Diagnostic>) {
    if diagnostics.len() >= MAX_DIAGNOSTICS {
        diagnostics.truncate(MAX_DIAGNOSTICS);
        let note = "too many errors: the rest of the source was not looked at";
        if let Some(last) = diagnostics.last_mut()
            && last.notes.iter().all(|n| n != note)
        {
            last.notes.push(note.to_owned());
        }
    }
}
