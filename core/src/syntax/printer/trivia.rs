//! The comments of a source, handed out in order while its tree is printed.

use crate::syntax::Comment;
use crate::syntax::Source;
use crate::syntax::ast::Param;
use crate::syntax::token::Tok;

pub(super) struct Trivia<'s> {
    pub(super) source: &'s Source,
    /// Comments not yet handed out.
    rest: &'s [Comment],
}

impl<'s> Trivia<'s> {
    pub(super) fn new(source: &'s Source) -> Self {
        Self { source, rest: source.comments() }
    }

    /// Returns the next comments that stand before a token below `end`.
    pub(super) fn below(&mut self, end: u32) -> &'s [Comment] {
        self.take(|c| c.before < end)
    }

    /// Returns the next comments that stand before token `end` on the line of the token before it.
    pub(super) fn trailing(&mut self, end: u32) -> impl Iterator<Item = &'s str> + use<'s> {
        self.take(|c| c.before == end && c.trailing).iter().map(|c| c.text.as_str())
    }

    fn take(&mut self, wanted: impl Fn(&Comment) -> bool) -> &'s [Comment] {
        let len = self.rest.iter().take_while(|c| wanted(c)).count();
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        taken
    }

    /// Whether a comment stands before any token of `lo..hi`.
    pub(super) fn any_between(&self, lo: u32, hi: u32) -> bool {
        self.rest.iter().any(|c| (lo..hi).contains(&c.before))
    }

    pub(super) fn brace_from(&self, from: u32) -> u32 {
        let tokens = self.source.tokens().iter().skip(from as usize);
        from + tokens.take_while(|t| **t != Tok::LBrace).count() as u32
    }

    /// Returns the index after the last token of parameter `i`, its comma included, in a list before `brace`.
    pub(super) fn param_end(&self, params: &[Param], i: usize, brace: u32) -> u32 {
        if let Some(next) = params.get(i + 1) {
            return next.name.span.lo;
        }
        let tokens = &self.source.tokens()[..brace as usize];
        tokens.iter().rposition(|t| *t == Tok::RParen).unwrap_or_default() as u32
    }
}
