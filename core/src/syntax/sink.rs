//! The sink of the grammar's actions: it bounds the depth of expressions and turns the parser's recoveries into
//! diagnostics, without errors that only follow from other errors.

use std::cell::{Cell, RefCell};
use std::convert::Infallible;

use lalrpop_util::{ErrorRecovery, ParseError};

use super::ast::{Expr, ExprKind};
use super::token::Tok;
use super::{MAX_DEPTH, MAX_DIAGNOSTICS, syntax_errors};
use crate::diagnostics::{Code, Diagnostic};
use crate::source::Span;
use crate::syntax::Source;

/// The certainty that a recovered parser is in step with the author again.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Resync {
    /// At a delimiter: an error right after it is a new error.
    Firm,
    /// At a keyword: an error within three tokens is taken for the earlier error.
    Loose,
}

pub(super) struct Sink<'s> {
    source: &'s Source,
    found: RefCell<Vec<Diagnostic>>,
    quiet_until: Cell<usize>,
}

impl<'s> Sink<'s> {
    pub(super) fn new(source: &'s Source) -> Self {
        Self { source, found: RefCell::default(), quiet_until: Cell::new(0) }
    }

    /// Whether the limit of errors is reached; the parser then gets no more tokens.
    pub(super) fn full(&self) -> bool {
        self.found.borrow().len() >= MAX_DIAGNOSTICS
    }

    pub(super) fn finish(self) -> Vec<Diagnostic> {
        self.found.into_inner()
    }

    /// Makes an expression over operands of `depths`. An expression that is nested too deep is reported once and
    /// becomes an error of the greatest depth, which absorbs the expressions built on it.
    pub(super) fn expr(
        &self,
        lo: usize,
        hi: usize,
        depths: &[u16],
        kind: impl FnOnce() -> ExprKind,
    ) -> Expr {
        let span = Span::new(lo, hi);
        let depth = 1 + depths.iter().copied().max().unwrap_or(0);
        if depth <= MAX_DEPTH {
            return Expr { kind: Box::new(kind()), span, depth };
        }
        if depth == MAX_DEPTH + 1 && !self.full() {
            self.found.borrow_mut().push(
                Diagnostic::new(
                    Code::NestedTooDeep,
                    span,
                    format!("expressions nest at most {MAX_DEPTH} deep"),
                )
                .help("name a part of it with `let`"),
            );
        }
        Expr { kind: Box::new(ExprKind::Error), span, depth: MAX_DEPTH + 1 }
    }

    /// Makes an expression in place of one that could not be read.
    #[expect(clippy::unused_self, reason = "the grammar's actions read alike")]
    pub(super) fn error_expr(&self, lo: usize, hi: usize) -> Expr {
        Expr { kind: Box::new(ExprKind::Error), span: Span::new(lo, hi), depth: 1 }
    }

    pub(super) fn recover(&self, e: ErrorRecovery<usize, Tok, Infallible>, resync: Resync) {
        let at = e.dropped_tokens.last().map(|(_, _, hi)| *hi);
        let resumed = self.report(e.error);
        if resync == Resync::Loose {
            self.quiet_until.set(at.unwrap_or(resumed) + 3);
        }
    }

    /// Reports `error` unless it follows from an earlier error; returns its token index.
    pub(super) fn report(&self, error: ParseError<usize, Tok, Infallible>) -> usize {
        let (at, expected) = match error {
            ParseError::InvalidToken { location } => (location, Vec::new()),
            ParseError::UnrecognizedEof { location, expected } => (location, expected),
            ParseError::UnrecognizedToken { token, expected } => (token.0, expected),
            ParseError::ExtraToken { token } => (token.0, Vec::new()),
        };
        let known = self.source.tokens().get(at) == Some(&Tok::Unknown);
        if !known && at >= self.quiet_until.get() && !self.full() {
            self.found.borrow_mut().push(syntax_errors::syntax_error(self.source, at, &expected));
            self.quiet_until.set(self.quiet_until.get().max(head_end(self.source.tokens(), at)));
        }
        at
    }
}

/// Returns the end of the head of a loop in another language's form, `for (i = 0; i < n; i++)`: its semicolons end no
/// statement.
fn head_end(tokens: &[Tok], at: usize) -> usize {
    if tokens.get(at) != Some(&Tok::LParen) || at == 0 || tokens[at - 1] != Tok::For {
        return 0;
    }
    tokens[at..].iter().position(|tok| *tok == Tok::LBrace).map_or(0, |brace| at + brace)
}
